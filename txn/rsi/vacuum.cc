#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "storage/record_block.h"
#include "txn/rsi/rsi_client.h"

/// Takes away what no snapshot needs any more, while others read and write:
///
///     horizon raised, the dead that hold it back recovered
///       ─▶ versions, some blocks at a time:   log ─▶ headers by CAS ─▶ words 0, headers back by CAS
///       ─▶ entries, some at a time:           slot: preparing ─▶ has an index changed? ─▶ entries, then
///       their
///                                             records' blocks ─▶ those of dead keys removed ─▶ slot: over
///
/// A version is needed if no other version is between it and the horizon. An entry is dead if every snapshot
/// sees the newest version of its record, and that is deleted or has another key, or if the block is free.
/// The entry is READ before the block: one that is added meanwhile has another tag, and an entry of a commit
/// under way leads to a locked block. What is locked or too young is left for the next time. The slot says
/// that the client writes, so that its memory stays if the index is dropped.
///
/// A log entry says that its record is only locked. So if the client dies, recovery gives the header back and
/// leaves the versions that are still there.
namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;

constexpr size_t kVacuumBlocks = 64;
constexpr size_t kVacuumEntries = 512;
constexpr size_t kVacuumJudged = 64;  // whose blocks are READ together

class VacuumRun {
 public:
  VacuumRun(SessionCore& core, RowReader& reader, IndexKeeper& indexes, uint32_t number, uint64_t horizon)
      : core_(core),
        reader_(reader),
        indexes_(indexes),
        from_(core.table(number)),
        batch_(core.batch),
        number_(number),
        horizon_(horizon) {}

  absl::Status EmptyVersions() {
    NAM_RETURN_IF_ERROR(from_.space().FindNew());
    for (size_t extent = 0; extent < from_.space().extents(); ++extent) {
      NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> read, from_.allocator().ReadWords(batch_, extent));
      const std::vector<uint64_t> words(read.begin(), read.end());
      for (uint64_t i = 0; i < words.size(); ++i) {
        if (words[i] == 0) continue;  // never used
        const uint64_t first = from_.layout().ChunkNumber(extent, i) * kChunkRecords;
        for (uint64_t at = 0; at < kChunkRecords; at += kVacuumBlocks) {
          NAM_RETURN_IF_ERROR(CheckGoesOn());
          NAM_RETURN_IF_ERROR(EmptySome(first + at));
          batch_.Reset();
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status RemoveEntries() {
    std::vector<AllocationId> indexes;
    for (const auto& index : from_.indexes()) indexes.push_back(index->description().allocation);
    for (const AllocationId allocation : indexes) {
      TableIndex* index = OpenIndex(allocation);
      if (index == nullptr) continue;
      OrderedIndex::Cursor cursor = index->Range({}, {});
      while (!cursor.done()) {
        NAM_RETURN_IF_ERROR(CheckGoesOn());
        NAM_RETURN_IF_ERROR(core_.commit_point->AddPrepare(batch_));
        NAM_RETURN_IF_ERROR(indexes_.AddReadChanges());
        NAM_RETURN_IF_ERROR(batch_.Execute());
        NAM_RETURN_IF_ERROR(core_.commit_point->Claimed());
        const absl::Status removed = RemoveSome(allocation, cursor);
        if (core_.channel->broken()) return removed;
        NAM_RETURN_IF_ERROR(core_.commit_point->GiveUp(batch_));
        NAM_RETURN_IF_ERROR(removed);
        batch_.Reset();
        if (OpenIndex(allocation) == nullptr) break;
      }
    }
    return absl::OkStatus();
  }

  const VacuumCounts& counts() const { return counts_; }

 private:
  /// A block with versions that no snapshot needs.
  struct Block {
    uint64_t record = 0;
    RecordHeader header;
    std::vector<uint32_t> slots;  // theirs
  };

  static absl::Status CheckGoesOn() {
    return Interruption::requested() ? absl::CancelledError("cancelled") : absl::OkStatus();
  }
  TableIndex* OpenIndex(AllocationId allocation) {
    for (const auto& index : from_.indexes()) {
      if (index->description().allocation == allocation) return index.get();
    }
    return nullptr;
  }

  absl::Status EmptySome(uint64_t first) {
    NAM_ASSIGN_OR_RETURN(std::vector<Block> blocks, FindOld(first));
    if (blocks.empty()) return absl::OkStatus();
    ClientLog& log = *core_.log;
    NAM_ASSIGN_OR_RETURN(LogEncoder encoder, log.Start(blocks.size() * LoggedBytes(0)));
    for (const Block& block : blocks) {
      encoder.Add({.allocation = from_.description().allocation.value(),
                   .record = block.record | LogEntry::kOnlyLock,
                   .header = block.header.word(),
                   .key_hash = 0},
                  nullptr);
    }
    NAM_RETURN_IF_ERROR(log.AddWrites(encoder));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    core_.transaction.locking = true;
    auto* const olds = batch_.Words(2 * blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      const RecordHeader header = blocks[i].header;
      NAM_RETURN_IF_ERROR(
          from_.AddLock(blocks[i].record, header, header.LockedBy(core_.slot.client), olds + i));
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
    const auto* const empty = new (batch_.Scratch(8)) VersionWord();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Block& block = blocks[i];
      if (olds[i] != block.header.word()) continue;  // another client was faster
      for (const uint32_t slot : block.slots)
        NAM_RETURN_IF_ERROR(from_.AddEmptySlot(block.record, slot, empty));
      counts_.versions += block.slots.size();
      NAM_RETURN_IF_ERROR(from_.AddLock(block.record, block.header.LockedBy(core_.slot.client),
                                        block.header.RolledBack(), olds + blocks.size() + i));
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
    core_.transaction.locking = false;
    return absl::OkStatus();
  }

  // The header is READ before the words, and comes back if nobody has changed one of them.
  absl::StatusOr<std::vector<Block>> FindOld(uint64_t first) {
    const storage::RecordGeometry& geometry = from_.geometry();
    NAM_RETURN_IF_ERROR(core_.CheckScratch(kVacuumBlocks * (geometry.slots + 8) * 8));
    std::vector<const uint64_t*> read;
    for (uint64_t i = 0; i < kVacuumBlocks; ++i) {
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, from_.Block(first + i));
      auto* const words = batch_.Words(1 + geometry.slots);
      batch_.Read(block, reinterpret_cast<std::byte*>(words), 8);
      for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
        storage::Channel::Target at = block;
        at.address.offset += geometry.word_offset(slot);
        batch_.Read(at, reinterpret_cast<std::byte*>(words + 1 + slot), 8);
      }
      read.push_back(words);
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
    std::vector<Block> blocks;
    for (uint64_t i = 0; i < kVacuumBlocks; ++i) {
      Block block{.record = first + i, .header = RecordHeader(read[i][0]), .slots = {}};
      if (block.header.locked() || block.header.timestamp() == 0) continue;
      block.slots = OldSlots(block.header, storage::VersionWords({read[i] + 1, geometry.slots}));
      if (!block.slots.empty()) blocks.push_back(std::move(block));
    }
    return blocks;
  }

  std::vector<uint32_t> OldSlots(RecordHeader header, storage::VersionWords words) const {
    uint64_t needed = 0;  // the oldest version that is
    for (uint32_t slot = 0; slot < words.size(); ++slot) {
      const uint64_t timestamp = words[slot].timestamp();
      if (timestamp <= std::min(horizon_, header.timestamp())) needed = std::max(needed, timestamp);
    }
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < words.size(); ++slot) {
      const uint64_t timestamp = words[slot].timestamp();
      if (timestamp != 0 && timestamp < needed) slots.push_back(slot);
    }
    return slots;
  }

  absl::Status RemoveSome(AllocationId allocation, OrderedIndex::Cursor& cursor) {
    if (!indexes_.unchanged()) NAM_RETURN_IF_ERROR(indexes_.Refresh());
    if (indexes_.dropped(number_)) return AbortStatus(AbortReason::kWriteWrite, "the table was dropped");
    TableIndex* const index = OpenIndex(allocation);
    if (index == nullptr) return absl::OkStatus();
    OrderedIndex::Entries entries;
    NAM_RETURN_IF_ERROR(index->entries().Next(cursor, kVacuumEntries, entries));
    std::vector<OrderedEntry> dead;
    for (size_t at = 0; at < entries.values.size(); at += kVacuumJudged) {
      const size_t count = std::min(kVacuumJudged, entries.values.size() - at);
      NAM_RETURN_IF_ERROR(JudgeSome(*index, entries, at, count, dead));
    }
    std::vector<OrderedIndex::Change> changes;
    for (const OrderedEntry& entry : dead) changes.push_back({.entry = entry.data()});
    NAM_RETURN_IF_ERROR(index->entries().Remove(changes));
    counts_.entries += static_cast<uint64_t>(std::count_if(
        changes.begin(), changes.end(), [](const OrderedIndex::Change& change) { return change.applied; }));
    return absl::OkStatus();
  }

  absl::Status JudgeSome(TableIndex& index, const OrderedIndex::Entries& entries, size_t first, size_t count,
                         std::vector<OrderedEntry>& dead) {
    const size_t kept = batch_.scratch_used();
    const size_t key_bytes = index.description().key_bytes;
    std::vector<BlockRead> blocks(count);
    for (size_t i = 0; i < count; ++i) blocks[i].record = IndexEntry(entries.values[first + i]).record();
    NAM_RETURN_IF_ERROR(core_.CheckScratch(count * (from_.geometry().block_bytes() + 192)));
    NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from_, blocks, RowReader::kNewest));
    for (size_t i = 0; i < count; ++i) {
      const std::span key(entries.keys.data() + (first + i) * key_bytes, key_bytes);
      if (IsDead(index, blocks[i], key))
        dead.push_back(index.entries().shape().Compose(key, entries.values[first + i]));
    }
    batch_.Reset(kept);
    return absl::OkStatus();
  }

  bool IsDead(const TableIndex& index, const BlockRead& block, std::span<const std::byte> key) {
    const RecordHeader header = block.header();
    if (header.free()) return true;
    if (header.locked() || header.timestamp() == 0 || header.timestamp() > horizon_) return false;
    const storage::VersionChoice choice = reader_.Choose(from_, block, RowReader::kNewest);
    if (choice.outcome != storage::VersionChoice::Outcome::kVersion) return false;
    if (choice.version.deleted()) return true;
    const std::byte* const row = block.block + from_.geometry().row_offset(choice.slot);
    return !std::ranges::equal(index.KeyOf(row).view(), key);
  }

  SessionCore& core_;
  RowReader& reader_;
  IndexKeeper& indexes_;
  RecordTable& from_;
  storage::VerbBatch& batch_;
  const uint32_t number_;
  const uint64_t horizon_;
  VacuumCounts counts_;
};

}  // namespace

absl::StatusOr<uint64_t> RsiClient::RaisedHorizon() {
  NAM_RETURN_IF_ERROR(Begin());
  absl::StatusOr<Timestamps::Horizon> raised = timestamps_->RaiseHorizon(batch_);
  if (raised.ok() && raised->held_by != 0) {
    const absl::StatusOr<bool> recovered = recovery_->TryRecover(raised->held_by);
    if (recovered.value_or(false)) raised = timestamps_->RaiseHorizon(batch_);
  }
  NAM_RETURN_IF_ERROR(End(raised.status()));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  return raised->value;
}

absl::StatusOr<VacuumCounts> RsiClient::Vacuum(TableHandle handle) {
  if (!broken_.ok()) return broken_;
  if (transaction_.active) return absl::FailedPreconditionError("a transaction is under way");
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  NAM_ASSIGN_OR_RETURN(const uint64_t horizon, RaisedHorizon());
  VacuumRun run(*core_, reader_, indexes_, handle.value, horizon);
  absl::Status status = run.EmptyVersions();
  if (status.ok()) {
    transaction_.writing = true;
    status = run.RemoveEntries();
    transaction_.writing = false;
  }
  if (transaction_.locking || channel_->broken()) return Lose(status);
  NAM_RETURN_IF_ERROR(status);
  return run.counts();
}

}  // namespace nam::txn
