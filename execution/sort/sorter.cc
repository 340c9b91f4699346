#include "execution/sort/sorter.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Fewer rows are merged by one thread.
constexpr uint64_t kSerialRows = 1 << 16;
constexpr uint32_t kMergeParts = 16;
/// Rows of a run that are looked at to divide the order.
constexpr uint64_t kSamples = 64;

}  // namespace

class Sorter::Task final : public SinkTask {
 public:
  Task(Sorter& sink, Runs& runs)
      : sink_(sink),
        runs_(runs),
        appender_(*sink.table_, sink.plan_.slots()),
        frame_(sink.plan_.slots().NewFrame()),
        prefixes_(kChunkRows),
        numbers_(kChunkRows) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const absl::Status status = Add(context, in);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    Sort(context, runs_.size - sorted_);
    return Step::kDone;
  }

 private:
  absl::Status Add(TaskContext& context, const Chunk& in) {
    const Selection rows = in.selection();
    if (!sink_.order_.empty()) {
      const Vector* const first = sink_.plan_.slots().Evaluate(sink_.order_.first().slot, frame_, in, rows);
      if (first == nullptr) return frame_.error();
      sink_.order_.PrefixesOf(*first, rows, prefixes_.data());
    }
    NAM_RETURN_IF_ERROR(runs_.rows.Grow(runs_.size + rows.count));
    NAM_RETURN_IF_ERROR(appender_.Append(in, rows, numbers_.data()));
    for (uint32_t j = 0; j < rows.count; ++j) runs_.rows[runs_.size++] = {prefixes_[j], numbers_[j]};
    while (runs_.size - sorted_ >= kRunRows) Sort(context, kRunRows);
    return absl::OkStatus();
  }

  /// Makes the next rows a run.
  void Sort(TaskContext& context, uint64_t count) {
    OrderedRow* const first = runs_.rows.data() + sorted_;
    std::sort(first, first + count,
              [this](const OrderedRow& a, const OrderedRow& b) { return sink_.order_.Before(a, b); });
    context.Charge(count, plan::work_cost::kSortRowPs);
    sorted_ += count;
  }

  Sorter& sink_;
  Runs& runs_;
  RowAppender appender_;
  Frame frame_;
  uint64_t sorted_ = 0;
  std::vector<uint64_t> prefixes_;
  std::vector<uint32_t> numbers_;
};

absl::StatusOr<std::unique_ptr<Sorter>> Sorter::Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                     MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  return std::unique_ptr<Sorter>(new Sorter(plan, order, budget, std::move(table)));
}

Sorter::Sorter(const RowsPlan& plan, std::span<const OrderSlot> order, MemoryBudget& budget,
               std::unique_ptr<RowTable> table)
    : plan_(plan),
      budget_(budget),
      table_(std::move(table)),
      order_(*table_, order),
      rows_(plan, *table_, budget) {}

Sorter::~Sorter() = default;

std::unique_ptr<SinkTask> Sorter::NewTask(TaskContext&) {
  auto runs = std::make_unique<Runs>(budget_);
  Runs& of_task = *runs;
  {
    const std::lock_guard lock(mutex_);
    runs_.push_back(std::move(runs));
  }
  return std::make_unique<Task>(*this, of_task);
}

std::vector<OrderedRow> Sorter::Splitters(std::span<const std::span<const OrderedRow>> runs,
                                          uint32_t parts) const {
  std::vector<OrderedRow> samples, splitters;
  for (const std::span<const OrderedRow> run : runs) {
    const uint64_t step = std::max<uint64_t>(run.size() / kSamples, 1);
    for (uint64_t i = step / 2; i < run.size(); i += step) samples.push_back(run[i]);
  }
  std::sort(samples.begin(), samples.end(),
            [this](const OrderedRow& a, const OrderedRow& b) { return order_.Before(a, b); });
  for (uint32_t p = 1; p < parts; ++p) splitters.push_back(samples[samples.size() * p / parts]);
  return splitters;
}

uint32_t Sorter::CombineParts() {
  std::vector<std::span<const OrderedRow>> runs;
  uint64_t size = 0;
  for (const auto& of_task : runs_) {
    for (uint64_t first = 0; first < of_task->size; first += kRunRows) {
      runs.emplace_back(of_task->rows.data() + first, std::min<uint64_t>(kRunRows, of_task->size - first));
    }
    size += of_task->size;
  }
  if (size == 0) return 0;
  combine_error_ = rows_.rows().Resize(size);
  rows_.set_size(size);
  parts_.resize(size < kSerialRows || !combine_error_.ok() ? 1 : kMergeParts);
  const std::vector<OrderedRow> splitters = Splitters(runs, static_cast<uint32_t>(parts_.size()));
  uint64_t first = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].first = first;
    for (std::span<const OrderedRow>& left : runs) {
      // Rows that stand equal to a splitter are all in the part behind it.
      const auto end = p + 1 == parts_.size()
                           ? left.end()
                           : std::lower_bound(left.begin(), left.end(), splitters[p],
                                              [this](const OrderedRow& a, const OrderedRow& b) {
                                                return order_.Before(a, b);
                                              });
      const auto count = static_cast<size_t>(end - left.begin());
      parts_[p].runs.push_back(left.first(count));
      left = left.subspan(count);
      parts_[p].rows += count;
    }
    first += parts_[p].rows;
  }
  parts_left_ = parts_.size();
  return static_cast<uint32_t>(parts_.size());
}

absl::Status Sorter::Combine(TaskContext& context, uint32_t part) {
  NAM_RETURN_IF_ERROR(combine_error_);
  Part& of = parts_[part];
  NAM_RETURN_IF_ERROR(MergeRuns(context, order_, std::move(of.runs), rows_.rows().data() + of.first));
  context.Charge(of.rows, plan::work_cost::kCombineGroupPs);
  if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) runs_.clear();
  return absl::OkStatus();
}

}  // namespace nam::execution
