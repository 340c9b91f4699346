#include "execution/window/window_source.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/window/functions.h"
#include "execution/window/results.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Segments begin with the first partition from each of so many places on.
constexpr uint64_t kSegmentRows = 4 * kChunkRows;

}  // namespace

class WindowSource::Task final : public SourceTask {
 public:
  Task(WindowSource& source, TaskContext& context)
      : source_(source),
        partition_(source.window_, context.budget()),
        numbers_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {
    for (const plan::WindowCall& call : source.options_.calls) {
      const uint32_t slot = call.arguments.empty() ? 0 : call.arguments[0];
      results_.push_back(
          std::make_unique<WindowResults>(FormOf(call), rows().table(), slot, context.budget()));
    }
  }

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    while (done_ == end_) {
      if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
      if (!NextSegment()) return Step::kDone;
      const absl::Status status = Compute(context);
      if (!status.ok()) return context.Fail(status);
    }
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, end_ - done_));
    rows().Read(done_, count, numbers_.get(), out);
    for (size_t c = 0; c < results_.size(); ++c)
      out.columns()[rows().schema().size() + c] = results_[c]->Read(done_ - first_, count);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  const OrderedRows& rows() const { return source_.window_.rows; }

  /// The next one, maybe without rows. False: there is none.
  bool NextSegment() {
    const uint64_t segment = source_.next_segment_.fetch_add(1, std::memory_order_relaxed);
    if (segment >= (rows().size() + kSegmentRows - 1) / kSegmentRows) return false;
    first_ = done_ = source_.window_.PartitionFrom(segment * kSegmentRows);
    end_ = source_.window_.PartitionFrom((segment + 1) * kSegmentRows);
    return true;
  }

  absl::Status Compute(TaskContext& context) {
    for (const auto& results : results_) NAM_RETURN_IF_ERROR(results->Begin(end_ - first_));
    for (uint64_t place = first_; place < end_;) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      const uint64_t end = source_.window_.PartitionEnd(place);
      NAM_RETURN_IF_ERROR(partition_.Begin(place, static_cast<uint32_t>(end - place)));
      for (size_t c = 0; c < results_.size(); ++c) {
        NAM_RETURN_IF_ERROR(RunCall({.context = context,
                                     .call = source_.options_.calls[c],
                                     .schema = rows().schema(),
                                     .partition = partition_,
                                     .results = *results_[c],
                                     .at = place - first_}));
      }
      place = end;
    }
    return absl::OkStatus();
  }

  WindowSource& source_;
  Partition partition_;
  std::vector<std::unique_ptr<WindowResults>> results_;  // by call: of the segment's rows
  uint64_t first_ = 0, done_ = 0, end_ = 0;              // places of the segment
  std::unique_ptr<uint32_t[]> numbers_;
};

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
  return std::make_unique<Task>(*this, context);
}

uint32_t WindowSource::row_sets() const {
  return 1 + static_cast<uint32_t>(std::count_if(
                 options_.calls.begin(), options_.calls.end(),
                 [](const plan::WindowCall& call) { return FormOf(call) == WindowResults::Form::kRow; }));
}

}  // namespace nam::execution
