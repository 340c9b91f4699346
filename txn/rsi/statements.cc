#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "txn/rsi/rsi_client.h"

/// The statements of a transaction. Until Commit, rows_ holds their reads and writes_ their writes.
namespace nam::txn {
namespace {

constexpr size_t kFewLookups = 64;
constexpr size_t kFetchedInserts = 32;  // beyond, they arrive faster than their lines

}  // namespace

absl::Status RsiClient::Read(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(CheckActive());
  const size_t kept = batch_.scratch_used(), rows_before = rows_.size();
  NAM_RETURN_IF_ERROR(Seek(lookups));
  if (absl::Status status = reader_.Find(sought_); !status.ok()) return End(status);
  NAM_RETURN_IF_ERROR(Deliver(lookups));
  KeepMet(kept, rows_before);
  return absl::OkStatus();
}

// Where memory is in place, entries are only prefetched before the snapshot is taken. Of keys looked up
// before the snapshot was known, only those whose rows it sees count: a row tells its first timestamp, an
// index does not.
absl::Status RsiClient::BeginAndRead(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(Seek(lookups));
  if (reader_.StartInPlace(sought_)) {
    NAM_RETURN_IF_ERROR(BeginWith({}));
    if (reader_.ReadInPlace(sought_)) return Deliver(lookups);
    NAM_RETURN_IF_ERROR(Seek(lookups));
    if (absl::Status status = reader_.FindInRounds(sought_); !status.ok()) return End(status);
    return Deliver(lookups);
  }
  NAM_RETURN_IF_ERROR(BeginWith(sought_));
  absl::Status status;
  if (looked_up_early_) status = reader_.ReadLookedUp(sought_);
  const bool all_visible = std::all_of(sought_.begin(), sought_.end(), [](const SoughtRow& row) {
    return row.state == SoughtRow::State::kVisible;
  });
  if (status.ok() && !all_visible) {
    NAM_RETURN_IF_ERROR(Seek(lookups));
    status = reader_.Find(sought_);
  }
  if (!status.ok()) return End(status);
  return Deliver(lookups);
}

// Fills sought_, without rows that the transaction has written itself.
absl::Status RsiClient::Seek(std::span<const Lookup> lookups) {
  sought_.clear();
  for (const Lookup& lookup : lookups) {
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.key.size(), false));
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.row.size(), true));
    const uint32_t number = lookup.table.value;
    const uint64_t hash = table(number).HashOf(lookup.key);
    const bool own = writes_.Find(number, hash, lookup.key) != nullptr;
    SoughtRow& sought = sought_.emplace_back();
    sought.table = own ? SoughtRow::kNoTable : number;
    sought.key = lookup.key;
    sought.hash = hash;
  }
  return absl::OkStatus();
}

absl::Status RsiClient::Deliver(std::span<Lookup> lookups) {
  for (size_t i = 0; i < lookups.size(); ++i) {
    const SoughtRow& row = sought_[i];
    if (row.table == SoughtRow::kNoTable) {
      const PendingWrite* const write = writes_.Find(lookups[i].table.value, row.hash, row.key);
      lookups[i].found = write->kind != PendingWrite::Kind::kDelete;
      if (lookups[i].found) std::memcpy(lookups[i].row.data(), write->row, lookups[i].row.size());
      continue;
    }
    lookups[i].found = row.state == SoughtRow::State::kVisible;
    NAM_ASSIGN_OR_RETURN(lookups[i].met, Meet(row));
    if (lookups[i].found) std::memcpy(lookups[i].row.data(), row.row, lookups[i].row.size());
  }
  return absl::OkStatus();
}

// The row's number; kNotMet if there is none.
absl::StatusOr<uint32_t> RsiClient::Meet(const SoughtRow& row) {
  if (row.state == SoughtRow::State::kTooOld) {
    return End(AbortStatus(AbortReason::kSnapshotTooOld,
                           absl::StrCat("a row of ", table(row.table).description().name)));
  }
  if (row.state != SoughtRow::State::kVisible) return Lookup::kNotMet;
  const SoughtRow* const met = rows_.Find(row.table, row.hash, row.key);
  return rows_.NumberOf(met != nullptr ? *met : rows_.Add(row));
}

// A statement of many rows READs several times their size.
void RsiClient::KeepMet(size_t scratch_before, size_t rows_before) {
  const bool many = sought_.size() > kFewLookups;
  if (many)
    rows_.MoveToArena(rows_before, [this](uint32_t number) { return table(number).geometry().row_bytes; });
  // No row that must stay is left.
  if (many || rows_.size() == rows_before) batch_.Reset(scratch_before);
}

absl::Status RsiClient::Scan(TableHandle handle, const RowVisitor& visit) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  const absl::Status status = scanner_.Scan(handle.value, visit);
  return status.ok() ? status : End(status);
}

absl::Status RsiClient::ScanIndex(TableHandle handle, AllocationId wanted, std::span<const std::byte> low,
                                  std::span<const std::byte> high, const RowVisitor& visit) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  const absl::Status status = scanner_.ScanIndex(handle.value, wanted, low, high, visit);
  return status.ok() ? status : End(status);
}

absl::Status RsiClient::VisitWrites(TableHandle handle, const WriteVisitor& visit) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  const RecordTable& of = table(handle.value);
  for (const PendingWrite& write : writes_) {
    if (write.table != handle.value || write.only_locks()) continue;
    const std::span<const std::byte> row(write.row, of.geometry().row_bytes);
    const bool deleted = write.kind == PendingWrite::Kind::kDelete;
    if (!visit(row.first(of.description().key_bytes), deleted ? std::span<const std::byte>() : row)) break;
  }
  return absl::OkStatus();
}

absl::Status RsiClient::MayWrite(size_t rows) const {
  const uint64_t more = rows - std::min(rows, writes_.size());
  return core_->CheckScratch(more * (sizeof(PendingWrite) + SessionCore::kCommitBytes));
}

absl::Status RsiClient::RollBackTo(size_t mark) {
  NAM_RETURN_IF_ERROR(CheckActive());
  writes_.RollBackTo(mark);
  return absl::OkStatus();
}

absl::Status RsiClient::TableError(TableHandle handle, size_t bytes, bool whole_row) {
  NAM_RETURN_IF_ERROR(EnsureOpen(handle));
  const TableDescription& description = core_->open[handle.value]->description();
  const uint32_t wanted = whole_row ? description.row_bytes : description.key_bytes;
  if (bytes == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s of table %s has %d bytes, not %d", whole_row ? "a row" : "a key", description.name, wanted, bytes));
}

absl::Status RsiClient::Write(std::span<const RowWrite> writes) {
  NAM_RETURN_IF_ERROR(CheckActive());
  uint64_t bytes = 0;
  for (const RowWrite& write : writes) {
    const bool whole_row = write.kind == RowWrite::Kind::kInsert || write.kind == RowWrite::Kind::kUpdate;
    NAM_RETURN_IF_ERROR(CheckTable(write.table, write.row.size(), whole_row));
    const RecordTable& to = table(write.table.value);
    bytes += to.geometry().block_bytes() + (whole_row ? to.change_bytes() : 0);
  }
  bytes += writes.size() * (sizeof(PendingWrite) + SessionCore::kInsertBytes);
  if (absl::Status fits = core_->CheckScratch(bytes); !fits.ok()) return End(fits);
  NAM_RETURN_IF_ERROR(ReadUnmet(writes));
  for (const RowWrite& write : writes) NAM_RETURN_IF_ERROR(WriteOne(write));
  return absl::OkStatus();
}

// Rows that a scan has passed, or that compute servers have found, are not met yet.
absl::Status RsiClient::ReadUnmet(std::span<const RowWrite> writes) {
  sought_.clear();
  for (const RowWrite& write : writes) {
    if (write.kind == RowWrite::Kind::kInsert || write.met != Lookup::kNotMet) continue;
    const uint32_t number = write.table.value;
    const std::span<const std::byte> key = write.row.first(table(number).description().key_bytes);
    const uint64_t hash = table(number).HashOf(key);
    if (writes_.Find(number, hash, key) != nullptr || rows_.Find(number, hash, key) != nullptr) continue;
    SoughtRow& sought = sought_.emplace_back();
    sought.table = number;
    sought.key = key;
    sought.hash = hash;
  }
  if (sought_.empty()) return absl::OkStatus();
  const size_t kept = batch_.scratch_used(), rows_before = rows_.size();
  if (absl::Status status = reader_.Find(sought_); !status.ok()) return End(status);
  for (const SoughtRow& row : sought_) NAM_RETURN_IF_ERROR(Meet(row).status());
  KeepMet(kept, rows_before);
  return absl::OkStatus();
}

absl::Status RsiClient::WriteOne(const RowWrite& write) {
  const uint32_t number = write.table.value;
  const std::span<const std::byte> key = write.row.first(table(number).description().key_bytes);
  const SoughtRow* known = rows_.Find(write.met, number, key);
  const uint64_t hash = known != nullptr ? known->hash : table(number).HashOf(key);
  if (PendingWrite* const own = writes_.Find(number, hash, key); own != nullptr) return WriteOwn(write, *own);
  if (known == nullptr) known = rows_.Find(number, hash, key);
  if (write.kind == RowWrite::Kind::kInsert) {
    if (known != nullptr) return EndWithKeyTaken(number);
    AddInsert(number, hash, write.row);
    return absl::OkStatus();
  }
  if (known == nullptr) return End(absl::NotFoundError("the snapshot has no such row"));
  return WriteKnown(write, *known);
}

// Changes a row that the transaction has already written.
absl::Status RsiClient::WriteOwn(const RowWrite& write, PendingWrite& own) {
  const bool deleted = own.kind == PendingWrite::Kind::kDelete;
  if (write.kind == RowWrite::Kind::kInsert && !deleted) return EndWithKeyTaken(own.table);
  if (write.kind != RowWrite::Kind::kInsert && deleted)
    return End(absl::NotFoundError("the row was deleted"));
  if (write.kind == RowWrite::Kind::kLock) return absl::OkStatus();  // its commit locks the record anyway
  writes_.NoteChange(own, table(own.table).geometry().row_bytes);
  if (write.kind == RowWrite::Kind::kDelete) {
    own.withdrawn = own.kind == PendingWrite::Kind::kInsert;
    own.kind = PendingWrite::Kind::kDelete;
    return absl::OkStatus();
  }
  std::memcpy(own.row, write.row.data(), write.row.size());
  own.withdrawn = false;
  if (own.only_locks()) own.kind = PendingWrite::Kind::kUpdate;
  if (deleted) own.kind = own.fresh ? PendingWrite::Kind::kInsert : PendingWrite::Kind::kUpdate;
  writes_.ReserveEntries(own, table(own.table).change_bytes());
  return absl::OkStatus();
}

std::byte* RsiClient::CopyRow(uint32_t number, const std::byte* row, bool whole_block) {
  const storage::RecordGeometry& geometry = table(number).geometry();
  const uint32_t bytes = geometry.row_offset(0) + geometry.row_bytes;
  std::byte* const block = batch_.Scratch(whole_block ? geometry.block_bytes() : bytes);
  std::byte* const copy = block + geometry.row_offset(0);
  std::memcpy(copy, row, geometry.row_bytes);
  if (whole_block) std::memset(block + bytes, 0, geometry.block_bytes() - bytes);
  return copy;
}

absl::Status RsiClient::EndWithKeyTaken(uint32_t number) {
  return End(AbortStatus(AbortReason::kUniqueKey,
                         absl::StrCat("a row of ", table(number).description().name, " has this key")));
}

void RsiClient::AddInsert(uint32_t number, uint64_t hash, std::span<const std::byte> row) {
  // The prefetch of the last one covers its neighbour.
  const bool beside = !writes_.empty() && writes_.back().fresh && writes_.back().table == number &&
                      table(number).index().SameRoot(writes_.back().hash, hash);
  std::byte* const copy = CopyRow(number, row.data(), table(number).WritesWholeBlocks());
  PendingWrite& write = writes_.Add(PendingWrite::Kind::kInsert, number, hash, copy);
  write.fresh = true;
  writes_.ReserveEntries(write, table(number).change_bytes());
  if (channel_->in_place() && !beside && writes_.size() <= kFetchedInserts) FetchForInsert(write);
}

// Prefetches the lines that the commit will read and write, while the transaction goes on: for an update the
// header, which was read, and the victim; for an insert the key's place in the index and the record.
void RsiClient::FetchForUpdate(const PendingWrite& update) {
  const storage::RecordGeometry& geometry = table(update.table).geometry();
  const std::byte* const block = batch_.InPlace(update.block, geometry.block_bytes());
  if (block == nullptr) return;
  storage::VerbBatch::Fetch<true>(block, 8);
  storage::VerbBatch::Fetch<true>(block + geometry.word_offset(update.victim), geometry.version_bytes());
}

void RsiClient::FetchForInsert(const PendingWrite& insert) {
  RecordTable& to = table(insert.table);
  to.index().FetchFor(insert.hash);
  size_t ahead = 0;
  for (const PendingWrite& write : writes_)
    ahead += write.fresh && !write.placed && write.table == insert.table;
  const std::optional<uint64_t> record = to.allocator().Expected(ahead - 1);
  if (!record.has_value()) return;
  const absl::StatusOr<storage::Channel::Target> block = to.Block(*record);
  if (!block.ok()) return;
  const uint32_t bytes = to.geometry().row_offset(0) + to.geometry().row_bytes;
  storage::VerbBatch::Fetch<true>(batch_.InPlace(*block, bytes), bytes);
}

// Changes a row that the transaction has read, and not written yet.
absl::Status RsiClient::WriteKnown(const RowWrite& by, const SoughtRow& known) {
  const uint32_t number = known.table;
  const absl::StatusOr<storage::Channel::Target> block = table(number).Block(known.record);
  if (!block.ok()) return End(block.status());
  const bool keeps_row = by.kind == RowWrite::Kind::kDelete || by.kind == RowWrite::Kind::kLock;
  std::byte* const copy = CopyRow(number, keeps_row ? known.row : by.row.data(), /*whole_block=*/false);
  PendingWrite& write = writes_.Add(by.kind, number, known.hash, copy);
  write.record = known.record;
  write.block = *block;
  write.header = known.header;
  write.victim = known.victim;
  write.before = known.row;
  write.placed = true;
  writes_.ReserveEntries(write, table(number).change_bytes());
  if (channel_->in_place()) FetchForUpdate(write);
  // Another client was faster: a try would fail.
  const bool newer = known.header.timestamp() != known.version.timestamp();
  const bool waits = known.header.locked() && lock_wait_.waits();
  if ((known.header.locked() && !waits) || (newer && !options_.broken.blind_locks)) {
    return End(core_->Conflict(known.header, number, known.record));
  }
  if (!waits) return absl::OkStatus();
  lock_wait_.Restart();
  const absl::Status awaited = lock_wait_.AwaitHeader(write);
  return awaited.ok() ? awaited : End(awaited);
}

}  // namespace nam::txn
