#include "execution/window/window_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "execution/sort/run_merge.h"
#include "execution/window/functions.h"
#include "execution/window/results.h"
#include "plan/work_cost.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

/// Segments begin with the first partition from each of so many places on.
constexpr uint64_t kSegmentRows = 4 * kChunkRows;

}  // namespace

/// Rows at places [first, end) of an order, whole partitions, and the calls' results.
class WindowSource::Segment {
 public:
  Segment(const WindowRows& window, const std::vector<plan::WindowCall>& calls, MemoryBudget& budget)
      : window_(window),
        calls_(calls),
        partition_(window, budget),
        numbers_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {
    for (const plan::WindowCall& call : calls) {
      const uint32_t slot = call.arguments.empty() ? 0 : call.arguments[0];
      results_.push_back(std::make_unique<WindowResults>(FormOf(call), rows().table(), slot, budget));
    }
  }

  absl::Status Compute(TaskContext& context, uint64_t first, uint64_t end) {
    first_ = done_ = first;
    end_ = end;
    for (const auto& results : results_) NAM_RETURN_IF_ERROR(results->Begin(end_ - first_));
    for (uint64_t place = first_; place < end_;) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      const uint64_t partition_end = std::min(window_.PartitionEnd(place), end_);
      NAM_RETURN_IF_ERROR(partition_.Begin(place, static_cast<uint32_t>(partition_end - place)));
      for (size_t c = 0; c < results_.size(); ++c) {
        NAM_RETURN_IF_ERROR(RunCall({.context = context,
                                     .call = calls_[c],
                                     .schema = rows().schema(),
                                     .partition = partition_,
                                     .results = *results_[c],
                                     .at = place - first_}));
      }
      place = partition_end;
    }
    return absl::OkStatus();
  }

  bool read() const { return done_ == end_; }
  void Read(TaskContext& context, Chunk& out) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, end_ - done_));
    rows().Read(done_, count, numbers_.get(), out);
    for (size_t c = 0; c < results_.size(); ++c)
      out.columns()[rows().schema().size() + c] = results_[c]->Read(done_ - first_, count);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
  }

 private:
  const OrderedRows& rows() const { return window_.rows; }

  const WindowRows& window_;
  const std::vector<plan::WindowCall>& calls_;
  Partition partition_;
  std::vector<std::unique_ptr<WindowResults>> results_;  // by call
  uint64_t first_ = 0, done_ = 0, end_ = 0;
  std::unique_ptr<uint32_t[]> numbers_;
};

class WindowSource::Task final : public SourceTask {
 public:
  Task(WindowSource& source, TaskContext& context)
      : source_(source), segment_(source.window_, source.options_.calls, context.budget()) {}

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    while (segment_.read()) {
      if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
      const uint64_t number = source_.next_segment_.fetch_add(1, std::memory_order_relaxed);
      if (number >= (source_.window_.rows.size() + kSegmentRows - 1) / kSegmentRows) return Step::kDone;
      const absl::Status status =
          segment_.Compute(context, source_.window_.PartitionFrom(number * kSegmentRows),
                           source_.window_.PartitionFrom((number + 1) * kSegmentRows));
      if (!status.ok()) return context.Fail(status);
    }
    segment_.Read(context, out);
    return Step::kHaveMore;
  }

 private:
  WindowSource& source_;
  Segment segment_;
};

/// Takes rows of a merge into a table until a partition has ended after the first kSegmentRows:
///
///     table   │ partition │ partition │ the beginning of one │   the last moves on to the next segment
class WindowSource::MergedTask final : public SourceTask {
 public:
  /// `table` takes from the budget, and has the sorter's layout.
  MergedTask(WindowSource& source, std::unique_ptr<RowTable> table, std::unique_ptr<RunMerge> merge,
             TaskContext& context)
      : source_(source),
        table_(std::move(table)),
        merge_(std::move(merge)),
        appender_(*table_, source.sorter_->plan().slots()),
        rows_(source.sorter_->plan(), *table_, context.budget()),
        window_(rows_, source.options_.partition, source.options_.order),
        segment_(window_, source.options_.calls, context.budget()),
        merged_(source.sorter_->plan().schema().size(), 0),
        numbers_(kChunkRows) {}

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    while (segment_.read()) {
      if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
      const absl::Status status = PartitionTooLarge(NextSegment(context), context.budget());
      if (!status.ok()) return context.Fail(status);
      if (end_ == 0) return Step::kDone;
    }
    segment_.Read(context, out);
    return Step::kHaveMore;
  }

  static absl::Status PartitionTooLarge(const absl::Status& status, const MemoryBudget& budget) {
    if (!absl::IsResourceExhausted(status) || IsProcessLimit(status) || SqlErrorOf(status).has_value())
      return status;
    return UserError(sqlstate::kOutOfMemory,
                     absl::StrCat("one partition of a window function needs more than the ",
                                  budget.bytes() >> 20, " MiB that its session may hold"),
                     -1, "raise nam.result_mib_max, or partition by more columns");
  }

 private:
  absl::Status NextSegment(TaskContext& context) {
    NAM_RETURN_IF_ERROR(KeepRest());
    const uint64_t bytes_max = context.budget().bytes() / 8;  // of rows with long texts
    while (more_ && (end_ == 0 || (rows_.size() < kSegmentRows && appender_.bytes() < bytes_max)))
      NAM_RETURN_IF_ERROR(Load(context));
    if (!more_) end_ = rows_.size();
    return segment_.Compute(context, 0, end_);
  }

  /// Moves the rows after the segment to pages of their own, and frees the others'.
  absl::Status KeepRest() {
    const std::vector<uint32_t> old = appender_.TakePages();
    const uint64_t size = rows_.size();
    uint64_t kept = 0;
    for (uint64_t place = end_; place < size; place += kChunkRows) {
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, size - place));
      rows_.Read(place, count, numbers_.data(), merged_);
      moved_.resize(count);
      NAM_RETURN_IF_ERROR(appender_.Append(merged_, merged_.selection(), moved_.data()));
      for (uint32_t i = 0; i < count; ++i) rows_.rows()[kept++] = {0, moved_[i]};
    }
    rows_.set_size(kept);
    appender_.Reuse(old);
    end_ = 0;
    return absl::OkStatus();
  }

  absl::Status Load(TaskContext& context) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    NAM_ASSIGN_OR_RETURN(more_, merge_->Next(context, merged_));
    if (!more_) return absl::OkStatus();
    const uint32_t count = merged_.selection().count;
    NAM_RETURN_IF_ERROR(appender_.Append(merged_, merged_.selection(), numbers_.data()));
    NAM_RETURN_IF_ERROR(rows_.rows().Grow(rows_.size() + count));
    const uint64_t first = rows_.size();
    for (uint32_t i = 0; i < count; ++i) {
      rows_.rows()[first + i] = {0, numbers_[i]};
      if (first + i > 0 && !window_.partitions.Same(rows_.row(first + i - 1), numbers_[i])) end_ = first + i;
    }
    rows_.set_size(first + count);
    return absl::OkStatus();
  }

  WindowSource& source_;
  const std::unique_ptr<RowTable> table_;
  const std::unique_ptr<RunMerge> merge_;
  RowAppender appender_;
  OrderedRows rows_;  // in memory
  const WindowRows window_;
  Segment segment_;
  Chunk merged_;
  std::vector<uint32_t> numbers_, moved_;
  uint64_t end_ = 0;  // in rows_: where the last partition begins
  bool more_ = true;
};

namespace {

/// A task that could not be made.
class FailedTask final : public SourceTask {
 public:
  explicit FailedTask(absl::Status status) : status_(std::move(status)) {}
  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    return context.Fail(status_);
  }

 private:
  const absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WindowSource>> WindowSource::Make(const Sorter& sorter, Options options) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<WindowSource> made, Make(sorter.rows(), std::move(options)));
  made->sorter_ = &sorter;
  return made;
}

absl::StatusOr<std::unique_ptr<WindowSource>> WindowSource::Make(const OrderedRows& rows, Options options) {
  std::vector<plan::Order> order;
  for (const OrderSlot& key : options.order) order.push_back({key.slot, key.descending, key.nulls_first});
  plan::Schema schema = rows.schema();
  for (const plan::WindowCall& call : options.calls) {
    NAM_ASSIGN_OR_RETURN(plan::Slot result, plan::ResultOf(call, rows.schema(), order));
    schema.push_back(std::move(result));
  }
  std::unique_ptr<WindowSource> made(new WindowSource(rows, std::move(options)));
  made->schema_ = std::move(schema);
  return made;
}

std::unique_ptr<SourceTask> WindowSource::NewTask(TaskContext& context) {
  if (sorter_ == nullptr || !sorter_->in_runs()) return std::make_unique<Task>(*this, context);
  absl::StatusOr<std::unique_ptr<RunMerge>> merge = sorter_->NewMerge(context);
  if (!merge.ok()) return std::make_unique<FailedTask>(merge.status());
  const RowLayout& layout = sorter_->plan().layout();
  absl::StatusOr<std::unique_ptr<RowTable>> table =
      RowTable::Make(layout, context.budget(), PagesMax(layout, context.budget()));
  if (!table.ok()) return std::make_unique<FailedTask>(table.status());
  return std::make_unique<MergedTask>(*this, *std::move(table), *std::move(merge), context);
}

uint32_t WindowSource::row_sets() const {
  return 1 + static_cast<uint32_t>(std::count_if(
                 options_.calls.begin(), options_.calls.end(),
                 [](const plan::WindowCall& call) { return FormOf(call) == WindowResults::Form::kRow; }));
}

}  // namespace nam::execution
