#include "txn/snapshot_scan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "txn/session.h"
#include "txn/transaction_state.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionChoice;
using Outcome = storage::VersionChoice::Outcome;

constexpr int kRoundsMax = 10'000;
constexpr int kRoundsAtOnce = 8;  // READs of moving blocks before a pause
constexpr int64_t kPauseUs = 10;
constexpr int kRoundsBeforeRecovery = 100;
constexpr uint64_t kAskScratchBytes = 64;  // per block in doubt

absl::Status CheckCancel(const ReadAt& at) {
  if (at.cancel == nullptr || !at.cancel->load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::CancelledError("the scan was cancelled");
}

/// Lets the session recover the holders that some blocks still wait for, now and then: it asks whether their
/// members live.
absl::Status RecoverHolders(std::span<BlockRead* const> blocks, const ReadAt& at, int round) {
  if (at.recover == nullptr || round % kRoundsBeforeRecovery != kRoundsBeforeRecovery - 1)
    return absl::OkStatus();
  uint32_t last = 0;
  for (const BlockRead* block : blocks) {
    const uint32_t holder = block->header().client();
    if (holder == 0 || holder == std::exchange(last, holder)) continue;
    NAM_RETURN_IF_ERROR((*at.recover)(holder));
  }
  return absl::OkStatus();
}

/// Brings the slots of blocks whose words alone have arrived.
absl::Status ReadVisibleSlots(const RecordBlocks& from, std::span<BlockRead* const> blocks,
                              const ReadAt& at) {
  bool any = false;
  for (BlockRead* block : blocks) {
    if (from.IsWhole(*block)) continue;
    const VersionChoice choice = ChooseVersion(from, *block, at);
    if (choice.outcome != Outcome::kVersion) continue;
    NAM_RETURN_IF_ERROR(from.AddReadSlot(*block, choice.slot));
    any = true;
  }
  if (!any) return absl::OkStatus();
  for (const BlockRead* block : blocks) from.FetchSlot(block->in_place, block->slot);
  NAM_RETURN_IF_ERROR(from.batch().Execute());
  for (BlockRead* block : blocks) from.CopySlot(*block);
  return absl::OkStatus();
}

/// The largest window that fits, at most `most`; 0: none.
uint64_t WindowOf(const RecordLayout& layout, const storage::VerbBatch& batch, uint64_t most) {
  const uint64_t left = batch.scratch_left(), fixed = SnapshotScan::ScratchOf(layout, 0);
  return left < fixed ? 0 : std::min(most, (left - fixed) / (SnapshotScan::ScratchOf(layout, 1) - fixed));
}

}  // namespace

RecordLayout LayoutOf(const TableDescription& table) {
  return RecordLayout::Of(storage::RecordGeometry::Of(table.row_bytes, table.versions), table.extent_bytes);
}

absl::Status AskHolders(storage::VerbBatch& batch, ExtentSpace& state, std::span<BlockRead* const> blocks) {
  const size_t kept = batch.scratch_used();
  std::vector<const uint64_t*> words;
  for (BlockRead* block : blocks) {
    block->holder = {.client = RecordHeader(*block->before).client()};
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at,
                         state.Resolve(StateGeometry::slot(block->holder.client) + kSlotWordOffset));
    words.push_back(batch.ReadWord(at));
  }
  NAM_RETURN_IF_ERROR(batch.Execute());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const SlotWord word(*words[i]);
    blocks[i]->holder.committing = word.fate() == SlotFate::kCommitting ? word.timestamp() : 0;
  }
  batch.Reset(kept);
  return absl::OkStatus();
}

VersionChoice ChooseVersion(const RecordBlocks& from, const BlockRead& block, const ReadAt& at) {
  const auto words = block.version_words(from.geometry());
  const RecordHeader before(*block.before), trusted = RecordHeader::Unlocked(before.timestamp());
  const VersionChoice choice =
      at.torn ? storage::ChooseVersion(trusted, words, trusted, at.snapshot)
              : storage::ChooseVersion(before, words, block.header(), at.snapshot, block.holder);
  // A slot's word arrives again with its row, and may then name another slot.
  const bool other = block.slot != BlockRead::kNoSlot && block.slot != choice.slot;
  return other && choice.outcome == Outcome::kVersion ? VersionChoice{.outcome = Outcome::kMoved} : choice;
}

absl::Status ReadVersions(const RecordBlocks& from, std::span<BlockRead> blocks, const ReadAt& at,
                          Clock& clock) {
  std::vector<BlockRead*> waiting, again, in_doubt;
  for (BlockRead& block : blocks) waiting.push_back(&block);
  for (int round = 0; !waiting.empty(); ++round) {
    if (round == kRoundsMax) return AbortStatus(AbortReason::kSnapshotTooOld, "a row that keeps changing");
    NAM_RETURN_IF_ERROR(CheckCancel(at));
    if (round > kRoundsAtOnce) clock.SleepUntil(clock.After(kPauseUs));
    for (BlockRead* block : waiting) {
      NAM_RETURN_IF_ERROR(block->block == nullptr ? from.AddRead(*block) : from.AddReadAgain(*block));
    }
    for (const BlockRead* block : waiting) from.FetchWords(block->in_place);
    NAM_RETURN_IF_ERROR(from.batch().Execute());
    for (BlockRead* block : waiting) from.CopyWords(*block);
    NAM_RETURN_IF_ERROR(ReadVisibleSlots(from, waiting, at));
    again.clear();
    in_doubt.clear();
    for (BlockRead* block : waiting) {
      const VersionChoice choice = ChooseVersion(from, *block, at);
      if (choice.outcome == Outcome::kTooOld)
        return AbortStatus(AbortReason::kSnapshotTooOld, "a row of " + from.table());
      if (choice.outcome == Outcome::kInDoubt) in_doubt.push_back(block);
      if (choice.outcome == Outcome::kMoved || choice.outcome == Outcome::kInDoubt) again.push_back(block);
    }
    if (!in_doubt.empty()) NAM_RETURN_IF_ERROR(AskHolders(from.batch(), *at.state, in_doubt));
    NAM_RETURN_IF_ERROR(RecoverHolders(again, at, round));
    std::swap(waiting, again);
  }
  return absl::OkStatus();
}

uint64_t SnapshotScan::ScratchOf(const RecordLayout& layout, uint64_t window) {
  const uint64_t words = RecordLayout::WordsBytes(layout.chunks);
  return words + 64 + window * (RecordBlocks::ScratchOf(layout.geometry) + kAskScratchBytes);
}

SnapshotScan::SnapshotScan(const RecordBlocks& from, Clock& clock, const Options& options)
    : from_(from), clock_(clock), options_(options), blocks_(options.window) {
  NAM_CHECK(options.window > 0);
  words_ = reinterpret_cast<uint64_t*>(from_.batch().Scratch(from_.layout().chunks * 8));
  horizon_ = reinterpret_cast<uint64_t*>(from_.batch().Scratch(8));
  rows_.reserve(options.window);
}

absl::Status SnapshotScan::Start(const Run& run) {
  const RecordLayout& layout = from_.layout();
  NAM_CHECK(run.first_chunk <= layout.chunks && run.chunks <= layout.chunks - run.first_chunk,
            "a run of chunks lies within an extent");
  run_ = run;
  chunk_ = at_ = 0;
  if (run.chunks == 0) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(CheckCancel(options_.at));
  const uint64_t first = layout.ChunkNumber(run.extent, run.first_chunk);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target words,
                       from_.space().Resolve(layout.ChunkPosition(first)));
  const uint64_t there = layout.ChunksIn(from_.space().BytesOf(run.extent));
  run_.chunks = std::min(run.chunks, there - std::min(there, run.first_chunk));
  if (run_.chunks == 0) return absl::OkStatus();
  from_.batch().Read(words, reinterpret_cast<std::byte*>(words_), static_cast<uint32_t>(run_.chunks * 8));
  return from_.batch().Execute();
}

// A chunk that was unused when the run began has no visible row: the snapshot is older.
size_t SnapshotScan::Fill() {
  const uint64_t first = from_.layout().ChunkNumber(run_.extent, run_.first_chunk);
  size_t count = 0;
  while (count < blocks_.size() && chunk_ < run_.chunks) {
    if (words_[chunk_] == 0) {
      ++chunk_;
      continue;
    }
    const uint64_t some = std::min<uint64_t>(blocks_.size() - count, kChunkRecords - at_);
    for (uint64_t i = 0; i < some; ++i) blocks_[count++].record = (first + chunk_) * kChunkRecords + at_ + i;
    at_ += some;
    if (at_ < kChunkRecords) break;
    at_ = 0;
    ++chunk_;
  }
  return count;
}

absl::StatusOr<std::span<const std::byte* const>> SnapshotScan::Next() {
  rows_.clear();
  while (rows_.empty()) {
    const std::span<BlockRead> batch = std::span(blocks_).first(Fill());
    if (batch.empty()) break;
    NAM_RETURN_IF_ERROR(ReadVersions(from_, batch, options_.at, clock_));
    NAM_RETURN_IF_ERROR(CheckHorizon());
    blocks_read_ += batch.size();
    for (const BlockRead& block : batch) {
      const VersionChoice choice = ChooseVersion(from_, block, options_.at);
      if (choice.outcome != Outcome::kVersion || choice.version.deleted()) continue;
      rows_.push_back(block.block + from_.geometry().row_offset(choice.slot));
    }
  }
  return std::span<const std::byte* const>(rows_);
}

// Runs after the blocks' completions: the horizon must not be older than they are.
absl::Status SnapshotScan::CheckHorizon() {
  if (!options_.checks_horizon) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, options_.at.state->Resolve(kHorizonOffset));
  from_.batch().Read(at, reinterpret_cast<std::byte*>(horizon_), 8);
  NAM_RETURN_IF_ERROR(from_.batch().Execute());
  if (*horizon_ <= options_.at.snapshot) return absl::OkStatus();
  return AbortStatus(AbortReason::kSnapshotTooOld,
                     "rows of " + from_.table() + " that the snapshot sees are no longer kept");
}

RecordReader::RecordReader(const TableDescription& table, storage::Channel& channel, ExtentSpace records,
                           ExtentSpace state)
    : batch_(channel),
      records_(std::move(records)),
      state_(std::move(state)),
      blocks_(records_, LayoutOf(table), batch_, table.name) {}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const TableDescription& table,
                                                                 const TransactionState& state,
                                                                 storage::Channel& channel,
                                                                 const Options& options) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace state_space, ExtentSpace::Open(channel, state.extents, kStateBytes));
  NAM_ASSIGN_OR_RETURN(ExtentSpace records, ExtentSpace::Open(channel, table.records, table.extent_bytes));
  std::unique_ptr<RecordReader> reader(
      new RecordReader(table, channel, std::move(records), std::move(state_space)));
  const uint64_t window =
      WindowOf(reader->layout(), reader->batch_, std::max<uint64_t>(options.window_max, 1));
  if (window == 0) {
    return absl::ResourceExhaustedError(absl::StrCat("a block of table ", table.name, " does not fit the ",
                                                     channel.buffer().bytes() >> 10,
                                                     " KiB that a thread reads into"));
  }
  reader->scan_ = std::make_unique<SnapshotScan>(
      reader->blocks_, channel.fabric().clock(),
      SnapshotScan::Options{
          .at = {.snapshot = options.snapshot, .state = &reader->state_, .cancel = options.cancel},
          .window = window,
          .checks_horizon = true});
  return reader;
}

absl::Status RecordReader::Start(const SnapshotScan::Run& run) {
  return Judge(scan_->Start(run));
}

absl::StatusOr<std::span<const std::byte* const>> RecordReader::Next() {
  absl::StatusOr<std::span<const std::byte* const>> rows = scan_->Next();
  if (!rows.ok()) return Judge(rows.status());
  return rows;
}

// The table's source knows whether it still exists.
absl::Status RecordReader::Judge(const absl::Status& failed) {
  if (failed.ok() || AbortReasonOf(failed).has_value() || absl::IsCancelled(failed)) return failed;
  if (!absl::IsNotFound(records_.FindNew())) return failed;
  return AbortStatus(AbortReason::kSnapshotTooOld,
                     "table " + blocks_.table() + " was dropped while it was read");
}

}  // namespace nam::txn
