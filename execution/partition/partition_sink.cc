#include "execution/partition/partition_sink.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/group_keys.h"
#include "execution/partition/parts.h"

namespace nam::execution {

class PartitionSink::Task final : public SinkTask {
 public:
  Task(PartitionSink& sink, TaskContext& context)
      : sink_(sink),
        writer_(sink.rows_, *sink.slots_, sink.space_, *context.channels().scratch, sink.budget_,
                context.cancel()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const absl::Status status = writer_.Append(context, in);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    const absl::Status status = writer_.Finish(context);
    if (!status.ok()) return context.Fail(status);
    sink_.output_.Add(writer_);
    return Step::kDone;
  }

 private:
  PartitionSink& sink_;
  PartitionWriter writer_;
};

absl::StatusOr<std::unique_ptr<PartitionSink>> PartitionSink::Make(const Options& options,
                                                                   storage::ScratchSpace& space,
                                                                   MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(RowLayout layout, PartLayout(options.rows, options.parts));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> slots,
                       Program::Compile(SlotsOf(options.rows), options.rows));
  const uint64_t share = budget.bytes() / 2 / static_cast<uint64_t>(std::max(options.threads, 1));
  const uint64_t pages = std::clamp<uint64_t>(share / layout.page_bytes(), 1, options.parts);
  PartedRows rows{std::move(layout), options.keys, options.parts, options.attempt,
                  static_cast<uint32_t>(pages)};
  return std::unique_ptr<PartitionSink>(new PartitionSink(std::move(rows), std::move(slots), space, budget));
}

std::unique_ptr<SinkTask> PartitionSink::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().scratch != nullptr, "parts are written over a channel of their own");
  return std::make_unique<Task>(*this, context);
}

}  // namespace nam::execution
