#include "execution/partition/partition_join.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "execution/partition/parts.h"
#include "plan/shared_side.h"
#include "plan/work_cost.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::JoinKind;
using plan::SharedSide;

/// The most bytes of a build row beside its bytes at rest: heads and links of its table.
constexpr uint64_t kTableBytesOfRow = 20;

/// Whether rows of the build side are emitted without a partner, too.
bool DrainsBuild(JoinKind kind) {
  return kind == JoinKind::kRight || kind == JoinKind::kFull;
}

/// Whether an empty build side means an empty result.
bool NeedsPartners(JoinKind kind) {
  return kind == JoinKind::kInner || kind == JoinKind::kSemi || kind == JoinKind::kRight;
}

bool IsPiece(const partitioner::Piece& piece, JoinKind kind, uint32_t parts) {
  const bool whole = piece.first_block == 0 && piece.blocks == 1;
  return piece.partition < parts && piece.first_block < piece.blocks &&
         (whole || plan::SharedSideOf(kind, 0, 0) != SharedSide::kNone);
}

}  // namespace

class PartitionJoin::Task final : public SourceTask {
 public:
  /// A task without a share does nothing.
  Task(PartitionJoin& source, std::optional<uint64_t> share_bytes, TaskContext& context)
      : source_(source),
        idle_(!share_bytes.has_value()),
        clock_(context.clock()),
        budget_(share_bytes.value_or(0), source.options_.grant),
        claims_(source.queue_, context.channels().claims, context.clock(), context.cancel()),
        build_input_(source.options_.built.layout.fields(), 0),
        probe_input_(source.options_.probed.layout.fields(), 0),
        began_ns_(clock_.NowNs()) {}

  ~Task() override {
    EndReading();
    probing_.reset();
    totals_.scan.total_ns = clock_.NowNs() - began_ns_;
    const MutexLock lock(source_.mutex_);
    source_.totals_.scan.Add(totals_.scan, &claims_);
    source_.totals_.pages += totals_.pages;
    source_.totals_.bytes += totals_.bytes;
    source_.slices_ += slices_;
  }

  Step Next(TaskContext& context, Chunk& out) override {
    while (true) {
      if (probing_ == nullptr) {
        const absl::StatusOr<bool> more = NextSlice(context);
        if (!more.ok()) return context.Fail(more.status());
        if (!*more) {
          out.SelectAll(0);
          return Step::kDone;
        }
      }
      if (context.cancelled()) return context.Fail(QueryCancelled());
      const Step step = Probe(context, out);
      if (step == Step::kFailed) return step;
      if (step == Step::kDone) {
        EndReading();
        probing_.reset();
      } else if (out.selection().count > 0) {
        return Step::kHaveMore;
      }
    }
  }

 private:
  /// The table of a slice and its probe, this task's alone.
  struct Probing {
    std::unique_ptr<RowBuild> build;
    std::unique_ptr<StepOperator> probe;
    std::unique_ptr<StepTask> task;
    bool pushing = false;  // the probe has more for its input
    bool drained = false;  // the probe side has no more rows
  };

  /// Builds the next slice of a part that has rows to join. False: no part is left.
  absl::StatusOr<bool> NextSlice(TaskContext& context) {
    while (true) {
      context.Settle();
      if (context.cancelled()) return QueryCancelled();
      if (!slicing_) {
        NAM_ASSIGN_OR_RETURN(const bool part, NextPart(context));
        if (!part) return false;
      } else if (!AdvanceSlice(least_bits_, slice_)) {
        slicing_ = false;
        continue;
      }
      absl::StatusOr<std::unique_ptr<RowBuild>> build = Build(context);
      while (!build.ok() && IsTooLarge(build.status())) {
        if (slice_.bits == SliceBitsMax()) return TooLarge(source_.built_.RowsOf(part_));
        slice_ = {slice_.bits + 1, slice_.number * 2};
        build = Build(context);
      }
      NAM_RETURN_IF_ERROR(build.status());
      ++slices_;
      if ((*build)->empty() && NeedsPartners(source_.options_.probe.kind)) continue;
      NAM_RETURN_IF_ERROR(StartProbing(context, *std::move(build)));
      return true;
    }
  }

  /// Claims a part, and decides the least number of slices that fit.
  absl::StatusOr<bool> NextPart(const TaskContext& context) {
    while (!idle_) {
      const std::optional<uint32_t> piece = claims_.Next();
      NAM_RETURN_IF_ERROR(claims_.error());
      // Claims that end by cancellation do not end the work.
      if (context.cancelled()) return QueryCancelled();
      if (!piece.has_value()) return false;
      Begin(source_.queue_[*piece]);
      const JoinKind kind = source_.options_.probe.kind;
      const uint64_t rows =
          (source_.built_.RowsOf(part_) + share_of_built_.count - 1) / share_of_built_.count;
      if (rows == 0 && NeedsPartners(kind)) continue;
      if (source_.probed_.RowsOf(part_) == 0 && !DrainsBuild(kind)) continue;
      const uint64_t bytes =
          rows * (source_.options_.build.layout.stride() + kTableBytesOfRow) + HeadsBytes();
      least_bits_ = 0;
      while (bytes >> least_bits_ > budget_.bytes()) ++least_bits_;
      if (least_bits_ > SliceBitsMax()) return TooLarge(rows);
      slice_ = {least_bits_, 0};
      slicing_ = true;
      return true;
    }
    return false;
  }

  void Begin(const partitioner::Piece& piece) {
    part_ = piece.partition;
    const PartShare share{piece.first_block, piece.blocks};
    const bool of_built = plan::SharedSideOf(source_.options_.probe.kind, source_.probed_.RowsOf(part_),
                                             source_.built_.RowsOf(part_)) == SharedSide::kBuilt;
    share_of_probed_ = of_built ? PartShare{} : share;
    share_of_built_ = of_built ? share : PartShare{};
  }

  /// For a part of a domain as a whole.
  uint64_t HeadsBytes() const {
    const PartBy& by = source_.options_.built.by;
    if (!by.domain.known()) return 0;
    return DomainTable::BytesNeeded({by.domain, static_cast<uint32_t>(std::countr_zero(by.parts))});
  }
  uint32_t SliceBitsMax() const {
    const PartBy& by = source_.options_.built.by;
    if (!by.domain.known()) return kSliceBitsMax;
    return std::min(kSliceBitsMax, by.domain.bits - static_cast<uint32_t>(std::countr_zero(by.parts)));
  }

  absl::StatusOr<std::unique_ptr<RowBuild>> Build(TaskContext& context) {
    // Its errors are not final: the slice may be halved.
    TaskContext building(clock_, budget_, context.cancel(), context.channels());
    RowBuild::Options options = source_.options_.build;
    const PartBy& by = source_.options_.built.by;
    if (by.domain.known())
      options.domain = {by.domain, static_cast<uint32_t>(std::countr_zero(by.parts)) + slice_.bits};
    absl::StatusOr<std::unique_ptr<RowBuild>> build = RowBuild::Make(std::move(options), budget_);
    NAM_RETURN_IF_ERROR(build.status());
    const absl::Status status = Fill(building, **build);
    EndReading();
    building.Settle();
    NAM_RETURN_IF_ERROR(status);
    return build;
  }

  absl::Status Fill(TaskContext& building, RowBuild& build) {
    Read(building, source_.built_, source_.options_.built, share_of_built_);
    const std::unique_ptr<SinkTask> task = build.NewTask(building);
    while (true) {
      if (building.cancelled()) return QueryCancelled();
      NAM_ASSIGN_OR_RETURN(const std::span<const std::byte> page, reader_->NextWhole());
      if (!page.empty()) {
        NAM_RETURN_IF_ERROR(build.AddPage(page));
        continue;
      }
      NAM_ASSIGN_OR_RETURN(const bool more, reader_->Next(build_input_));
      if (!more) break;
      if (task->Consume(building, build_input_) == Step::kFailed) return building.error();
    }
    if (task->Finish(building) == Step::kFailed) return building.error();
    const uint32_t parts = build.CombineParts();
    for (uint32_t part = 0; part < parts; ++part) NAM_RETURN_IF_ERROR(build.Combine(building, part));
    return absl::OkStatus();
  }

  absl::Status StartProbing(TaskContext& context, std::unique_ptr<RowBuild> build) {
    auto probing = std::make_unique<Probing>();
    probing->build = std::move(build);
    NAM_ASSIGN_OR_RETURN(probing->probe, probing->build->NewProbe(source_.options_.probe));
    probing->task = probing->probe->NewTask(context);
    probing_ = std::move(probing);
    Read(context, source_.probed_, source_.options_.probed, share_of_probed_);
    return absl::OkStatus();
  }

  /// kHaveMore: `out` has the rows of this call, perhaps none. kDone: the slice has no more.
  Step Probe(TaskContext& context, Chunk& out) {
    if (!probing_->pushing && !probing_->drained) {
      const absl::StatusOr<bool> more = reader_->Next(probe_input_);
      if (!more.ok()) return context.Fail(more.status());
      probing_->pushing = *more;
      probing_->drained = !*more;
      if (*more) context.Charge(probe_input_.selection().count, plan::work_cost::kFinishRowPs);
    }
    if (!probing_->pushing) return probing_->task->Drain(context, out);
    const Step step = probing_->task->Push(context, probe_input_, out);
    if (step == Step::kFailed) return step;
    probing_->pushing = step == Step::kHaveMore;
    return Step::kHaveMore;
  }

  // One side at a time has the channel.
  void Read(TaskContext& context, const PartPages& pages, const Side& side, PartShare share) {
    reader_.emplace(pages, side.layout, side.by, *context.channels().blocks, budget_, context.cancel());
    reader_->Start(part_, slice_, share);
  }
  void EndReading() {
    if (!reader_.has_value()) return;
    totals_.scan.rows_in += reader_->rows();
    totals_.pages += reader_->scratch().pages();
    totals_.bytes += reader_->scratch().bytes();
    reader_.reset();
  }

  /// For a part with so many rows on its build side.
  absl::Status TooLarge(uint64_t rows) const {
    return UserError(
        sqlstate::kOutOfMemory,
        absl::StrFormat("a part of a join with %d rows has too many with equal keys: a thread of "
                        "the server may hold %d KiB of them",
                        rows, budget_.bytes() >> 10),
        -1, "raise nam.build_mib_max, add a filter, or run fewer queries at a time");
  }

  PartitionJoin& source_;
  const bool idle_;
  Clock& clock_;
  MemoryBudget budget_;  // this task's share of the source's
  PieceClaims claims_;
  std::optional<PartReader> reader_;
  Chunk build_input_, probe_input_;
  std::unique_ptr<Probing> probing_;
  uint32_t part_ = 0;
  PartShare share_of_probed_, share_of_built_;  // of part_; at most one is a real share
  bool slicing_ = false;                        // part_ has been begun; slice_ was built last
  uint32_t least_bits_ = 0;
  PartSlice slice_;
  uint64_t slices_ = 0;
  const int64_t began_ns_;
  PartitionSource::Totals totals_;
};

absl::StatusOr<std::unique_ptr<PartitionJoin>> PartitionJoin::Make(Options options, PieceQueue& queue,
                                                                   MemoryBudget& budget) {
  for (const partitioner::Piece& piece : queue.pieces()) {
    if (!IsPiece(piece, options.probe.kind, options.built.by.parts))
      return absl::InvalidArgumentError("a piece that is no part");
  }
  const auto pages_of = [&](const Side& side) {
    return PartPages::Make(options.directories, side.pipeline, side.by.parts, side.layout, side.counts_nulls);
  };
  NAM_ASSIGN_OR_RETURN(PartPages probed, pages_of(options.probed));
  NAM_ASSIGN_OR_RETURN(PartPages built, pages_of(options.built));
  if (options.built.counts_nulls) options.probe.facts = {built.empty(), built.has_null_rows()};
  return std::unique_ptr<PartitionJoin>(
      new PartitionJoin(std::move(options), std::move(probed), std::move(built), queue, budget));
}

void PartitionJoin::ShareMemory() {
  uint64_t left = budget_.bytes() - budget_.used();
  if (options_.grant != nullptr) left = std::min(left, (options_.grant->bytes_most() - budget_.used()) / 4);
  share_bytes_ = std::max(left / static_cast<uint64_t>(options_.threads), std::min(left, kLeastShareBytes));
  shares_ = share_bytes_ == 0 ? 1 : left / share_bytes_;
}

std::unique_ptr<SourceTask> PartitionJoin::NewTask(TaskContext& context) {
  std::optional<uint64_t> share_bytes;
  {
    const MutexLock lock(mutex_);
    if (tasks_++ == 0) ShareMemory();
    if (tasks_ <= shares_) share_bytes = share_bytes_;
  }
  return std::make_unique<Task>(*this, share_bytes, context);
}

PartitionSource::Totals PartitionJoin::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

uint64_t PartitionJoin::slices() const {
  const MutexLock lock(mutex_);
  return slices_;
}

}  // namespace nam::execution
