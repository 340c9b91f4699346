#include <algorithm>
#include <cstring>
#include <vector>

#include "base/status_macros.h"
#include "txn/rsi/row_scanner.h"

namespace nam::txn {
namespace {

constexpr size_t kWindowMin = 16;
constexpr size_t kWindowMax = 256;
// A transaction that has met more rows than this reads the few that it changes again.
constexpr size_t kMetByScansMax = 256;
constexpr size_t kMetBytesMax = 256 * 1024;

}  // namespace

absl::Status RowScanner::SortOwnRows(uint32_t number, const TableIndex& index) {
  const size_t key_bytes = index.description().key_bytes;
  std::vector<OwnRow>& own = own_rows_.rows;
  own.clear();
  own_rows_.keys.Clear();
  own_rows_.index = {};
  core_.transaction.sorted_bytes = 0;
  const auto belongs = [&](const PendingWrite& write) {
    return write.table == number && write.kind != PendingWrite::Kind::kDelete;
  };
  const auto count = static_cast<size_t>(std::count_if(writes_.begin(), writes_.end(), belongs));
  const uint64_t bytes = count * (sizeof(OwnRow) + (key_bytes + 7) / 8 * 8);
  NAM_RETURN_IF_ERROR(core_.CheckScratch(bytes));
  core_.transaction.sorted_bytes = bytes;
  own.reserve(count);
  for (const PendingWrite& write : writes_) {
    if (!belongs(write)) continue;
    std::byte* const key = own_rows_.keys.Take(key_bytes);
    index.WriteKey(write.row, key);
    own.push_back({key, write.row});
  }
  std::stable_sort(own.begin(), own.end(), [&](const OwnRow& a, const OwnRow& b) {
    return std::memcmp(a.key, b.key, key_bytes) < 0;
  });
  own_rows_.index = index.description().allocation;
  own_rows_.version = writes_.version();
  return absl::OkStatus();
}

// A statement over many rows scans once for each of them, between its writes or after them all.
absl::StatusOr<std::span<const RowScanner::OwnRow>> RowScanner::OwnRowsOf(uint32_t number,
                                                                          const TableIndex& index,
                                                                          std::span<const std::byte> low,
                                                                          std::span<const std::byte> high) {
  const std::vector<OwnRow>& own = own_rows_.rows;
  if (own_rows_.index != index.description().allocation || own_rows_.version != writes_.version())
    NAM_RETURN_IF_ERROR(SortOwnRows(number, index));
  const auto begin = std::partition_point(
      own.begin(), own.end(), [&](const OwnRow& row) { return TableIndex::Before(row.key, low); });
  const auto end = std::partition_point(begin, own.end(),
                                        [&](const OwnRow& row) { return TableIndex::Below(row.key, high); });
  return std::span<const OwnRow>(begin, end);
}

/// Merges the transaction's own writes with what the snapshot sees: READs a window of entries, then their
/// blocks.
class RowScanner::IndexScan {
 public:
  IndexScan(RowScanner& scanner, uint32_t number, TableIndex& index, std::span<const OwnRow> own,
            const RowVisitor& visit)
      : scanner_(scanner),
        number_(number),
        from_(scanner.table(number)),
        index_(index),
        own_(own),
        visit_(visit) {}

  absl::Status Run(OrderedIndex::Cursor cursor) {
    const size_t kept = scanner_.batch_.scratch_used();
    for (size_t window = kWindowMin; more_ && !cursor.done(); window = std::min(2 * window, kWindowMax)) {
      NAM_RETURN_IF_ERROR(Collect(cursor, window));
      NAM_RETURN_IF_ERROR(scanner_.indexes_.AddReadChanges());
      NAM_RETURN_IF_ERROR(scanner_.reader_.ReadBlocks(from_, blocks_, scanner_.transaction_.snapshot));
      NAM_RETURN_IF_ERROR(scanner_.batch_.Execute());
      NAM_RETURN_IF_ERROR(CheckKept());
      for (size_t i = 0; i < blocks_.size() && more_; ++i) Visit(blocks_[i], keys_[i]);
      scanner_.batch_.Reset(kept);
    }
    while (more_ && own_next_ < own_.size()) VisitOwn();
    return absl::OkStatus();
  }

 private:
  absl::Status Collect(OrderedIndex::Cursor& cursor, size_t window) {
    const uint64_t read_bytes = from_.geometry().block_bytes() + 192;
    window = std::clamp<size_t>(scanner_.batch_.scratch_at_hand() / 2 / read_bytes, 1, window);
    NAM_RETURN_IF_ERROR(scanner_.core_.CheckScratch(SessionCore::kIndexScratchBytes + window * read_bytes));
    blocks_.clear();
    keys_.clear();
    while (blocks_.size() < window && !cursor.done()) {
      NAM_RETURN_IF_ERROR(index_.entries().Next(cursor, window - blocks_.size(), entries_));
      for (size_t i = 0; i < entries_.values.size(); ++i) Add(i);
    }
    return absl::OkStatus();
  }

  // Entries of one record with one key are adjacent.
  void Add(size_t i) {
    IndexKey key{.size = index_.description().key_bytes};
    std::copy_n(entries_.keys.begin() + static_cast<ptrdiff_t>(i * key.size), key.size, key.bytes.begin());
    const uint64_t record = IndexEntry(entries_.values[i]).record();
    if (any_ && record == last_record_ && key == last_key_) return;
    any_ = true;
    last_record_ = record;
    last_key_ = key;
    blocks_.push_back({.record = record});
    keys_.push_back(key);
  }

  // Commits that the snapshot sees have maintained the index, unless it was dropped before it was read.
  absl::Status CheckKept() {
    if (scanner_.indexes_.unchanged()) return absl::OkStatus();
    const AllocationId self = index_.description().allocation;
    NAM_RETURN_IF_ERROR(scanner_.indexes_.Refresh());
    return scanner_.indexes_.IndexOf(number_, self).status();
  }

  void Visit(const BlockRead& block, const IndexKey& key) {
    const storage::VersionChoice choice = scanner_.reader_.Choose(from_, block);
    if (choice.outcome != storage::VersionChoice::Outcome::kVersion || choice.version.deleted()) return;
    const std::span<const std::byte> row(block.block + from_.geometry().row_offset(choice.slot),
                                         from_.geometry().row_bytes);
    if (index_.KeyOf(row.data()) != key) return;
    const std::span<const std::byte> primary = row.first(from_.description().key_bytes);
    const uint64_t hash = from_.HashOf(primary);
    if (scanner_.writes_.Find(number_, hash, primary) != nullptr) return;
    Meet({.table = number_,
          .key = primary,
          .hash = hash,
          .state = SoughtRow::State::kVisible,
          .record = block.record,
          .header = block.header(),
          .version = choice.version,
          .victim = storage::VictimSlot(block.version_words(from_.geometry()), block.header().timestamp()),
          .row = row.data()});
    while (more_ && own_next_ < own_.size() && Precedes(own_[own_next_], key)) VisitOwn();
    more_ = more_ && visit_(row);
  }

  // The transaction may change the row without another READ.
  void Meet(const SoughtRow& row) {
    MetRows& met = scanner_.core_.transaction.rows;
    const size_t bytes = from_.geometry().row_bytes;
    if (met.size() >= kMetByScansMax || met.bytes() + bytes > kMetBytesMax) return;
    if (row.header.locked()) return;  // when it is changed, the lock may be gone
    if (met.Find(row.table, row.hash, row.key) == nullptr) met.AddCopy(row, bytes);
  }
  static bool Precedes(const OwnRow& own, const IndexKey& key) {
    return std::memcmp(own.key, key.bytes.data(), key.size) < 0;
  }
  void VisitOwn() { more_ = visit_({own_[own_next_++].row, from_.geometry().row_bytes}); }

  RowScanner& scanner_;
  const uint32_t number_;
  RecordTable& from_;
  TableIndex& index_;
  const std::span<const OwnRow> own_;
  const RowVisitor& visit_;
  bool more_ = true;
  size_t own_next_ = 0;
  OrderedIndex::Entries entries_;
  std::vector<BlockRead> blocks_;
  std::vector<IndexKey> keys_;  // by record: the key of its entry
  bool any_ = false;
  uint64_t last_record_ = 0;
  IndexKey last_key_;
};

absl::Status RowScanner::ScanIndex(uint32_t number, AllocationId wanted, std::span<const std::byte> low,
                                   std::span<const std::byte> high, const RowVisitor& visit) {
  NAM_ASSIGN_OR_RETURN(TableIndex* const index, indexes_.IndexOf(number, wanted));
  NAM_ASSIGN_OR_RETURN(const std::span<const OwnRow> own, OwnRowsOf(number, *index, low, high));
  IndexScan scan(*this, number, *index, own, visit);
  return scan.Run(index->Range(low, high));
}

}  // namespace nam::txn
