#include "txn/rsi/reconnecting_session.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::txn {

namespace {

constexpr int kOpensMax = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> OpenRsiSession(Tables& tables, const RsiOptions& options) {
  absl::Status status;
  for (int i = 0; i < kOpensMax; ++i) {
    absl::StatusOr<std::unique_ptr<RsiSession>> session =
        RsiSession::Open(tables, options, /*is_heir=*/false);
    if (session.ok()) return std::make_unique<ReconnectingSession>(*std::move(session));
    status = session.status();
    if (!absl::IsUnavailable(status)) break;
  }
  return status;
}

absl::StatusOr<TableHandle> ReconnectingSession::OpenTable(const std::string& name) {
  NAM_RETURN_IF_ERROR(ReplaceLost());
  NAM_ASSIGN_OR_RETURN(const TableHandle handle, session_->OpenTable(name));
  const Opened opened{name, session_->AllocationOf(handle)};
  if (now_.empty()) {
    if (handle.value >= opened_.size()) opened_.resize(handle.value + 1);
    opened_[handle.value] = opened;
    return handle;
  }
  const auto known =
      std::find_if(now_.begin(), now_.end(), [&](TableHandle open) { return open.value == handle.value; });
  const auto number = static_cast<uint32_t>(known - now_.begin());
  if (known == now_.end()) {
    opened_.push_back(opened);
    now_.push_back(handle);
  }
  return TableHandle{number};
}

// Tables may have been dropped meanwhile, and others have their names; those are closed.
absl::Status ReconnectingSession::ReplaceLost() {
  if (!session_->lost()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RsiSession> next, session_->Succeed());
  std::vector<TableHandle> now(opened_.size(), kClosed);
  bool same = true;
  for (uint32_t i = 0; i < opened_.size(); ++i) {
    if (opened_[i].name.empty()) continue;
    NAM_ASSIGN_OR_RETURN(now[i], Reopen(*next, opened_[i]));
    same = same && now[i].value == i;
  }
  now_ = same ? std::vector<TableHandle>() : std::move(now);
  costs_ = begin_costs();
  next->SetLockTimeout(lock_timeout_us_);
  if (transaction_bytes_max_.has_value()) next->SetTransactionBytesMax(*transaction_bytes_max_);
  session_ = std::move(next);
  return absl::OkStatus();
}

// A table that cannot be opened takes no others with it: it is closed until it is used.
absl::StatusOr<TableHandle> ReconnectingSession::Reopen(RsiSession& session, const Opened& opened) {
  const absl::StatusOr<TableHandle> handle = session.OpenTable(opened.name);
  if (handle.ok()) return session.AllocationOf(*handle) == opened.allocation ? *handle : kClosed;
  if (absl::IsNotFound(handle.status())) return kClosed;
  if (session.lost() || !absl::IsUnavailable(handle.status())) return handle.status();
  return session.CloseTable(handle.status());
}

// Perhaps what made a table unavailable is over.
TableHandle ReconnectingSession::Translate(TableHandle table) {
  if (table.value >= now_.size()) return kClosed;
  TableHandle& now = now_[table.value];
  if (session_->IsOpen(now) || now.value == kClosed.value || session_->lost()) return now;
  const absl::StatusOr<TableHandle> reopened = Reopen(*session_, opened_[table.value]);
  if (reopened.ok()) now = *reopened;
  return now;
}

absl::Status ReconnectingSession::Begin() {
  if (session_->lost()) [[unlikely]]
    NAM_RETURN_IF_ERROR(ReplaceLost());
  return session_->Begin();
}

absl::Status ReconnectingSession::Read(std::span<Lookup> lookups) {
  return WithOwnHandles(lookups, &RsiSession::Read);
}

absl::Status ReconnectingSession::BeginAndRead(std::span<Lookup> lookups) {
  if (session_->lost()) [[unlikely]]
    NAM_RETURN_IF_ERROR(ReplaceLost());
  return WithOwnHandles(lookups, &RsiSession::BeginAndRead);
}

absl::Status ReconnectingSession::WithOwnHandles(std::span<Lookup> lookups,
                                                 absl::Status (RsiSession::*read)(std::span<Lookup>)) {
  if (now_.empty()) [[likely]]
    return (*session_.*read)(lookups);
  std::vector<TableHandle> callers;
  for (Lookup& lookup : lookups) callers.push_back(std::exchange(lookup.table, Now(lookup.table)));
  const absl::Status status = (*session_.*read)(lookups);
  for (size_t i = 0; i < lookups.size(); ++i) lookups[i].table = callers[i];
  return status;
}

absl::Status ReconnectingSession::Write(std::span<const RowWrite> writes) {
  if (now_.empty()) [[likely]]
    return session_->Write(writes);
  std::vector<RowWrite> translated(writes.begin(), writes.end());
  for (RowWrite& write : translated) write.table = Now(write.table);
  return session_->Write(translated);
}

BeginCosts ReconnectingSession::begin_costs() const {
  return costs_ + session_->begin_costs();
}

absl::StatusOr<uint64_t> ReconnectingSession::AwaitCommits() {
  NAM_RETURN_IF_ERROR(ReplaceLost());
  return session_->AwaitCommits();
}

absl::StatusOr<uint64_t> ReconnectingSession::FillIndex(TableHandle table, AllocationId index) {
  NAM_RETURN_IF_ERROR(ReplaceLost());
  return session_->FillIndex(Now(table), index);
}

}  // namespace nam::txn
