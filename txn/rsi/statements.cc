#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "txn/rsi/rsi_client.h"

/// The statements of a transaction: what they READ comes to rows_, what they write to writes_, until Commit.
namespace nam::txn {
namespace {

constexpr size_t kFewLookups = 64;
constexpr size_t kFetchedInserts = 32;  // more come faster than their lines

}  // namespace

absl::Status RsiClient::Read(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(CheckActive());
  const size_t kept = batch_.scratch_used(), rows_before = rows_.size();
  NAM_RETURN_IF_ERROR(Seek(lookups));
  if (absl::Status status = reader_.Find(sought_); !status.ok()) return End(status);
  NAM_RETURN_IF_ERROR(Deliver(lookups));
  // What a statement of many rows has READ is several times its rows.
  if (lookups.size() > kFewLookups)
    rows_.MoveToArena(rows_before, [this](uint32_t number) { return table(number).geometry().row_bytes; });
  // Nothing is left that was met and has to stay.
  if (lookups.size() > kFewLookups || rows_.size() == rows_before) batch_.Reset(kept);
  return absl::OkStatus();
}

// Where memory is in place, entries are only asked for before the snapshot is taken. Of keys that were looked
// up before the snapshot was known only those count whose rows it sees: a row says itself since when it is
// there, an index does not.
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

// sought_: of what this transaction has written itself nothing is sought.
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
    if (row.state == SoughtRow::State::kTooOld) {
      return End(AbortStatus(AbortReason::kSnapshotTooOld,
                             absl::StrCat("a row of ", table(row.table).description().name)));
    }
    if (!lookups[i].found) continue;
    std::memcpy(lookups[i].row.data(), row.row, lookups[i].row.size());
    if (rows_.Find(row.table, row.hash, row.key) == nullptr) rows_.Add(row);
  }
  return absl::OkStatus();
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

absl::StatusOr<std::byte*> RsiClient::CopyRow(uint32_t number, std::span<const std::byte> row) {
  const storage::RecordGeometry& geometry = table(number).geometry();
  NAM_RETURN_IF_ERROR(
      core_->CheckScratch(geometry.block_bytes() + sizeof(PendingWrite) + SessionCore::kInsertBytes));
  std::byte* const copy =
      batch_.Scratch(geometry.row_offset(0) + geometry.row_bytes) + geometry.row_offset(0);
  std::memcpy(copy, row.data(), row.size());
  return copy;
}

absl::Status RsiClient::Aim(TableHandle handle, std::span<const std::byte> bytes, bool whole_row,
                            Target& target) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(CheckTable(handle, bytes.size(), whole_row));
  target.table = handle.value;
  target.key = bytes.first(table(target.table).description().key_bytes);
  target.hash = table(target.table).HashOf(target.key);
  target.own = writes_.Find(target.table, target.hash, target.key);
  return absl::OkStatus();
}

absl::Status RsiClient::EndWithKeyTaken(uint32_t number) {
  return End(AbortStatus(AbortReason::kUniqueKey,
                         absl::StrCat("a row of ", table(number).description().name, " has this key")));
}

absl::Status RsiClient::Insert(TableHandle handle, std::span<const std::byte> row) {
  Target target;
  NAM_RETURN_IF_ERROR(Aim(handle, row, true, target));
  if (PendingWrite* const write = target.own; write != nullptr) {
    if (write->kind != PendingWrite::Kind::kDelete) return EndWithKeyTaken(target.table);
    writes_.NoteChange(*write, row.size());
    std::memcpy(write->row, row.data(), row.size());
    write->kind = write->fresh ? PendingWrite::Kind::kInsert : PendingWrite::Kind::kUpdate;
    write->withdrawn = false;
    return absl::OkStatus();
  }
  if (rows_.Find(target.table, target.hash, target.key) != nullptr) return EndWithKeyTaken(target.table);
  absl::StatusOr<std::byte*> copy = CopyRow(target.table, row);
  if (!copy.ok()) return End(copy.status());
  // What lies beside the last one comes with it.
  const bool beside = !writes_.empty() && writes_.back().fresh && writes_.back().table == target.table &&
                      table(target.table).index().SameRoot(writes_.back().hash, target.hash);
  PendingWrite& write = writes_.Add(PendingWrite::Kind::kInsert, target.table, target.hash, *copy);
  write.fresh = true;
  if (channel_->in_place() && !beside && writes_.size() <= kFetchedInserts) FetchForInsert(write);
  return absl::OkStatus();
}

// The transaction goes on while the lines come that its commit will look at, and write to: of an update the
// header, which was read, and the victim; of an insert the key's place in the index and the record.
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

absl::Status RsiClient::Update(TableHandle handle, std::span<const std::byte> row) {
  Target target;
  NAM_RETURN_IF_ERROR(Aim(handle, row, true, target));
  if (PendingWrite* const write = target.own; write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    writes_.NoteChange(*write, row.size());
    std::memcpy(write->row, row.data(), row.size());
    if (write->only_locks()) write->kind = PendingWrite::Kind::kUpdate;
    return absl::OkStatus();
  }
  return WriteKnown(PendingWrite::Kind::kUpdate, target, row);
}

absl::Status RsiClient::WriteKnown(PendingWrite::Kind kind, const Target& target,
                                   std::span<const std::byte> row) {
  const uint32_t number = target.table;
  const SoughtRow* const known = rows_.Find(number, target.hash, target.key);
  if (known == nullptr) return End(absl::NotFoundError("a row that this transaction has not read"));
  if (row.empty()) row = {known->row, table(number).geometry().row_bytes};
  absl::StatusOr<std::byte*> copy = CopyRow(number, row);
  if (!copy.ok()) return End(copy.status());
  const absl::StatusOr<storage::Channel::Target> block = table(number).Block(known->record);
  if (!block.ok()) return End(block.status());
  PendingWrite& write = writes_.Add(kind, number, target.hash, *copy);
  write.record = known->record;
  write.block = *block;
  write.header = known->header;
  write.victim = known->victim;
  write.before = known->row;
  write.placed = true;
  if (channel_->in_place()) FetchForUpdate(write);
  // Another client is faster: no need to try.
  const bool newer = known->header.timestamp() != known->version.timestamp();
  const bool waits = known->header.locked() && lock_wait_.waits();
  if ((known->header.locked() && !waits) || (newer && !options_.broken.blind_locks)) {
    return End(core_->Conflict(known->header, number, known->record));
  }
  if (!waits) return absl::OkStatus();
  lock_wait_.Restart();
  const absl::Status awaited = lock_wait_.AwaitHeader(write);
  return awaited.ok() ? awaited : End(awaited);
}

absl::Status RsiClient::Delete(TableHandle handle, std::span<const std::byte> key) {
  Target target;
  NAM_RETURN_IF_ERROR(Aim(handle, key, false, target));
  if (PendingWrite* const write = target.own; write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    writes_.NoteChange(*write, table(target.table).geometry().row_bytes);
    write->withdrawn = write->kind == PendingWrite::Kind::kInsert;
    write->kind = PendingWrite::Kind::kDelete;
    return absl::OkStatus();
  }
  return WriteKnown(PendingWrite::Kind::kDelete, target, /*row=*/{});
}

absl::Status RsiClient::Lock(TableHandle handle, std::span<const std::byte> key) {
  Target target;
  NAM_RETURN_IF_ERROR(Aim(handle, key, false, target));
  if (const PendingWrite* const write = target.own; write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    return absl::OkStatus();  // its commit locks the record anyway
  }
  return WriteKnown(PendingWrite::Kind::kLock, target, /*row=*/{});
}

}  // namespace nam::txn
