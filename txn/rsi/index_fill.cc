#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "txn/rsi/rsi_client.h"

/// Adds and removes an index while others commit:
///
///     the catalog says so ─▶ AwaitCommits: count the change, READ all slots,
///                            wait until those that were claimed or skipped have left that state
///
/// From then on every commit has seen the count, since it READs it after its claim. A commit that is
/// committing has made its entries, and changes no index any more; a skipped one may, until it is over. The
/// index is then filled with the newest versions of all rows: the writers of newer ones enter them, and the
/// snapshots that may use the index, which begin after a second AwaitCommits, do not need older ones.
namespace nam::txn {
namespace {

constexpr uint64_t kRowsAtOnce = 64;
constexpr int kSnapshotsMax = 100;
constexpr int64_t kSlotsPauseUs = 50;
constexpr int kRoundsBeforeRecovery = 100;

/// Between two windows nothing is in flight, so the session stays whole.
absl::Status MayGoOn() {
  return Interruption::requested() ? absl::CancelledError("cancelled") : absl::OkStatus();
}

class IndexFill {
 public:
  IndexFill(SessionCore& core, RowReader& reader, uint32_t number, TableIndex& index)
      : core_(core), reader_(reader), from_(core.table(number)), batch_(core.batch), index_(index) {}

  absl::Status EnterRows() {
    NAM_RETURN_IF_ERROR(from_.space().FindNew());
    for (size_t extent = 0; extent < from_.space().extents(); ++extent) {
      NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> read, from_.allocator().ReadWords(batch_, extent));
      const std::vector<uint64_t> words(read.begin(), read.end());
      for (uint64_t i = 0; i < words.size(); ++i) {
        if (words[i] == 0) continue;  // never used
        const uint64_t first = from_.layout().ChunkNumber(extent, i) * kChunkRecords;
        for (uint64_t at = 0; at < kChunkRecords; at += kRowsAtOnce) {
          NAM_RETURN_IF_ERROR(MayGoOn());
          NAM_RETURN_IF_ERROR(EnterSome(first + at));
        }
      }
    }
    return absl::OkStatus();
  }

  /// Checks at the session's snapshot, whose transaction is under way.
  absl::Status CheckUnique() {
    OrderedIndex::Entries entries;
    const size_t key_bytes = index_.description().key_bytes;
    for (OrderedIndex::Cursor cursor = index_.Range({}, {}); !cursor.done();) {
      NAM_RETURN_IF_ERROR(MayGoOn());
      NAM_RETURN_IF_ERROR(index_.entries().Next(cursor, SIZE_MAX, entries));
      for (size_t i = 0; i < entries.values.size(); ++i) {
        IndexKey key{.size = index_.description().key_bytes};
        std::copy_n(entries.keys.begin() + static_cast<ptrdiff_t>(i * key_bytes), key_bytes,
                    key.bytes.begin());
        NAM_RETURN_IF_ERROR(Meet(key, IndexEntry(entries.values[i]).record()));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status EnterSome(uint64_t first) {
    batch_.Reset();
    std::vector<BlockRead> blocks(kRowsAtOnce);
    for (uint64_t i = 0; i < kRowsAtOnce; ++i) blocks[i].record = first + i;
    NAM_RETURN_IF_ERROR(core_.CheckScratch(kRowsAtOnce * (from_.geometry().block_bytes() + 192)));
    NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from_, blocks, RowReader::kNewest));
    const OrderedShape& shape = index_.entries().shape();
    std::vector<OrderedEntry> entries;
    for (const BlockRead& block : blocks) {
      const storage::VersionChoice choice = reader_.Choose(from_, block, RowReader::kNewest);
      if (choice.outcome != storage::VersionChoice::Outcome::kVersion || choice.version.deleted()) continue;
      std::byte* const entry = entries.emplace_back().data();
      index_.WriteKey(block.block + from_.geometry().row_offset(choice.slot), entry);
      shape.SetValue(entry, IndexEntry(block.record, IndexEntry::kFirstTag).word());
    }
    batch_.Reset();
    std::sort(entries.begin(), entries.end(), [&](const OrderedEntry& a, const OrderedEntry& b) {
      return shape.Compare(a.data(), b.data()) < 0;
    });
    std::vector<OrderedIndex::Change> changes;
    for (const OrderedEntry& entry : entries) changes.push_back({.entry = entry.data()});
    return index_.entries().Insert(changes);
  }

  // Only a key with a second record needs a look at rows.
  absl::Status Meet(const IndexKey& key, uint64_t record) {
    if (!any_ || key != key_) {
      any_ = true;
      key_ = key;
      last_ = record;
      counted_ = false;
      holders_ = 0;
      return absl::OkStatus();
    }
    if (record == last_) return absl::OkStatus();
    if (!counted_) NAM_RETURN_IF_ERROR(Count(last_));
    counted_ = true;
    last_ = record;
    NAM_RETURN_IF_ERROR(Count(record));
    if (holders_ < 2) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("two rows of ", from_.description().name,
                                                 " have the same key of index ", index_.description().name));
  }

  absl::Status Count(uint64_t record) {
    const size_t kept = batch_.scratch_used();
    BlockRead block{.record = record};
    NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from_, {&block, 1}, core_.transaction.snapshot));
    const storage::VersionChoice choice = reader_.Choose(from_, block);
    if (choice.outcome == storage::VersionChoice::Outcome::kVersion && !choice.version.deleted()) {
      const IndexKey key = index_.KeyOf(block.block + from_.geometry().row_offset(choice.slot));
      if (key == key_ && !key.any_null) ++holders_;
    }
    batch_.Reset(kept);
    return absl::OkStatus();
  }

  SessionCore& core_;
  RowReader& reader_;
  RecordTable& from_;
  storage::VerbBatch& batch_;
  TableIndex& index_;
  // The current key.
  bool any_ = false;
  IndexKey key_;
  uint64_t last_ = 0;     // its last record
  bool counted_ = false;  // whether that record was checked
  int holders_ = 0;       // rows that have the key
};

}  // namespace

absl::StatusOr<uint64_t> RsiClient::AwaitCommits() {
  if (!broken_.ok()) return broken_;
  if (transaction_.active) return absl::FailedPreconditionError("a transaction is under way");
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target changes, core_->state.Resolve(kIndexChangesOffset));
  batch_.FetchAdd(changes, 1, batch_.Word());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(AwaitSlots());
  NAM_ASSIGN_OR_RETURN(const uint64_t newest, timestamps_->Newest(batch_));
  last_commit_ = std::max(last_commit_, newest);  // for Begin to wait for
  indexes_.SetStale();
  NAM_RETURN_IF_ERROR(Begin());
  const uint64_t snapshot = transaction_.snapshot;
  NAM_RETURN_IF_ERROR(End(absl::OkStatus()));
  if (snapshot < last_commit_) return absl::UnavailableError("the session does not see its own commits");
  return snapshot;
}

// Waits for a stalled client until it is fenced: it may be writing to an index.
absl::Status RsiClient::AwaitSlots() {
  Clock& clock = tables_.fabric().clock();
  Deadline deadline = clock.After(options_.own_commit_timeout_us);
  NAM_ASSIGN_OR_RETURN(std::vector<UnderWay> under_way, FindUnderWay(core_->state, core_->geometry, batch_));
  for (int round = 1;; ++round) {
    const std::vector<UnderWay> before = under_way;
    NAM_RETURN_IF_ERROR(RemoveOver(core_->state, batch_, under_way));
    if (under_way != before)
      deadline = clock.After(options_.own_commit_timeout_us);  // one is over, or goes on
    if (under_way.empty()) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(MayGoOn());
    if (clock.Passed(deadline)) {
      return absl::UnavailableError(absl::StrCat("the commit of client ", under_way[0].client, " hangs"));
    }
    if (round % kRoundsBeforeRecovery == 0) {
      for (const UnderWay& other : under_way) recovery_->TryRecover(other.client).status().IgnoreError();
      if (channel_->broken()) return Lose(absl::UnavailableError("a connection to a memory server broke"));
    }
    clock.SleepUntil(clock.After(kSlotsPauseUs));
  }
}

absl::StatusOr<uint64_t> RsiClient::FillIndex(TableHandle handle, AllocationId wanted) {
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  NAM_RETURN_IF_ERROR(AwaitCommits().status());
  NAM_ASSIGN_OR_RETURN(TableIndex* const filled, indexes_.IndexOf(handle.value, wanted));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  NAM_RETURN_IF_ERROR(IndexFill(*core_, reader_, handle.value, *filled).EnterRows());
  batch_.Reset();
  NAM_ASSIGN_OR_RETURN(const uint64_t complete, AwaitCommits());
  const uint64_t usable_from = std::max<uint64_t>(complete, 1);  // 0 says that it is being filled
  // AwaitCommits has asked the catalog, which closes an index that another session has dropped meanwhile.
  NAM_ASSIGN_OR_RETURN(TableIndex* const index, indexes_.IndexOf(handle.value, wanted));
  if (!index->description().unique) return usable_from;
  for (int i = 0; i < kSnapshotsMax; ++i) {
    NAM_RETURN_IF_ERROR(Begin());
    const absl::Status unique = IndexFill(*core_, reader_, handle.value, *index).CheckUnique();
    // Rows may change faster than they are read: retries at a newer snapshot.
    const bool again = AbortReasonOf(unique) == AbortReason::kSnapshotTooOld;
    NAM_RETURN_IF_ERROR(End(absl::OkStatus()));
    if (again) continue;
    NAM_RETURN_IF_ERROR(unique);
    return usable_from;
  }
  return AbortStatus(AbortReason::kSnapshotTooOld, "rows change faster than they can be read");
}

}  // namespace nam::txn
