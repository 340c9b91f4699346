#include "execution/sort/run_sink.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/rows/row_appender.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/row_slices.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"

namespace nam::execution {
class RunSink::Task final : public SinkTask {
 public:
  explicit Task(RunSink& sink)
      : sink_(sink), appender_(*sink.table_, sink.plan_.slots()), slices_(sink.plan_.layout()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const absl::Status status = Add(context, in);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    absl::Status status;
    if (writer_ != nullptr) {
      status = WriteAll(context);
      if (status.ok()) status = sink_.End(*writer_);
      writer_.reset();
      return status.ok() ? Step::kDone : context.Fail(status);
    }
    TakeFull();
    for (const uint32_t page : appender_.TakePages()) pages_.push_back(page);
    if (pages_.empty()) return Step::kDone;
    const MutexLock lock(sink_.mutex_);
    sink_.left_.push_back(std::move(pages_));
    return Step::kDone;
  }

 private:
  absl::Status Add(TaskContext& context, const Chunk& in) {
    return slices_.ForEach(in.selection(), [&](Selection rows) -> absl::Status {
      for (uint32_t done = 0; done < rows.count;) {
        if (Held() >= sink_.share_) NAM_RETURN_IF_ERROR(WriteAll(context));
        const uint32_t before = done;
        NAM_RETURN_IF_ERROR(appender_.AppendSome(in, rows, done, nullptr));
        rows_ += done - before;
        TakeFull();
      }
      return absl::OkStatus();
    });
  }

  void TakeFull() {
    const std::vector<uint32_t> full = appender_.TakeFullPages();
    held_bytes_ += appender_.BytesOf(full);
    pages_.insert(pages_.end(), full.begin(), full.end());
  }

  /// Includes the array that sorts them.
  uint64_t Held() const { return held_bytes_ + rows_ * sizeof(OrderedRow); }

  absl::Status WriteAll(TaskContext& context) {
    if (writer_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(writer_, sink_.NewWriter(context));
    }
    for (const uint32_t page : appender_.TakePages()) pages_.push_back(page);
    NAM_RETURN_IF_ERROR(sink_.Write(context, pages_, *writer_));
    appender_.Reuse(pages_);
    pages_.clear();
    held_bytes_ = 0;
    rows_ = 0;
    return absl::OkStatus();
  }

  RunSink& sink_;
  RowAppender appender_;
  std::unique_ptr<RunWriter> writer_;
  std::vector<uint32_t> pages_;  // full ones
  uint64_t held_bytes_ = 0;      // of them
  uint64_t rows_ = 0;            // on all pages
  RowSlices slices_;
};

absl::StatusOr<std::unique_ptr<RunSink>> RunSink::Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                       const RunOptions& options, MemoryBudget& budget) {
  NAM_CHECK(!order.empty() && options.plan != nullptr && options.runs != plan::Runs::kNever);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  return std::unique_ptr<RunSink>(new RunSink(plan, order, options, budget, std::move(table)));
}

RunSink::RunSink(const RowsPlan& plan, std::span<const OrderSlot> order, const RunOptions& options,
                 MemoryBudget& budget, std::unique_ptr<RowTable> table)
    : plan_(plan),
      options_(options),
      share_(RunShare(budget, options.threads)),
      budget_(budget),
      table_(std::move(table)),
      order_(*table_, order),
      in_runs_(options.runs == plan::Runs::kAlways) {}

RunSink::~RunSink() = default;

std::unique_ptr<SinkTask> RunSink::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::StatusOr<std::unique_ptr<RunWriter>> RunSink::NewWriter(TaskContext& context) {
  NAM_ASSIGN_OR_RETURN(const RunPlace place, options_.place(context));
  NAM_CHECK(place.space != nullptr, "servers have scratch memory for runs");
  in_runs_ = true;
  return std::make_unique<RunWriter>(*options_.plan, options_.attempt, place, budget_, context.cancel());
}

absl::Status RunSink::Write(TaskContext& context, std::span<const uint32_t> pages, RunWriter& writer) {
  uint64_t count = 0;
  for (const uint32_t page : pages) count += PageHeaderOf(table_->page(page)).rows;
  if (count == 0) return absl::OkStatus();
  BudgetArray<OrderedRow> rows(budget_);
  NAM_RETURN_IF_ERROR(rows.Resize(count));
  std::vector<uint32_t> numbers(kChunkRows);
  std::vector<uint64_t> prefixes(kChunkRows);
  Frame frame = plan_.slots().NewFrame();
  Chunk chunk(plan_.schema().size(), 0);
  for (size_t i = 0; i < chunk.columns().size(); ++i)
    chunk.columns()[i] = table_->ColumnOf(i, numbers.data());
  uint64_t made = 0;
  for (const uint32_t page : pages) {
    const uint32_t of_page = PageHeaderOf(table_->page(page)).rows;
    for (uint32_t first = 0; first < of_page; first += kChunkRows) {
      const uint32_t some = std::min(kChunkRows, of_page - first);
      std::iota(numbers.begin(), numbers.begin() + some, (page << table_->layout().rows_shift()) + first);
      chunk.SelectAll(some);
      const Vector* const key = plan_.slots().Evaluate(order_.first().slot, frame, chunk, chunk.selection());
      if (key == nullptr) return frame.error();
      order_.PrefixesOf(*key, chunk.selection(), prefixes.data());
      for (uint32_t i = 0; i < some; ++i) rows[made++] = {prefixes[i], numbers[i]};
    }
  }
  std::vector<std::span<const OrderedRow>> spans;
  for (uint64_t first = 0; first < count; first += kRunRows) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    const std::span span(rows.data() + first, std::min<uint64_t>(kRunRows, count - first));
    std::sort(span.begin(), span.end(),
              [this](const OrderedRow& a, const OrderedRow& b) { return order_.Before(a, b); });
    context.Charge(span.size(), plan::work_cost::kSortRowPs);
    context.Settle();
    spans.push_back(span);
  }
  NAM_RETURN_IF_ERROR(writer.AppendSorted(context, order_, *table_, std::move(spans)));
  NAM_ASSIGN_OR_RETURN(ScratchRun run, writer.EndRun(context));
  const MutexLock lock(mutex_);
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

absl::Status RunSink::End(RunWriter& writer) {
  NAM_RETURN_IF_ERROR(writer.Flush());
  const MutexLock lock(mutex_);
  pages_written_ += writer.pages();
  bytes_written_ += writer.bytes();
  return absl::OkStatus();
}

uint32_t RunSink::CombineParts() {
  return in_runs_ ? static_cast<uint32_t>(left_.size()) : 0;
}

absl::Status RunSink::Combine(TaskContext& context, uint32_t part) {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<RunWriter> writer, NewWriter(context));
  NAM_RETURN_IF_ERROR(Write(context, left_[part], *writer));
  return End(*writer);
}

absl::Status RunSink::Store(TaskContext&, uint64_t attempt, StoredPages& pages) {
  if (!in_runs_) SealPages(*table_, attempt, pages);
  return absl::OkStatus();
}

void RunSink::Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const {
  if (!runs_.empty()) *out.mutable_directory() = DirectoryOf(runs_, attempt, pipeline);
}

void RunSink::Count(proto::PipelineCounters& out) const {
  out.set_scratch_pages_written(pages_written_);
  out.set_scratch_bytes_written(bytes_written_);
  out.set_scratch_runs_written(runs_.size());
}

}  // namespace nam::execution
