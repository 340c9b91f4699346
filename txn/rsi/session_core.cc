#include "txn/rsi/session_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;

}  // namespace

SessionCore::SessionCore(Tables& with, const RsiOptions& as, std::shared_ptr<storage::Channel> over,
                         ExtentSpace at, const TransactionState& described)
    : tables(with),
      options(as),
      channel(std::move(over)),
      batch(*channel, options.transaction_bytes_max),
      state(std::move(at)),
      logs(described.logs, *channel),
      shared_timestamps(described.shared),
      timestamp_kind(described.timestamps),
      geometry(described.timestamps) {}

absl::StatusOr<std::unique_ptr<SessionCore>> SessionCore::Open(Tables& tables, const RsiOptions& options) {
  storage::ChannelOptions channel_options;
  channel_options.buffer_bytes = options.scratch_bytes;
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<storage::Channel> channel,
                       storage::Channel::Open(tables.fabric(), tables.directory(), channel_options));
  NAM_ASSIGN_OR_RETURN(const TransactionState described, tables.State());
  NAM_ASSIGN_OR_RETURN(ExtentSpace state, ExtentSpace::Open(*channel, described.extents, kStateBytes));
  if (!state.CheckWhole().ok()) {
    tables.ForgetState(described);
    return absl::UnavailableError(
        "the memory server with the state of all transactions is gone: `nam reset-transactions` drops all "
        "record "
        "tables and creates a new state");
  }
  return std::unique_ptr<SessionCore>(
      new SessionCore(tables, options, std::move(channel), std::move(state), described));
}

absl::Status SessionCore::ClaimSlot() {
  // Fencing the slot's owner ends the connections that the session writes with.
  const SlotOwner owner{.member = channel->member().value(),
                        .session = static_cast<uint32_t>(tables.fabric().Random() & SlotOwner::kSessionMax)};
  // The bit vector has as many lanes to check as there are clients, if those use the first ones.
  const bool first = timestamp_kind == TimestampKind::kBitVector;
  NAM_RETURN_IF_ERROR(
      ClientSlot::Claim(state, geometry, batch, owner, first ? 0 : tables.fabric().Random(), &slot));
  commit_point = std::make_unique<CommitPoint>(state, geometry, slot);
  timestamps =
      Timestamps::Make(timestamp_kind, state, geometry, slot.client, *commit_point, tables.fabric().clock(),
                       channel->in_place() ? nullptr : shared_timestamps.get());
  log = std::make_unique<ClientLog>(logs, state, geometry, batch, slot, tables.fabric().Random());
  reclaimer =
      std::make_unique<Reclaimer>(*log, batch, *timestamps, slot.client,
                                  [this](RecordTable& table, uint64_t record, const std::byte* row,
                                         uint64_t deleted_at) { NoteFreed(table, record, row, deleted_at); });
  recovery = std::make_unique<Recovery>(
      tables, state, logs, geometry, batch, *timestamps, slot,
      [this](const TableDescription& description) { return TableOf(description); });
  return absl::OkStatus();
}

absl::StatusOr<RecordTable*> SessionCore::TableOf(const TableDescription& description) {
  const uint32_t number = tables.table_numbers().NumberOf(description.name, description.allocation);
  if (IsOpen(number)) return open[number].get();
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RecordTable> table,
                       RecordTable::Open(description, *channel, batch, slot,
                                         [this](uint32_t owner) { return recovery->ConfirmGone(owner); }));
  RecordTable* const opened = table.get();
  opened->allocator().SetHooks(
      [this, opened](std::span<const uint64_t> records, std::vector<uint64_t>& freed) {
        return Reclaim(*opened, records, freed);
      },
      [this] { return recovery->RecoverAll(); });
  if (number >= open.size()) open.resize(number + 1);
  opened->SetGoOn([this] { return GoOn(); });
  open[number] = std::move(table);
  return opened;
}

void SessionCore::NoteFreed(const RecordTable& table, uint64_t record, const std::byte* row,
                            uint64_t deleted_at) {
  const auto number = std::find_if(open.begin(), open.end(), [&](const std::unique_ptr<RecordTable>& known) {
    return known.get() == &table;
  });
  on_freed(static_cast<uint32_t>(number - open.begin()), record, row, deleted_at);
}

absl::StatusOr<uint32_t> SessionCore::Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                              std::vector<uint64_t>& freed) {
  transaction.locking = true;
  NAM_ASSIGN_OR_RETURN(const uint32_t unripe, reclaimer->Reclaim(table, records, freed));
  transaction.locking = false;
  if (reclaimer->held_by() != 0) conflicts.snapshot_holder = reclaimer->held_by();
  return unripe;
}

// Keeps the commit's share free, so that the commit does not run out of it.
absl::Status SessionCore::CheckScratch(uint64_t bytes) const {
  constexpr uint64_t kReserve = 512 * 1024;  // for recovery, and small things
  const WriteSet& writes = transaction.writes;
  const uint64_t commit =
      transaction.locking ? 0 : writes.size() * kCommitBytes + writes.inserts() * kInsertBytes;
  const uint64_t kept =
      writes.bytes() + writes.entry_bytes() + transaction.rows.bytes() + transaction.sorted_bytes;
  if (bytes + commit + kept + kReserve <= batch.scratch_left()) [[likely]]
    return absl::OkStatus();
  return TooLargeStatus(absl::StrFormat(
      "the transaction reads or writes more than fits into the %d MiB that a session takes for it",
      batch.scratch_bytes_max() >> 20));
}

absl::Status SessionCore::GoOn() {
  if (!transaction.writing) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const bool claimed, commit_point->GoOn(batch, tables.fabric().clock()));
  return claimed ? absl::OkStatus()
                 : AbortStatus(AbortReason::kSkipped, "this commit stalled, and another client skipped it");
}

bool SessionCore::ChangedLater(RecordHeader found) {
  if (transaction.timestamp != 0) return found.timestamp() > transaction.timestamp;
  transaction.newest_judged = std::max(transaction.newest_judged, found.timestamp());
  return false;
}

absl::Status SessionCore::Conflict(RecordHeader found, uint32_t number, uint64_t record) {
  const bool held = found.locked() && found.client() != slot.client;
  if (held) conflicts.suspect = found.client();
  if (held) conflicts.met_lock = {number, record};
  conflicts.lost_to_locks = held ? conflicts.lost_to_locks + 1 : 0;
  conflicts.newest = std::max(conflicts.newest, found.timestamp());
  return AbortStatus(AbortReason::kWriteWrite, absl::StrCat("a row of ", table(number).description().name));
}

}  // namespace nam::txn
