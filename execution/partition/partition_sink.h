#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/partition/scratch_output.h"
#include "execution/task.h"
#include "plan/schema.h"

namespace nam::execution {

/// Writes rows by parts to scratch memory (plan::PartitionSink).
class PartitionSink final : public Sink {
 public:
  struct Options {
    plan::Schema rows;
    PartBy by;                  // fields are slots
    bool counts_nulls = false;  // counts rows with a NULL key instead of writing them
    uint64_t attempt = 0;
    int threads = 1;  // share half of the budget for their open pages
  };
  /// Space and budget outlive the sink.
  static absl::StatusOr<std::unique_ptr<PartitionSink>> Make(const Options& options,
                                                             storage::ScratchSpace& space,
                                                             MemoryBudget& budget);

  /// Tasks write over the context's channel for scratch memory.
  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  bool writes_scratch() const override { return true; }
  void Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const override {
    output_.Report(attempt, pipeline, out);
  }
  void Count(proto::PipelineCounters& out) const override { output_.Count(out); }
  /// Complete after all tasks.
  const ScratchOutput& output() const { return output_; }

 private:
  class Task;
  PartitionSink(PartedRows rows, std::unique_ptr<const Program> slots,
                std::unique_ptr<const Program> not_null, storage::ScratchSpace& space, MemoryBudget& budget)
      : rows_(std::move(rows)),
        slots_(std::move(slots)),
        not_null_(std::move(not_null)),
        space_(space),
        budget_(budget) {}

  const PartedRows rows_;
  const std::unique_ptr<const Program> slots_;
  const std::unique_ptr<const Program> not_null_;  // if the sink counts NULLs: selects rows without NULL keys
  storage::ScratchSpace& space_;
  MemoryBudget& budget_;
  ScratchOutput output_;
};

}  // namespace nam::execution
