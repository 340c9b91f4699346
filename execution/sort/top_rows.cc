#include "execution/sort/top_rows.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "execution/sort/row_slices.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Fewer rows, and bytes, are not worth a pass to drop some.
constexpr uint64_t kFewRows = 4096, kFewBytes = 4 << 20;

}  // namespace

class TopRows::Task final : public SinkTask {
 public:
  Task(TopRows& sink, Kept& kept)
      : sink_(sink),
        kept_(kept),
        appender_(*sink.table_, sink.plan_.slots()),
        frame_(sink.plan_.slots().NewFrame()),
        slices_(sink.plan_.layout()),
        moved_(sink.plan_.schema().size(), 0),
        prefixes_(kChunkRows),
        positions_(kChunkRows),
        numbers_(kChunkRows),
        old_numbers_(kChunkRows),
        new_numbers_(kChunkRows) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    if (sink_.limit_ == 0) return Step::kDone;
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const absl::Status status =
        slices_.ForEach(in.selection(), [&](Selection rows) { return Add(context, in, rows); });
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    if (kept_.size > sink_.limit_) Drop(context);
    return Step::kDone;
  }

 private:
  absl::Status Add(TaskContext& context, const Chunk& in, Selection all) {
    const Selection rows = InTime(in, all);
    if (!frame_.error().ok()) return frame_.error();
    NAM_RETURN_IF_ERROR(kept_.rows.Grow(kept_.size + rows.count));
    for (uint32_t done = 0; done < rows.count;) {
      const uint32_t before = done;
      NAM_RETURN_IF_ERROR(appender_.AppendSome(in, rows, done, numbers_.data()));
      for (uint32_t j = before; j < done; ++j) kept_.rows[kept_.size++] = {prefixes_[j], numbers_[j]};
      NAM_RETURN_IF_ERROR(DropMany(context));
    }
    return absl::OkStatus();
  }

  absl::Status DropMany(TaskContext& context) {
    const uint64_t bytes = appender_.bytes();
    const bool few = kept_.size <= kFewRows && bytes <= kFewBytes;
    // Of rows with long texts, which take a page or more each, only few that are too many.
    const bool large = bytes / sink_.table_->layout().page_bytes() > kept_.size;
    const uint64_t most =
        sink_.limit_ <= UINT64_MAX / 2 ? sink_.limit_ + sink_.limit_ / (large ? 4 : 1) : UINT64_MAX;
    if (few || kept_.size <= most) return absl::OkStatus();
    Drop(context);
    return MoveKept();
  }

  /// The rows that may be among the first, and their prefixes. The frame may have an error.
  Selection InTime(const Chunk& in, Selection rows) {
    const Vector* const first = sink_.plan_.slots().Evaluate(sink_.order_.first().slot, frame_, in, rows);
    if (first == nullptr) return {nullptr, 0};
    sink_.order_.PrefixesOf(*first, rows, prefixes_.data());
    const uint64_t cutoff = sink_.cutoff_.load(std::memory_order_relaxed);
    uint32_t count = 0;
    for (uint32_t j = 0; j < rows.count; ++j) {
      positions_[count] = rows[j];
      prefixes_[count] = prefixes_[j];
      count += prefixes_[count] <= cutoff;
    }
    return {positions_.data(), count};
  }

  void Drop(TaskContext& context) {
    context.Charge(kept_.size, plan::work_cost::kSinkRowPs);
    OrderedRow* const rows = kept_.rows.data();
    OrderedRow* const last = rows + sink_.limit_ - 1;
    std::nth_element(rows, last, rows + kept_.size,
                     [this](const OrderedRow& a, const OrderedRow& b) { return sink_.order_.Before(a, b); });
    kept_.size = sink_.limit_;
    sink_.LowerCutoff(last->prefix);
  }

  /// Moves the kept rows to pages of their own, so that those of dropped rows are free.
  absl::Status MoveKept() {
    const std::vector<uint32_t> old = appender_.TakePages();
    for (uint64_t first = 0; first < kept_.size; first += kChunkRows) {
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, kept_.size - first));
      OrderedRow* const rows = kept_.rows.data() + first;
      for (uint32_t j = 0; j < count; ++j) old_numbers_[j] = rows[j].row;
      for (size_t i = 0; i < moved_.columns().size(); ++i) {
        moved_.columns()[i] = sink_.table_->ColumnOf(i, old_numbers_.data());
      }
      moved_.SelectAll(count);
      NAM_RETURN_IF_ERROR(appender_.Append(moved_, moved_.selection(), new_numbers_.data()));
      for (uint32_t j = 0; j < count; ++j) rows[j].row = new_numbers_[j];
    }
    appender_.Reuse(old);
    return absl::OkStatus();
  }

  TopRows& sink_;
  Kept& kept_;
  RowAppender appender_;
  Frame frame_;
  RowSlices slices_;
  Chunk moved_;
  std::vector<uint64_t> prefixes_;
  std::vector<uint32_t> positions_, numbers_;        // of a chunk
  std::vector<uint32_t> old_numbers_, new_numbers_;  // of moved rows
};

absl::StatusOr<std::unique_ptr<TopRows>> TopRows::Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                       uint64_t limit, MemoryBudget& budget,
                                                       uint64_t offset) {
  NAM_CHECK(!order.empty());
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  return std::unique_ptr<TopRows>(new TopRows(plan, order, limit, budget, offset, std::move(table)));
}

TopRows::TopRows(const RowsPlan& plan, std::span<const OrderSlot> order, uint64_t limit, MemoryBudget& budget,
                 uint64_t offset, std::unique_ptr<RowTable> table)
    : plan_(plan),
      limit_(limit),
      offset_(offset),
      budget_(budget),
      table_(std::move(table)),
      order_(*table_, order),
      rows_(plan, *table_, budget) {}

TopRows::~TopRows() = default;

std::unique_ptr<SinkTask> TopRows::NewTask(TaskContext&) {
  auto kept = std::make_unique<Kept>(budget_);
  Kept& of_task = *kept;
  {
    const MutexLock lock(mutex_);
    kept_.push_back(std::move(kept));
  }
  return std::make_unique<Task>(*this, of_task);
}

std::unique_ptr<Source> TopRows::RowsAtRest(bool in_order) {
  return std::make_unique<OrderedSource>(rows_,
                                         OrderedSource::Options{.offset = offset_, .in_order = in_order});
}

void TopRows::LowerCutoff(uint64_t prefix) {
  uint64_t cutoff = cutoff_.load(std::memory_order_relaxed);
  while (prefix < cutoff && !cutoff_.compare_exchange_weak(cutoff, prefix, std::memory_order_relaxed)) {
  }
}

absl::Status TopRows::Combine(TaskContext& context, uint32_t) {
  uint64_t size = 0;
  for (const auto& kept : kept_) size += kept->size;
  const auto before = [this](const OrderedRow& a, const OrderedRow& b) { return order_.Before(a, b); };
  std::vector<std::span<const OrderedRow>> runs;
  for (const auto& kept : kept_) {
    for (uint64_t first = 0; first < kept->size; first += kRunRows) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      const std::span run(kept->rows.data() + first, std::min<uint64_t>(kRunRows, kept->size - first));
      std::sort(run.begin(), run.end(), before);
      runs.push_back(run);
    }
  }
  context.Charge(size, plan::work_cost::kSortRowPs);
  NAM_RETURN_IF_ERROR(rows_.rows().Resize(size));
  NAM_RETURN_IF_ERROR(MergeRuns(context, order_, std::move(runs), rows_.rows().data()));
  rows_.set_size(std::min(size, limit_));
  kept_.clear();
  return absl::OkStatus();
}

}  // namespace nam::execution
