#include "txn/rsi/rsi_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr int64_t kOwnCommitPauseUs = 20;
constexpr int64_t kConflictPatienceUs = 5'000;
/// Long enough to see that a commit is stalled, and to pass it over.
constexpr int64_t kHeldPatienceUs = SlotWord::kPatienceUs + 5'000;
/// One look times the obstacle, the next passes it over, one more sees what lies behind.
constexpr uint32_t kLooksLeast = 4;
constexpr uint64_t kTimedBegins = 16;  // one in so many
constexpr uint32_t kLocksLostToAtOnce = 8;
constexpr int64_t kLockPauseUs = 20;
constexpr uint32_t kLockPauseDoubledMax = 6;
constexpr int64_t kRarelyUs = 100'000;
constexpr size_t kEarlyLookupsMax = 64;  // leaves room beside what the last transaction left

}  // namespace

RsiClient::RsiClient(std::unique_ptr<SessionCore> core, bool is_heir)
    : core_(std::move(core)),
      reader_(*core_),
      indexes_(*core_, reader_),
      references_(*core_, reader_),
      lock_wait_(*core_),
      committer_(*core_, reader_, indexes_, references_, lock_wait_),
      scanner_(*core_, reader_, indexes_),
      tables_(core_->tables),
      options_(core_->options),
      channel_(core_->channel),
      batch_(core_->batch),
      slot_(core_->slot),
      timestamps_(core_->timestamps.get()),
      recovery_(core_->recovery.get()),
      transaction_(core_->transaction),
      conflicts_(core_->conflicts),
      rows_(core_->transaction.rows),
      writes_(core_->transaction.writes),
      is_heir_(is_heir),
      transaction_bytes_max_(options_.transaction_bytes_max) {
  core_->on_freed = [this](uint32_t number, uint64_t record, const std::byte* row, uint64_t deleted_at) {
    indexes_.NoteDead(number, record, row, nullptr, deleted_at);
  };
}

absl::StatusOr<std::unique_ptr<RsiClient>> RsiClient::Open(Tables& tables, const RsiOptions& options,
                                                           bool is_heir) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<SessionCore> core, SessionCore::Open(tables, options));
  const absl::Status claimed = core->ClaimSlot();
  std::unique_ptr<RsiClient> session(new RsiClient(std::move(core), is_heir));
  NAM_RETURN_IF_ERROR(claimed);
  session->RetireOthers();
  if (!is_heir) session->RecoverRetired();
  if (session->lost())
    return absl::UnavailableError("a connection to a memory server broke while the session was opened");
  // Recovers slots of dead clients before none is left.
  if (session->slot_.nearly_all_used) NAM_RETURN_IF_ERROR(session->recovery_->RecoverAll().status());
  session->batch_.Reset();
  NAM_RETURN_IF_ERROR(session->indexes_.Refresh());
  return session;
}

RsiClient::~RsiClient() {
  Abort();
  RecoverRetired();
  if (slot_.client == 0) return;
  const absl::Status left = lost() ? absl::UnavailableError("its connection broke") : Leave();
  if (!left.ok()) Lose(left).IgnoreError();
}

absl::Status RsiClient::Leave() {
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  for (const std::unique_ptr<RecordTable>& table : core_->open) {
    if (table != nullptr) NAM_RETURN_IF_ERROR(table->allocator().Release(batch_));
  }
  NAM_RETURN_IF_ERROR(core_->log->Release());
  NAM_RETURN_IF_ERROR(timestamps_->AddLeave(batch_));
  return slot_.Release(core_->state, core_->geometry, batch_);
}

absl::Status RsiClient::CheckActive() const {
  if (!broken_.ok()) return broken_;
  if (!transaction_.active) return absl::FailedPreconditionError("no transaction has begun");
  return absl::OkStatus();
}

// Ends the transaction. If it fails while its rows may be locked, recovery takes over, and the session is
// lost. So it does if blocks cannot be given back.
absl::Status RsiClient::End(absl::Status status) {
  if (transaction_.locking || channel_->broken()) return Lose(status);
  transaction_.active = false;
  const auto give_back = [&]() -> absl::Status {
    for (const PendingWrite& write : writes_) {
      if (status.ok() || !write.fresh || !write.placed) continue;
      NAM_RETURN_IF_ERROR(table(write.table).allocator().AddFree(batch_, write.record));
    }
    for (const PendingWrite& write : writes_) {
      if (write.fresh) NAM_RETURN_IF_ERROR(table(write.table).allocator().AddReleaseSpent(batch_));
    }
    return absl::OkStatus();
  };
  if (const absl::Status given = give_back(); !given.ok()) return Lose(status.ok() ? given : status);
  writes_.Clear();
  rows_.Clear();
  scanner_.Forget();
  indexes_.ForgetEntered();
  absl::Status released = timestamps_->AddRelease(batch_);
  if (released.ok()) released = batch_.Post();
  if (!released.ok() && status.ok()) status = released;
  // The client whose snapshot blocks reclaiming may be dead.
  if (conflicts_.snapshot_holder != 0)
    recovery_->TryRecover(std::exchange(conflicts_.snapshot_holder, 0)).status().IgnoreError();
  bool recovered = false;
  if (conflicts_.suspect != 0)
    recovered = recovery_->TryRecover(std::exchange(conflicts_.suspect, 0)).value_or(false);
  if (channel_->broken()) return Lose(status);
  return recovered ? AbortStatus(AbortReason::kLockOfDeadClient, "its locks are released") : status;
}

absl::StatusOr<TableHandle> RsiClient::OpenTable(const std::string& name) {
  if (!broken_.ok()) return broken_;
  NAM_ASSIGN_OR_RETURN(const TableDescription description, tables_.Find(name));
  const absl::StatusOr<RecordTable*> opened = core_->TableOf(description);
  // A broken channel ends the transaction under way: returns the reason now.
  if (!opened.ok()) return transaction_.active && channel_->broken() ? End(opened.status()) : opened.status();
  RecordTable* const table = *opened;
  if (absl::Status whole = table->CheckWhole(); !whole.ok()) {
    return absl::UnavailableError(absl::StrFormat("table %s: %s", name, std::string(whole.message())));
  }
  const uint32_t number = tables_.table_numbers().NumberOf(description.name, description.allocation);
  if (number >= whole_.size()) whole_.resize(number + 1);
  whole_[number] = 1;
  return TableHandle{number};
}

// Another client of the process has opened it.
absl::Status RsiClient::OpenNumbered(TableHandle handle) {
  const std::optional<TableNumbers::Table> known = tables_.table_numbers().At(handle.value);
  if (!known.has_value()) return absl::InvalidArgumentError("a table that is not open");
  const absl::StatusOr<TableHandle> opened = OpenTable(known->name);
  absl::Status status = opened.status();
  if (absl::IsNotFound(status) || (opened.ok() && opened->value != handle.value))
    status = AbortStatus(AbortReason::kWriteWrite, absl::StrCat("table ", known->name, " was dropped"));
  return !status.ok() && transaction_.active ? End(status) : status;
}

SessionState RsiClient::TakeState() {
  return {.of = core_->shared_timestamps,
          .last_commit = std::exchange(last_commit_, 0),
          .last_snapshot = std::exchange(last_snapshot_, 0),
          .newest_lost_to = std::exchange(conflicts_.newest, 0),
          .lost_to_locks = std::exchange(conflicts_.lost_to_locks, 0),
          .begin_costs = std::exchange(begin_costs_, {})};
}

void RsiClient::SetState(const SessionState& state) {
  // Timestamps of a lost state mean nothing in its successor.
  const bool same = state.of == core_->shared_timestamps;
  last_commit_ = same ? state.last_commit : 0;
  last_snapshot_ = same ? state.last_snapshot : 0;
  conflicts_.newest = same ? state.newest_lost_to : 0;
  conflicts_.lost_to_locks = state.lost_to_locks;
  begin_costs_ = state.begin_costs;
}

absl::Status RsiClient::Begin() {
  return BeginWith({});
}

// Looks `early` up in the snapshot's round trip, if it fits.
absl::Status RsiClient::BeginWith(std::span<const SoughtRow> early) {
  if (!broken_.ok()) return broken_;
  if (transaction_.active) return absl::FailedPreconditionError("a transaction is under way");
  transaction_.phase = RsiTransaction::Phase::kUndecided;
  transaction_.committed = false;
  batch_.SetScratchMax(transaction_bytes_max_);
  AwaitLocks();
  absl::Status status = TakeSnapshot(early);
  // Unless End has found it.
  if (channel_->broken() && broken_.ok()) return Lose(status);
  return status;
}

// Locks last some round trips. A client that holds one longer was stopped, or is dead: until the operating
// system resumes it, or its lease is over, trying without a pause gains nothing.
void RsiClient::AwaitLocks() {
  if (conflicts_.lost_to_locks <= kLocksLostToAtOnce) return;
  const uint32_t doubled = std::min(conflicts_.lost_to_locks - kLocksLostToAtOnce - 1, kLockPauseDoubledMax);
  Clock& clock = tables_.fabric().clock();
  clock.SleepUntil(clock.After(kLockPauseUs << doubled));
}

absl::Status RsiClient::TakeSnapshot(std::span<const SoughtRow> early) {
  // Requests of the last transaction may stay in flight if there is room beside its scratch memory.
  if (indexes_.stale() || !core_->CheckScratch(0).ok()) {
    NAM_RETURN_IF_ERROR(batch_.Execute());
    batch_.Reset();
  }
  transaction_.timestamp = 0;
  if (indexes_.stale()) NAM_RETURN_IF_ERROR(indexes_.Refresh());
  Clock& clock = tables_.fabric().clock();
  // A session that begins rarely waits rather than miss an old commit. It has not seen how long the obstacle
  // has held the snapshot back: it may be a dead client that no other session checks.
  const int64_t now_ns = clock.NowNs();
  const bool seldom = now_ns - begun_ns_ > Timestamps::kPatienceUs * 1'000;
  bool held = now_ns - begun_ns_ > kRarelyUs * 1'000;
  uint64_t first_snapshot = 0;
  bool looks_up = !early.empty() && early.size() <= kEarlyLookupsMax && reader_.AddLookUp(early).ok();
  looked_up_early_ = false;
  const uint64_t verbs = batch_.requests_added();
  std::string hindrance;       // why a dead client cannot be recovered
  int64_t waits_since_ns = 0;  // 0: has not waited, nor read the clock
  const auto waited_us = [&] { return waits_since_ns == 0 ? 0 : (clock.NowNs() - waits_since_ns) / 1'000; };
  // On a busy host the time may be over before a second look.
  uint32_t looks = 0;
  const auto patient = [&](int64_t us) { return looks < kLooksLeast || waited_us() < us; };
  while (true) {
    absl::StatusOr<uint64_t> snapshot = timestamps_->Snapshot(batch_);
    if (!snapshot.ok()) return End(snapshot.status());
    transaction_.snapshot = *snapshot;
    ++looks;
    transaction_.flipping = false;  // requests in flight are complete
    if (std::exchange(looks_up, false)) looked_up_early_ = reader_.LookedUp();
    if (const uint32_t suspect = timestamps_->Suspect(); suspect != 0) {
      const absl::StatusOr<bool> recovered = recovery_->TryRecover(suspect);
      if (!recovered.ok() && channel_->broken()) return End(recovered.status());
      // No client can recover it now, but commits before it are readable.
      if (!recovered.ok()) hindrance = std::string(recovered.status().message());
      if (recovered.value_or(false)) {
        batch_.Reset();
        continue;
      }
    }
    const bool own_missing = (options_.sees_own_commits && transaction_.snapshot < last_commit_) ||
                             transaction_.snapshot < last_snapshot_;
    // Without the version that it lost to, the next try would lose again.
    const bool conflict_missing = transaction_.snapshot < conflicts_.newest && patient(kConflictPatienceUs);
    const bool stale = seldom && timestamps_->HeldByIdle() && patient(kConflictPatienceUs);
    if (waits_since_ns == 0) first_snapshot = transaction_.snapshot;
    held = held && timestamps_->Held() && transaction_.snapshot == first_snapshot && patient(kHeldPatienceUs);
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
  NAM_RETURN_IF_ERROR(batch_.Execute());  // its results go to scratch memory
  batch_.Reset();
  begun_ns_ = now_ns;
  last_snapshot_ = transaction_.snapshot;
  // Reading the clock costs a hundredth of a small transaction.
  if (waits_since_ns != 0 || begin_costs_.begins % kTimedBegins == 0) begun_ns_ = clock.NowNs();
  if (begin_costs_.begins++ % kTimedBegins == 0) {
    ++begin_costs_.timed;
    begin_costs_.ns += begun_ns_ - now_ns;
  }
  begin_costs_.verbs += batch_.requests_added() - verbs;
  transaction_.active = true;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> RsiClient::Commit() {
  NAM_RETURN_IF_ERROR(CheckActive());
  writes_.DropWithdrawn();
  if (writes_.empty()) {
    NAM_RETURN_IF_ERROR(End(absl::OkStatus()));
    return 0;
  }
  const absl::Status status = End(committer_.Commit());
  // The commit counts even if the session was lost after it.
  if (!transaction_.committed) return status;
  last_commit_ = transaction_.timestamp;
  return last_commit_;
}

absl::StatusOr<uint64_t> RsiClient::NewestCommit() {
  if (!broken_.ok()) return broken_;
  if (transaction_.active) return absl::FailedPreconditionError("a transaction is under way");
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset();
  NAM_ASSIGN_OR_RETURN(const uint64_t newest, timestamps_->Newest(batch_));
  last_commit_ = std::max(last_commit_, newest);  // for Begin to wait for
  return newest;
}

void RsiClient::Abort() {
  if (transaction_.active) End(absl::OkStatus()).IgnoreError();
}

}  // namespace nam::txn
