#include "txn/rsi/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "txn/rsi/transaction.h"

namespace nam::txn {
namespace {

constexpr int64_t kOwnCommitPauseUs = 20;
constexpr int64_t kConflictPatienceUs = 5'000;
/// Long enough to see that a commit is stalled, and to pass it over.
constexpr int64_t kHeldPatienceUs = SlotWord::kPatienceUs + 5'000;
/// A look times what is in the way, the next passes it over, one more sees what lies behind.
constexpr uint32_t kLooksLeast = 4;
constexpr uint64_t kTimedBegins = 16;  // one of so many
constexpr uint32_t kLocksLostToAtOnce = 8;
constexpr int64_t kLockPauseUs = 20;
constexpr uint32_t kLockPauseDoubledMax = 6;
constexpr int64_t kRarelyUs = 100'000;
constexpr size_t kFetchedInserts = 32;   // more come faster than their lines
constexpr size_t kEarlyLookupsMax = 64;  // so that there is room beside what the last transaction left

}  // namespace

RsiSession::RsiSession(Tables& tables, const RsiOptions& options, std::shared_ptr<storage::Channel> channel,
                       ExtentSpace state, std::shared_ptr<ExtentSource> logs, StateGeometry geometry,
                       bool is_heir)
    : tables_(tables),
      options_(options),
      channel_(std::move(channel)),
      batch_(*channel_, options.transaction_bytes_max),
      state_(std::move(state)),
      logs_(std::move(logs), *channel_),
      geometry_(geometry),
      is_heir_(is_heir) {}

absl::StatusOr<std::unique_ptr<RsiSession>> RsiSession::Open(Tables& tables, const RsiOptions& options,
                                                             bool is_heir) {
  storage::ChannelOptions channel_options;
  channel_options.buffer_bytes = options.scratch_bytes;
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<storage::Channel> channel,
                       storage::Channel::Open(tables.fabric(), tables.directory(), channel_options));
  NAM_ASSIGN_OR_RETURN(const TransactionState described, tables.State());
  NAM_ASSIGN_OR_RETURN(ExtentSpace state, ExtentSpace::Open(*channel, described.extents, kStateBytes));
  if (!state.CheckWhole().ok()) {
    return absl::UnavailableError(
        "the memory server with the state of all transactions is gone: `nam reset-transactions` drops all "
        "record "
        "tables and makes it anew");
  }
  const StateGeometry geometry(described.timestamps);
  std::unique_ptr<RsiSession> session(new RsiSession(tables, options, std::move(channel), std::move(state),
                                                     described.logs, geometry, is_heir));
  RsiSession& self = *session;
  // Whoever fences the slot's owner ends the connections that the session writes with.
  const SlotOwner owner{.member = self.channel_->member().value(),
                        .session = static_cast<uint32_t>(tables.fabric().Random() & SlotOwner::kSessionMax)};
  // Of the bit vector as many lanes are looked at as there are clients, if those have the first.
  const bool first = described.timestamps == TimestampKind::kBitVector;
  NAM_RETURN_IF_ERROR(ClientSlot::Claim(self.state_, geometry, self.batch_, owner,
                                        first ? 0 : tables.fabric().Random(), &self.slot_));
  const uint32_t client = self.slot_.client;
  self.commit_point_ = std::make_unique<CommitPoint>(self.state_, geometry, self.slot_);
  self.timestamps_ = Timestamps::Make(described.timestamps, self.state_, geometry, client,
                                      *self.commit_point_, tables.fabric().clock());
  self.log_ = std::make_unique<ClientLog>(self.logs_, self.state_, geometry, self.batch_, self.slot_,
                                          tables.fabric().Random());
  self.reclaimer_ = std::make_unique<Reclaimer>(
      *self.log_, self.batch_, *self.timestamps_, client,
      [&self](RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at) {
        self.Bury(table, record, row, deleted_at);
      });
  self.recovery_ = std::make_unique<Recovery>(
      tables, self.state_, self.logs_, geometry, self.batch_, *self.timestamps_, self.slot_,
      [&self](const TableDescription& description) { return self.TableOf(description); });
  self.RetireOthers();
  if (!is_heir) self.RecoverRetired();
  if (self.lost())
    return absl::UnavailableError("a connection to a memory server broke while the session was opened");
  // Slots of clients that are gone, before there are none left.
  if (self.slot_.nearly_all_used) NAM_RETURN_IF_ERROR(self.recovery_->RecoverAll().status());
  self.batch_.Reset();
  NAM_RETURN_IF_ERROR(self.RefreshIndexes());
  return session;
}

RsiSession::~RsiSession() {
  Abort();
  RecoverRetired();
  if (slot_.client == 0) return;
  const absl::Status left = lost() ? absl::UnavailableError("its connection broke") : Leave();
  if (!left.ok()) Lose(left).IgnoreError();
}

absl::Status RsiSession::Leave() {
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  for (const std::unique_ptr<RecordTable>& table : tables_open_)
    NAM_RETURN_IF_ERROR(table->allocator().Release(batch_));
  NAM_RETURN_IF_ERROR(log_->Release());
  NAM_RETURN_IF_ERROR(timestamps_->AddLeave(batch_));
  return slot_.Release(state_, geometry_, batch_);
}

absl::Status RsiSession::CheckActive() const {
  if (!broken_.ok()) return broken_;
  if (!active_) return absl::FailedPreconditionError("no transaction has begun");
  return absl::OkStatus();
}

// The transaction is over. What fails while its rows may be locked is left to recovery, with the session.
absl::Status RsiSession::End(absl::Status status) {
  if (locking_ || channel_->broken()) return Lose(status);
  active_ = false;
  for (const PendingWrite& write : writes_) {
    if (status.ok() || !write.fresh || !write.placed) continue;
    NAM_RETURN_IF_ERROR(table(write.table).allocator().AddFree(batch_, write.record));
  }
  for (const PendingWrite& write : writes_) {
    if (write.fresh) NAM_RETURN_IF_ERROR(table(write.table).allocator().AddReleaseSpent(batch_));
  }
  writes_.Clear();
  rows_.Clear();
  if (!own_rows_.rows.empty()) own_rows_ = {};
  entered_.clear();
  absl::Status released = timestamps_->AddRelease(batch_);
  if (released.ok()) released = batch_.Post();
  if (!released.ok() && status.ok()) status = released;
  // Whose snapshot keeps blocks from being reclaimed may be gone.
  if (holder_ != 0) recovery_->TryRecover(std::exchange(holder_, 0)).status().IgnoreError();
  bool recovered = false;
  if (suspect_ != 0) recovered = recovery_->TryRecover(std::exchange(suspect_, 0)).value_or(false);
  if (channel_->broken()) return Lose(status);
  return recovered ? AbortStatus(AbortReason::kDeadLock, "its locks are released") : status;
}

absl::StatusOr<TableHandle> RsiSession::OpenTable(const std::string& name) {
  if (!broken_.ok()) return broken_;
  NAM_ASSIGN_OR_RETURN(const TableDescription description, tables_.Find(name));
  const absl::StatusOr<RecordTable*> opened = TableOf(description);
  // What a transaction has begun is over with its connections: it is told so now, with the reason.
  if (!opened.ok()) return active_ && channel_->broken() ? End(opened.status()) : opened.status();
  RecordTable* const table = *opened;
  if (absl::Status whole = table->CheckWhole(); !whole.ok()) {
    return absl::UnavailableError(absl::StrFormat("table %s: %s", name, std::string(whole.message())));
  }
  for (uint32_t i = 0; i < tables_open_.size(); ++i) {
    if (tables_open_[i].get() == table) return TableHandle{i};
  }
  return absl::InternalError("the table is not among those that are open");
}

absl::StatusOr<RecordTable*> RsiSession::TableOf(const TableDescription& description) {
  for (const std::unique_ptr<RecordTable>& table : tables_open_) {
    if (table->description().allocation == description.allocation) return table.get();
  }
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RecordTable> table,
                       RecordTable::Open(description, *channel_, batch_, slot_,
                                         [this](uint32_t owner) { return recovery_->ConfirmGone(owner); }));
  RecordTable* const opened = table.get();
  opened->allocator().SetHooks(
      [this, opened](std::span<const uint64_t> records, std::vector<uint64_t>& freed) {
        return Reclaim(*opened, records, freed);
      },
      [this] { return recovery_->RecoverAll(); });
  tables_open_.push_back(std::move(table));
  return opened;
}

void RsiSession::Bury(const RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at) {
  const auto open =
      std::find_if(tables_open_.begin(), tables_open_.end(),
                   [&](const std::unique_ptr<RecordTable>& known) { return known.get() == &table; });
  NoteOutlived(static_cast<uint32_t>(open - tables_open_.begin()), record, row, nullptr, deleted_at);
}

absl::StatusOr<uint32_t> RsiSession::Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                             std::vector<uint64_t>& freed) {
  locking_ = true;
  NAM_ASSIGN_OR_RETURN(const uint32_t unripe, reclaimer_->Reclaim(table, records, freed));
  locking_ = false;
  if (reclaimer_->held_by() != 0) holder_ = reclaimer_->held_by();
  return unripe;
}

absl::Status RsiSession::Begin() {
  return BeginWith({});
}

// `early` is looked up in the round trip of the snapshot, if it is not too much.
absl::Status RsiSession::BeginWith(std::span<const SoughtRow> early) {
  if (!broken_.ok()) return broken_;
  if (active_) return absl::FailedPreconditionError("a transaction is under way");
  phase_ = Phase::kUndecided;
  committed_ = false;
  batch_.SetScratchMax(options_.transaction_bytes_max);
  AwaitLocks();
  absl::Status status = TakeSnapshot(early);
  // Unless End has found it.
  if (channel_->broken() && broken_.ok()) return Lose(status);
  return status;
}

// Locks are held for some round trips. Whoever holds one longer has been stopped, or is dead: until the
// operating system goes on with it, or its lease is over, nothing is gained by trying without a pause.
void RsiSession::AwaitLocks() {
  if (lost_to_locks_ <= kLocksLostToAtOnce) return;
  const uint32_t doubled = std::min(lost_to_locks_ - kLocksLostToAtOnce - 1, kLockPauseDoubledMax);
  Clock& clock = tables_.fabric().clock();
  clock.SleepUntil(clock.After(kLockPauseUs << doubled));
}

absl::Status RsiSession::TakeSnapshot(std::span<const SoughtRow> early) {
  // What the last one has left in flight need not be waited for, if there is room beside its scratch memory.
  if (indexes_stale_ || !CheckScratch(0).ok()) {
    NAM_RETURN_IF_ERROR(batch_.Execute());
    batch_.Reset();
  }
  timestamp_ = 0;
  if (indexes_stale_) NAM_RETURN_IF_ERROR(RefreshIndexes());
  Clock& clock = tables_.fabric().clock();
  // Who begins seldom waits rather than miss what was committed long ago. Who begins rarely has not seen what
  // holds the snapshot back for how long it does: it may be a dead client, whom nobody else looks at.
  const int64_t now_ns = clock.NowNs();
  const bool seldom = now_ns - begun_ns_ > Timestamps::kPatienceUs * 1'000;
  bool held = now_ns - begun_ns_ > kRarelyUs * 1'000;
  uint64_t first_snapshot = 0;
  bool looks_up = !early.empty() && early.size() <= kEarlyLookupsMax && AddLookUp(early).ok();
  looked_up_early_ = false;
  const uint64_t verbs = batch_.requests_added();
  std::string hindrance;       // why a client that is gone cannot be recovered
  int64_t waits_since_ns = 0;  // 0: has not waited, nor looked at the clock
  const auto waited_us = [&] { return waits_since_ns == 0 ? 0 : (clock.NowNs() - waits_since_ns) / 1'000; };
  // On a busy host the time may be over before a second look.
  uint32_t looks = 0;
  const auto patient = [&](int64_t us) { return looks < kLooksLeast || waited_us() < us; };
  while (true) {
    absl::StatusOr<uint64_t> snapshot = timestamps_->Snapshot(batch_);
    if (!snapshot.ok()) return End(snapshot.status());
    snapshot_ = *snapshot;
    ++looks;
    flipping_ = false;  // what was in flight is complete
    if (std::exchange(looks_up, false)) looked_up_early_ = LookedUp();
    if (const uint32_t suspect = timestamps_->Suspect(); suspect != 0) {
      const absl::StatusOr<bool> recovered = recovery_->TryRecover(suspect);
      if (!recovered.ok() && channel_->broken()) return End(recovered.status());
      // Nobody can recover it now, but what was committed before it can be read.
      if (!recovered.ok()) hindrance = std::string(recovered.status().message());
      if (recovered.value_or(false)) {
        batch_.Reset();
        continue;
      }
    }
    const bool own_missing = options_.sees_own_commits && snapshot_ < last_commit_;
    // Without the version that it lost to, the next try would lose again.
    const bool conflict_missing = snapshot_ < conflict_ && patient(kConflictPatienceUs);
    const bool stale = seldom && timestamps_->HeldByIdle() && patient(kConflictPatienceUs);
    if (waits_since_ns == 0) first_snapshot = snapshot_;
    held = held && timestamps_->Held() && snapshot_ == first_snapshot && patient(kHeldPatienceUs);
    if (!own_missing && !conflict_missing && !stale && !held && !timestamps_->Crowded()) break;
    if (waits_since_ns == 0) waits_since_ns = clock.NowNs();
    if (waited_us() >= options_.own_commit_timeout_us) {
      return End(absl::UnavailableError(
          absl::StrFormat("the session's last commit (%d) is not visible yet: a commit before it hangs%s%s",
                          last_commit_, hindrance.empty() ? "" : ": ", hindrance)));
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
    batch_.Reset();
    if (Interruption::requested()) return End(absl::CancelledError("cancelled"));
    clock.SleepUntil(clock.After(kOwnCommitPauseUs));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());  // what has come of it goes to scratch memory
  batch_.Reset();
  begun_ns_ = now_ns;
  // A look at the clock costs a hundredth of a small transaction.
  if (waits_since_ns != 0 || begin_costs_.begins % kTimedBegins == 0) begun_ns_ = clock.NowNs();
  if (begin_costs_.begins++ % kTimedBegins == 0) {
    ++begin_costs_.timed;
    begin_costs_.ns += begun_ns_ - now_ns;
  }
  begin_costs_.verbs += batch_.requests_added() - verbs;
  active_ = true;
  return absl::OkStatus();
}

void RsiSession::Abort() {
  if (active_) End(absl::OkStatus()).IgnoreError();
}

// What the commit will take is kept free, so that it does not fail for a lack of it.
absl::Status RsiSession::CheckScratch(uint64_t bytes) const {
  constexpr uint64_t kReserve = 512 * 1024;  // of recovery, and of small things
  const uint64_t commit = locking_ ? 0 : writes_.size() * kCommitBytes + writes_.inserts() * kInsertBytes;
  const uint64_t kept = writes_.bytes() + rows_.bytes();
  if (bytes + commit + kept + kReserve <= batch_.scratch_left()) [[likely]]
    return absl::OkStatus();
  return TooLargeStatus(absl::StrFormat(
      "the transaction reads or writes more than fits into the %d MiB that a session takes for it",
      batch_.scratch_bytes_max() >> 20));
}

absl::Status RsiSession::MayWrite(size_t rows) const {
  const uint64_t more = rows - std::min(rows, writes_.size());
  return CheckScratch(more * (sizeof(PendingWrite) + kCommitBytes));
}

absl::Status RsiSession::RollBackTo(size_t mark) {
  NAM_RETURN_IF_ERROR(CheckActive());
  writes_.RollBackTo(mark);
  return absl::OkStatus();
}

// Handles are counted down from that of a table that is gone.
TableHandle RsiSession::CloseTable(const absl::Status& why) {
  const auto known = std::find(closed_.begin(), closed_.end(), why);
  const auto number = static_cast<uint32_t>(known - closed_.begin());
  if (known == closed_.end()) closed_.push_back(why);
  return {~(number + 1)};
}

absl::Status RsiSession::NotOpen(TableHandle handle) {
  const uint32_t closed = ~handle.value;
  if (closed == 0 || closed > closed_.size()) return absl::InvalidArgumentError("a table that is not open");
  const absl::Status& why = closed_[closed - 1];
  return active_ ? End(why) : why;
}

absl::Status RsiSession::TableError(TableHandle handle, size_t bytes, bool whole_row) {
  if (handle.value >= tables_open_.size()) return NotOpen(handle);
  const TableDescription& description = tables_open_[handle.value]->description();
  const uint32_t wanted = whole_row ? description.row_bytes : description.key_bytes;
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s of table %s has %d bytes, not %d", whole_row ? "a row" : "a key", description.name, wanted, bytes));
}

absl::StatusOr<std::byte*> RsiSession::CopyRow(uint32_t number, std::span<const std::byte> row) {
  const storage::RecordGeometry& geometry = table(number).geometry();
  NAM_RETURN_IF_ERROR(CheckScratch(geometry.block_bytes() + sizeof(PendingWrite) + kInsertBytes));
  std::byte* const copy =
      batch_.Scratch(geometry.row_offset(0) + geometry.row_bytes) + geometry.row_offset(0);
  std::memcpy(copy, row.data(), row.size());
  return copy;
}

absl::Status RsiSession::Insert(TableHandle handle, std::span<const std::byte> row) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(CheckTable(handle, row.size(), true));
  const uint32_t number = handle.value;
  const std::span<const std::byte> key = row.first(table(number).description().key_bytes);
  const uint64_t hash = table(number).HashOf(key);
  if (PendingWrite* write = writes_.Find(number, hash, key); write != nullptr) {
    if (write->kind != PendingWrite::Kind::kDelete) {
      return End(AbortStatus(AbortReason::kUniqueKey,
                             absl::StrCat("a row of ", table(number).description().name, " has this key")));
    }
    writes_.NoteChange(*write, row.size());
    std::memcpy(write->row, row.data(), row.size());
    write->kind = write->fresh ? PendingWrite::Kind::kInsert : PendingWrite::Kind::kUpdate;
    write->withdrawn = false;
    return absl::OkStatus();
  }
  if (rows_.Find(number, hash, key) != nullptr) {
    return End(AbortStatus(AbortReason::kUniqueKey,
                           absl::StrCat("a row of ", table(number).description().name, " has this key")));
  }
  absl::StatusOr<std::byte*> copy = CopyRow(number, row);
  if (!copy.ok()) return End(copy.status());
  // What lies beside the last one comes with it.
  const bool beside = !writes_.empty() && writes_.back().fresh && writes_.back().table == number &&
                      table(number).index().SameRoot(writes_.back().hash, hash);
  PendingWrite& write = writes_.Add(PendingWrite::Kind::kInsert, number, hash, *copy);
  write.fresh = true;
  if (channel_->in_place() && !beside && writes_.size() <= kFetchedInserts) FetchForInsert(write);
  return absl::OkStatus();
}

// The transaction goes on while the lines come that its commit will look at, and write to: of an update the
// header, which was read, and the victim; of an insert the key's place in the index and the record.
void RsiSession::FetchForUpdate(const PendingWrite& update) {
  const storage::RecordGeometry& geometry = tables_open_[update.table]->geometry();
  const std::byte* const block = batch_.InPlace(update.block, geometry.block_bytes());
  if (block == nullptr) return;
  storage::VerbBatch::Fetch<true>(block, 8);
  storage::VerbBatch::Fetch<true>(block + geometry.word_offset(update.victim), geometry.version_bytes());
}

void RsiSession::FetchForInsert(const PendingWrite& insert) {
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

absl::Status RsiSession::Update(TableHandle handle, std::span<const std::byte> row) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(CheckTable(handle, row.size(), true));
  const uint32_t number = handle.value;
  const std::span<const std::byte> key = row.first(table(number).description().key_bytes);
  const uint64_t hash = table(number).HashOf(key);
  if (PendingWrite* write = writes_.Find(number, hash, key); write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    writes_.NoteChange(*write, row.size());
    std::memcpy(write->row, row.data(), row.size());
    if (write->only_locks()) write->kind = PendingWrite::Kind::kUpdate;
    return absl::OkStatus();
  }
  return WriteKnown(PendingWrite::Kind::kUpdate, number, hash, key, row);
}

absl::Status RsiSession::WriteKnown(PendingWrite::Kind kind, uint32_t number, uint64_t hash,
                                    std::span<const std::byte> key, std::span<const std::byte> row) {
  const SoughtRow* const known = rows_.Find(number, hash, key);
  if (known == nullptr) return End(absl::NotFoundError("a row that this transaction has not read"));
  if (row.empty()) row = {known->row, table(number).geometry().row_bytes};
  absl::StatusOr<std::byte*> copy = CopyRow(number, row);
  if (!copy.ok()) return End(copy.status());
  const absl::StatusOr<storage::Channel::Target> block = table(number).Block(known->record);
  if (!block.ok()) return End(block.status());
  PendingWrite& write = writes_.Add(kind, number, hash, *copy);
  write.record = known->record;
  write.block = *block;
  write.header = known->header;
  write.victim = known->victim;
  write.before = known->row;
  write.placed = true;
  if (channel_->in_place()) FetchForUpdate(write);
  // Another client is faster: no need to try.
  const bool newer = known->header.timestamp() != known->version.timestamp();
  const bool waits = known->header.locked() && lock_timeout_us_ > 0;
  if ((known->header.locked() && !waits) || (newer && !options_.broken.blind_locks)) {
    return End(Conflict(known->header, number, known->record));
  }
  if (!waits) return absl::OkStatus();
  lock_deadline_.reset();
  const absl::Status awaited = AwaitHeader(write);
  return awaited.ok() ? awaited : End(awaited);
}

absl::Status RsiSession::Delete(TableHandle handle, std::span<const std::byte> key) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(CheckTable(handle, key.size(), false));
  const uint32_t number = handle.value;
  const uint64_t hash = table(number).HashOf(key);
  if (PendingWrite* write = writes_.Find(number, hash, key); write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    writes_.NoteChange(*write, table(number).geometry().row_bytes);
    write->withdrawn = write->kind == PendingWrite::Kind::kInsert;
    write->kind = PendingWrite::Kind::kDelete;
    return absl::OkStatus();
  }
  return WriteKnown(PendingWrite::Kind::kDelete, number, hash, key, /*row=*/{});
}

absl::Status RsiSession::Lock(TableHandle handle, std::span<const std::byte> key) {
  NAM_RETURN_IF_ERROR(CheckActive());
  NAM_RETURN_IF_ERROR(CheckTable(handle, key.size(), false));
  const uint32_t number = handle.value;
  const uint64_t hash = table(number).HashOf(key);
  if (const PendingWrite* write = writes_.Find(number, hash, key); write != nullptr) {
    if (write->kind == PendingWrite::Kind::kDelete) return End(absl::NotFoundError("the row was deleted"));
    return absl::OkStatus();  // its commit locks the record anyway
  }
  return WriteKnown(PendingWrite::Kind::kLock, number, hash, key, /*row=*/{});
}

}  // namespace nam::txn
