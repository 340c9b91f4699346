#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/rsi/rsi_client.h"

/// The end of a session that cannot go on (lost_clients.h):
///
///     Lose ─▶ RecoverByHeir: connections ended ─▶ another session, its heir ─▶ recovers this client
///       └ the transaction's outcome              └ cannot be had: LostClients, for the next that is opened
///
/// A cancelled session goes to LostClients at once.
///
/// So does a lost heir; the next one recovers both.
namespace nam::txn {
namespace {

constexpr int kHeirsMax = 3;
constexpr int64_t kDisconnectUs = 3'000'000;
constexpr int64_t kRecoverUs = 10'000'000;  // then no further heir is tried

}  // namespace

absl::Status RsiClient::Lose(const absl::Status& status) {
  const bool locks = transaction_.locking || transaction_.flipping;
  transaction_.active = transaction_.locking = transaction_.flipping = false;
  writes_.Clear();
  rows_.Clear();
  indexes_.ForgetEntered();
  conflicts_.suspect = conflicts_.snapshot_holder = 0;
  channel_->Break();
  batch_.GiveUp();
  std::optional<bool> decided;
  absl::Status recovered = absl::UnavailableError("there was nothing to recover");
  // A cancelled call does not wait for silent servers.
  if (slot_.client != 0)
    recovered = absl::IsCancelled(status) ? RecoverLater(status, locks) : RecoverByHeir(locks, decided);
  // Before the decision the outcome is `not committed`, after it `committed`; in between the slot tells.
  std::optional<bool> committed;
  if (transaction_.phase != RsiTransaction::Phase::kDeciding)
    committed = transaction_.phase == RsiTransaction::Phase::kCommitted;
  if (!committed.has_value()) committed = decided;
  transaction_.committed = committed.value_or(false);
  const char* const unknown =
      committed.has_value() ? "" : ", and whether its last commit took effect is unknown";
  if (absl::IsCancelled(status) && committed.has_value() && !*committed) return broken_ = status;
  const std::string why(status.message());
  broken_ = absl::UnavailableError(absl::StrCat("the session is lost", unknown, ": ", why));
  if (!committed.has_value() || *committed) return broken_;
  // Memory servers are reachable again, and know this process: another try is worthwhile, if only to learn
  // that a table was dropped.
  const bool connection = status.ok() || absl::IsUnavailable(status) || absl::IsPermissionDenied(status);
  if (recovered.ok() && connection) {
    return AbortStatus(AbortReason::kConnectionLost, why);
  }
  // Revoked keys are no reason to give up: a process that stalled gets new ones.
  return status.ok() || absl::IsPermissionDenied(status) ? broken_ : status;
}

LostClient RsiClient::LostSelf(bool locks) const {
  const uint64_t deciding =
      transaction_.phase == RsiTransaction::Phase::kDeciding ? transaction_.timestamp : 0;
  return {.channel = channel_,
          .client = slot_.client,
          .owner = slot_.owner,
          .deciding = deciding,
          .locks = locks};
}

absl::Status RsiClient::RecoverLater(const absl::Status& status, bool locks) {
  PutBack(LostSelf(locks));
  slot_ = {};
  return status;
}

absl::Status RsiClient::RecoverByHeir(bool locks, std::optional<bool>& decided) {
  LostClient lost = LostSelf(locks);
  slot_ = {};
  // The next member's, if this process stalled for longer than its lease.
  const absl::Status kept = tables_.KeepMembership();
  Clock& clock = tables_.fabric().clock();
  const Deadline deadline = clock.After(kRecoverUs);
  absl::Status status = kept.ok() ? absl::UnavailableError("its successor is lost, too") : kept;
  for (int i = 0; kept.ok() && i < kHeirsMax && !is_heir_ && !clock.Passed(deadline); ++i) {
    status = channel_->Disconnect(clock.After(kDisconnectUs));
    if (!status.ok()) break;
    absl::StatusOr<std::unique_ptr<RsiClient>> heir = Open(tables_, options_, /*is_heir=*/true);
    status = heir.status();
    if (!status.ok()) continue;
    status = (*heir)->recovery_->RecoverLost(lost);
    decided = lost.committed;
    if (!status.ok()) continue;
    (*heir)->RecoverRetired();
    if (!(*heir)->lost()) heir_ = *std::move(heir);
    return absl::OkStatus();
  }
  PutBack(std::move(lost));
  return status;
}

// The next session retires what it can, and recovers it when it ends.
void RsiClient::PutBack(LostClient lost) {
  tables_.lost_clients().Add(std::move(lost));
  tables_.RecoverLater([&tables = tables_, options = options_] {
    if (tables.KeepMembership().ok()) Open(tables, options, /*is_heir=*/false).status().IgnoreError();
  });
}

// Retires all of them before it recovers the first: one may have been recovering another.
void RsiClient::RetireOthers() {
  const Deadline deadline = tables_.fabric().clock().After(kDisconnectUs);
  for (LostClient& lost : tables_.lost_clients().TakeAll()) {
    const bool ended = !channel_->broken() && lost.channel->Disconnect(deadline).ok();
    const absl::StatusOr<bool> held = ended ? recovery_->Retire(lost) : false;
    if (!ended || !held.ok()) {
      PutBack(std::move(lost));
    } else if (*held) {
      retired_.push_back(std::move(lost));
    }
  }
}

// Any client can recover them, but perhaps none needs what they hold.
void RsiClient::RecoverRetired() {
  for (LostClient& lost : std::exchange(retired_, {})) {
    const bool recovered = !channel_->broken() && recovery_->TryRecover(lost.client).value_or(false);
    if (!recovered) PutBack(std::move(lost));
  }
}

absl::StatusOr<std::unique_ptr<RsiClient>> RsiClient::Succeed() {
  if (broken_.ok()) Lose(absl::UnavailableError("its connection broke")).IgnoreError();
  NAM_RETURN_IF_ERROR(tables_.KeepMembership());
  std::unique_ptr<RsiClient> next = std::move(heir_);
  if (next == nullptr || next->slot_.owner.member != tables_.member().value()) {
    absl::StatusOr<std::unique_ptr<RsiClient>> opened = Open(tables_, options_, /*is_heir=*/false);
    if (absl::IsPermissionDenied(opened.status())) return absl::UnavailableError(opened.status().message());
    if (!opened.ok()) return opened.status();
    next = *std::move(opened);
  }
  next->is_heir_ = false;
  next->SetState(TakeState());
  return next;
}

}  // namespace nam::txn
