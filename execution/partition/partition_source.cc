#include "execution/partition/partition_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/group_set.h"
#include "plan/work_cost.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

absl::Status PartTooLarge(const absl::Status& status, const MemoryBudget& budget) {
  if (!absl::IsResourceExhausted(status) || SqlErrorOf(status).has_value()) return status;
  return UserError(sqlstate::kOutOfMemory,
                   absl::StrCat("one part of the groups needs more than the ", budget.bytes() >> 20,
                                " MiB that a query may hold on a server"),
                   -1, "raise nam.result_mib_max, or add a filter");
}

/// What a task merges the states of a part in.
struct MergeTable {
  MergeTable(const AggregatePlan& plan, MemoryBudget& budget)
      : rows(plan, budget), set(plan, rows, budget), states(plan.partial_schema().size(), 0) {}

  AggregateRows rows;
  GroupSet set;
  Chunk states;
  GroupSet::Memory memory;
  uint32_t next = 0;  // group that flows next
};

}  // namespace

class PartitionSource::Task final : public SourceTask {
 public:
  Task(PartitionSource& source, TaskContext& context)
      : source_(source),
        clock_(context.clock()),
        claims_(source.queue_, context.channels().claims, context.clock(), context.cancel()),
        reader_(source.pages_, source.layout_, source.keys_, *context.channels().blocks, context.cancel()),
        began_ns_(clock_.NowNs()) {
    if (source.merge_ != nullptr) merge_ = std::make_unique<MergeTable>(*source.merge_, source.budget_);
  }

  ~Task() override {
    totals_.scan.rows_in = reader_.rows();
    totals_.scan.total_ns = clock_.NowNs() - began_ns_;
    totals_.pages = reader_.scratch().pages();
    totals_.bytes = reader_.scratch().bytes();
    const std::lock_guard lock(source_.mutex_);
    source_.totals_.scan.Add(totals_.scan, &claims_);
    source_.totals_.pages += totals_.pages;
    source_.totals_.bytes += totals_.bytes;
  }

  Step Next(TaskContext& context, Chunk& out) override {
    const absl::StatusOr<bool> more = merge_ == nullptr ? NextRows(context, out) : NextGroups(context, out);
    if (!more.ok()) return context.Fail(more.status());
    if (*more) return Step::kHaveMore;
    out.SelectAll(0);
    return Step::kDone;
  }

 private:
  /// False: no part is left.
  absl::StatusOr<bool> NextPart(TaskContext& context) {
    context.Settle();
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    const std::optional<uint32_t> piece = claims_.Next();
    NAM_RETURN_IF_ERROR(claims_.error());
    if (!piece.has_value()) {
      // A claim that ended because of it is no end of the work.
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      return false;
    }
    reader_.Start(source_.queue_[*piece].partition);
    reading_ = true;
    return true;
  }

  absl::StatusOr<bool> NextRows(TaskContext& context, Chunk& out) {
    while (true) {
      if (reading_) {
        if (context.cancelled()) return absl::CancelledError("the query was cancelled");
        NAM_ASSIGN_OR_RETURN(reading_, reader_.Next(out));
        if (reading_) {
          context.Charge(out.selection().count, plan::work_cost::kFinishRowPs);
          return true;
        }
      }
      NAM_ASSIGN_OR_RETURN(const bool part, NextPart(context));
      if (!part) return false;
    }
  }

  absl::StatusOr<bool> NextGroups(TaskContext& context, Chunk& out) {
    while (merge_->next == merge_->set.size()) {
      NAM_ASSIGN_OR_RETURN(const bool part, NextPart(context));
      if (!part) return false;
      merge_->set.Reset();
      merge_->next = 0;
      NAM_RETURN_IF_ERROR(PartTooLarge(MergePart(context), source_.budget_));
    }
    const uint32_t first = merge_->next, count = std::min(kChunkRows, merge_->set.size() - first);
    merge_->next += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    NAM_RETURN_IF_ERROR(merge_->set.ReadFinal(first, count, merge_->memory, out));
    return true;
  }

  absl::Status MergePart(TaskContext& context) {
    while (true) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      NAM_ASSIGN_OR_RETURN(reading_, reader_.Next(merge_->states));
      if (!reading_) return absl::OkStatus();
      context.Charge(merge_->states.selection().count, plan::work_cost::kCombineGroupPs);
      NAM_RETURN_IF_ERROR(merge_->set.Consume(merge_->states));
    }
  }

  PartitionSource& source_;
  Clock& clock_;
  PieceClaims claims_;
  PartReader reader_;
  std::unique_ptr<MergeTable> merge_;
  bool reading_ = false;  // a part
  const int64_t began_ns_;
  Totals totals_;
};

absl::StatusOr<std::unique_ptr<PartitionSource>> PartitionSource::Make(const Options& options,
                                                                       PieceQueue& queue,
                                                                       MemoryBudget& budget) {
  for (const partitioner::Piece& piece : queue.pieces()) {
    if (piece.partition >= options.parts || piece.first_block != 0 || piece.blocks != 1)
      return absl::InvalidArgumentError("a piece that is no part");
  }
  NAM_ASSIGN_OR_RETURN(PartPages pages,
                       PartPages::Make(options.directories, options.pipeline, options.parts, options.layout));
  return std::unique_ptr<PartitionSource>(new PartitionSource(options, std::move(pages), queue, budget));
}

std::unique_ptr<SourceTask> PartitionSource::NewTask(TaskContext& context) {
  return std::make_unique<Task>(*this, context);
}

PartitionSource::Totals PartitionSource::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace nam::execution
