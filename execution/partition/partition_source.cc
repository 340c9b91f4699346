#include "execution/partition/partition_source.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/charge_groups.h"
#include "execution/aggregate/group_set.h"
#include "execution/partition/parts.h"
#include "plan/work_cost.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

absl::Status PartTooLarge(const MemoryBudget& budget) {
  return UserError(sqlstate::kOutOfMemory,
                   absl::StrCat("one part of the groups needs more than the ", budget.bytes() >> 20,
                                " MiB that a query may hold on a server"),
                   -1, "raise nam.result_mib_max, or add a filter");
}

/// Of the two layouts of a page the one with more rows. Rows are wider than states where a number is wider
/// than its count.
const RowLayout& LayoutOfMostRows(const PartitionSource::Options& options) {
  if (options.merge == nullptr) return options.layout;
  const RowLayout& rows = options.merge->row_layout();
  return rows.rows_max() > options.layout.rows_max() ? rows : options.layout;
}

}  // namespace

class PartitionSource::Task final : public SourceTask {
 public:
  Task(PartitionSource& source, TaskContext& context)
      : source_(source),
        clock_(context.clock()),
        claims_(source.queue_, context.channels().claims, context.clock(), context.cancel()),
        began_ns_(clock_.NowNs()) {
    Begin(context);
  }

  ~Task() override {
    EndReading();
    totals_.scan.total_ns = clock_.NowNs() - began_ns_;
    const MutexLock lock(source_.mutex_);
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
  /// The memory for merging the states of a part.
  struct MergeTable {
    MergeTable(const AggregatePlan& plan, MemoryBudget& budget)
        : rows(plan, budget),
          set(plan, rows, budget),
          read(std::max(plan.partial_layout().fields(), plan.row_layout().fields()), 0) {}

    AggregateRows rows;
    GroupSet set;
    Chunk read;  // states, or rows
    GroupSet::Memory memory;
    uint32_t next = 0;  // the next group to emit
    uint32_t present[kChunkRows];
  };

  /// False: no part is left.
  absl::StatusOr<bool> NextPart(TaskContext& context) {
    context.Settle();
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    const std::optional<uint32_t> piece = claims_.Next();
    NAM_RETURN_IF_ERROR(claims_.error());
    if (!piece.has_value()) {
      // Claims that end by cancellation do not end the work.
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      return false;
    }
    part_ = source_.queue_[*piece].partition;
    slice_ = {};
    return true;
  }

  absl::StatusOr<bool> NextRows(TaskContext& context, Chunk& out) {
    while (true) {
      if (reading_) {
        if (context.cancelled()) return absl::CancelledError("the query was cancelled");
        NAM_ASSIGN_OR_RETURN(reading_, reader_->Next(out));
        if (reading_) {
          context.Charge(out.selection().count, plan::work_cost::kFinishRowPs);
          return true;
        }
      }
      NAM_ASSIGN_OR_RETURN(const bool part, NextPart(context));
      if (!part) return false;
      reader_->Start(part_);
      reading_ = true;
    }
  }

  absl::StatusOr<bool> NextGroups(TaskContext& context, Chunk& out) {
    while (true) {
      while (merge_->next == merge_->set.size()) {
        if (!merging_ || !AdvanceSlice(0, slice_)) {
          NAM_ASSIGN_OR_RETURN(merging_, NextPart(context));
          if (!merging_) return false;
        }
        NAM_RETURN_IF_ERROR(MergeSlice(context));
      }
      const uint32_t first = merge_->next, count = std::min(kChunkRows, merge_->set.size() - first);
      merge_->next += count;
      const uint32_t kept = merge_->set.SelectPresent(first, count, merge_->present);
      if (kept == 0) continue;
      context.Charge(kept, plan::work_cost::kFinishRowPs);
      NAM_RETURN_IF_ERROR(merge_->set.ReadFinal(first, count, merge_->memory, out));
      if (kept < count) out.Select(merge_->present, kept);
      return true;
    }
  }

  /// Merges the groups of slice_, or of its first half that fits.
  absl::Status MergeSlice(TaskContext& context) {
    while (true) {
      merge_->set.Reset(RangeOfSlice());
      merge_->next = 0;
      reader_->Start(part_, slice_);
      const absl::Status status = ReadStates(context);
      if (!IsTooLarge(status)) return status;
      if (slice_.bits == kSliceBitsMax) return PartTooLarge(source_.budget_);
      slice_ = {slice_.bits + 1, slice_.number * 2};
      Begin(context);
    }
  }

  absl::Status ReadStates(TaskContext& context) {
    while (true) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      NAM_ASSIGN_OR_RETURN(const bool more, reader_->Next(merge_->read));
      if (!more) return absl::OkStatus();
      context.Charge(merge_->read.selection().count, plan::work_cost::kCombineGroupPs);
      NAM_RETURN_IF_ERROR(reader_->is_other() ? merge_->set.ConsumeRows(merge_->read)
                                              : merge_->set.Consume(merge_->read));
      ChargeGroups(context, *source_.merge_, merge_->set, merge_->read.selection().count);
    }
  }

  /// The slice's numbers of the domain.
  Groups::Range RangeOfSlice() const {
    const plan::KeyDomain& domain = source_.by_.domain;
    if (!domain.known()) return {};
    const auto part_bits = static_cast<uint32_t>(std::countr_zero(source_.by_.parts));
    const uint32_t rest = domain.bits - part_bits, bits = slice_.bits <= rest ? slice_.bits : 0;
    const uint64_t number = bits == 0 ? part_ : (uint64_t{part_} << bits) + slice_.number;
    return {number << (rest - bits), uint64_t{1} << (rest - bits)};
  }

  /// Begins anew, without memory of earlier input.
  void Begin(TaskContext& context) {
    EndReading();
    reader_.emplace(source_.pages_, source_.layout_, source_.by_, *context.channels().blocks, source_.budget_,
                    context.cancel(), source_.merge_ == nullptr ? nullptr : &source_.merge_->row_layout());
    merge_.reset();
    if (source_.merge_ != nullptr) merge_ = std::make_unique<MergeTable>(*source_.merge_, source_.budget_);
  }
  void EndReading() {
    if (!reader_.has_value()) return;
    totals_.scan.rows_in += reader_->rows();
    totals_.pages += reader_->scratch().pages();
    totals_.bytes += reader_->scratch().bytes();
    reader_.reset();
  }

  PartitionSource& source_;
  Clock& clock_;
  PieceClaims claims_;
  std::optional<PartReader> reader_;
  std::unique_ptr<MergeTable> merge_;
  bool reading_ = false;  // emits rows of a part
  bool merging_ = false;  // part_; slice_ is the one whose groups are emitted
  uint32_t part_ = 0;
  PartSlice slice_;
  const int64_t began_ns_;
  Totals totals_;
};

absl::StatusOr<std::unique_ptr<PartitionSource>> PartitionSource::Make(const Options& options,
                                                                       PieceQueue& queue,
                                                                       MemoryBudget& budget) {
  for (const partitioner::Piece& piece : queue.pieces()) {
    if (piece.partition >= options.by.parts || piece.first_block != 0 || piece.blocks != 1)
      return absl::InvalidArgumentError("a piece that is no part");
  }
  NAM_ASSIGN_OR_RETURN(PartPages pages, PartPages::Make(options.directories, options.pipeline,
                                                        options.by.parts, LayoutOfMostRows(options)));
  return std::unique_ptr<PartitionSource>(new PartitionSource(options, std::move(pages), queue, budget));
}

std::unique_ptr<SourceTask> PartitionSource::NewTask(TaskContext& context) {
  return std::make_unique<Task>(*this, context);
}

void PartitionSource::Totals::Count(proto::PipelineCounters& out) const {
  scan.Count(out);
  out.set_scratch_pages_read(pages);
  out.set_scratch_bytes_read(bytes);
}

PartitionSource::Totals PartitionSource::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

}  // namespace nam::execution
