#include "execution/partition/partition_sink.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/group_keys.h"
#include "execution/partition/parts.h"
#include "plan/expression_tree.h"
#include "plan/slot_of.h"

namespace nam::execution {

class PartitionSink::Task final : public SinkTask {
 public:
  Task(PartitionSink& sink, TaskContext& context)
      : sink_(sink),
        scratch_(sink.space_, *context.channels().scratch, sink.rows_.layout.page_bytes(), context.cancel()),
        writer_(sink.rows_, *sink.slots_, scratch_, sink.budget_) {
    if (sink.not_null_ != nullptr) not_null_.emplace(sink.not_null_->NewFrame());
  }

  Step Consume(TaskContext& context, const Chunk& in) override {
    Selection tuples = in.selection();
    if (not_null_.has_value()) {
      const std::optional<uint32_t> kept = SelectWhere(*sink_.not_null_, *not_null_, in, tuples, kept_);
      if (!kept.has_value()) return context.Fail(not_null_->error());
      null_rows_ += tuples.count - *kept;
      tuples = {kept_, *kept};
    }
    const absl::Status status = writer_.Append(context, in, tuples);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    const absl::Status status = writer_.Finish(context);
    if (!status.ok()) return context.Fail(status);
    sink_.output_.Add(writer_, null_rows_);
    return Step::kDone;
  }

 private:
  PartitionSink& sink_;
  storage::ScratchWriter scratch_;
  PartitionWriter writer_;
  std::optional<Frame> not_null_;
  uint64_t null_rows_ = 0;
  uint32_t kept_[kChunkRows];  // tuples without a NULL key
};

namespace {

/// A condition for each key that may be NULL; nullptr: none may.
absl::StatusOr<std::unique_ptr<const Program>> NotNull(const PartitionSink::Options& options) {
  std::vector<plan::Expr> conditions;
  for (const uint32_t key : options.by.keys) {
    if (!options.rows[key].nullable) continue;
    plan::Expr null =
        plan::MakeNode(plan::Op::kIsNull, Type::Bool(), -1, {plan::SlotExpr(options.rows, key)});
    conditions.push_back(plan::MakeNode(plan::Op::kNot, Type::Bool(), -1, {std::move(null)}));
  }
  if (conditions.empty()) return nullptr;
  return Program::Compile(conditions, options.rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PartitionSink>> PartitionSink::Make(const Options& options,
                                                                   storage::ScratchSpace& space,
                                                                   MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(RowLayout layout, PartLayout(options.rows, options.by.parts));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> slots,
                       Program::Compile(SlotsOf(options.rows), options.rows));
  std::unique_ptr<const Program> not_null;
  if (options.counts_nulls) {
    NAM_ASSIGN_OR_RETURN(not_null, NotNull(options));
  }
  const uint64_t share = budget.bytes() / 2 / static_cast<uint64_t>(std::max(options.threads, 1));
  const uint64_t pages = std::clamp<uint64_t>(share / layout.page_bytes(), 1, options.by.parts);
  PartedRows rows{std::move(layout), options.by, options.attempt, static_cast<uint32_t>(pages)};
  return std::unique_ptr<PartitionSink>(
      new PartitionSink(std::move(rows), std::move(slots), std::move(not_null), space, budget));
}

std::unique_ptr<SinkTask> PartitionSink::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().scratch != nullptr, "parts are written over a channel of their own");
  return std::make_unique<Task>(*this, context);
}

}  // namespace nam::execution
