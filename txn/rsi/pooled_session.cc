#include "txn/rsi/pooled_session.h"

#include <utility>

#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<std::unique_ptr<Session>> OpenRsiSession(Tables& tables, const RsiOptions& options) {
  std::shared_ptr<ClientPool> pool =
      tables.shared().Get<ClientPool>([&] { return std::make_shared<ClientPool>(tables, options); });
  if (pool->options() != options)
    return absl::InvalidArgumentError("the sessions of a process have the same options");
  auto session = std::make_unique<PooledSession>(std::move(pool));
  NAM_RETURN_IF_ERROR(session->Enter());
  return session;
}

absl::Status PooledSession::Enter() {
  const absl::Status entered = pool_->Enter(user_);
  if (!entered.ok()) user_.number = 0;
  return entered;
}

PooledSession::~PooledSession() {
  if (user_.number == 0) return;
  Abort();
  pool_->Leave(user_);
}

absl::Status PooledSession::Acquire() {
  if (client_ != nullptr) return absl::FailedPreconditionError("a transaction is under way");
  if (!ClientPool::AcquireAgain(user_)) [[unlikely]] {
    NAM_RETURN_IF_ERROR(pool_->Acquire(user_));
  } else if (user_.place->client->lost()) [[unlikely]] {
    NAM_RETURN_IF_ERROR(pool_->Replace(user_));
  }
  client_ = user_.place->client.get();
  client_->SetLockTimeout(lock_timeout_us_);
  client_->SetTransactionBytesMax(transaction_bytes_max_);
  return absl::OkStatus();
}

void PooledSession::GiveBackIfOver() {
  if (client_ == nullptr || client_->active()) return;
  if (client_->lost()) [[unlikely]] {
    lost_ = client_->broken();
    user_.place->lost = true;
  }
  client_ = nullptr;
  pool_->GiveBack(user_);
}

absl::Status PooledSession::NoTransaction() const {
  return lost_.ok() ? absl::FailedPreconditionError("no transaction has begun") : lost_;
}

absl::Status PooledSession::Begun(absl::Status status) {
  if (!lost_.ok()) [[unlikely]]
    lost_ = absl::OkStatus();
  snapshot_ = client_->snapshot();
  return Checked(std::move(status));
}

absl::Status PooledSession::Begin() {
  NAM_RETURN_IF_ERROR(Acquire());
  return Begun(client_->Begin());
}

absl::Status PooledSession::BeginAndRead(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(Acquire());
  return Begun(client_->BeginAndRead(lookups));
}

absl::Status PooledSession::Scan(TableHandle table, const RowVisitor& visit) {
  if (client_ == nullptr) return NoTransaction();
  return Checked(client_->Scan(table, visit));
}

absl::Status PooledSession::ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                                      std::span<const std::byte> high, const RowVisitor& visit) {
  if (client_ == nullptr) return NoTransaction();
  return Checked(client_->ScanIndex(table, index, low, high, visit));
}

absl::Status PooledSession::VisitWrites(TableHandle table, const WriteVisitor& visit) {
  if (client_ == nullptr) return NoTransaction();
  return Checked(client_->VisitWrites(table, visit));
}

absl::Status PooledSession::RollBackTo(size_t mark) {
  if (client_ == nullptr) return NoTransaction();
  return Checked(client_->RollBackTo(mark));
}

void PooledSession::SetLockTimeout(int64_t us) {
  lock_timeout_us_ = us;
  if (client_ != nullptr) client_->SetLockTimeout(us);
}

absl::StatusOr<uint64_t> PooledSession::Commit() {
  if (client_ == nullptr) [[unlikely]]
    return NoTransaction();
  absl::StatusOr<uint64_t> committed = client_->Commit();
  GiveBackIfOver();
  return committed;
}

void PooledSession::Abort() {
  if (client_ == nullptr) return;
  client_->Abort();
  GiveBackIfOver();
}

template <typename Call>
auto PooledSession::WithClient(const Call& call) -> decltype(call(std::declval<RsiClient&>())) {
  NAM_RETURN_IF_ERROR(Acquire());
  auto result = call(*client_);
  GiveBackIfOver();
  return result;
}

absl::StatusOr<TableHandle> PooledSession::OpenTable(const std::string& name) {
  if (client_ == nullptr) return WithClient([&](RsiClient& client) { return client.OpenTable(name); });
  absl::StatusOr<TableHandle> handle = client_->OpenTable(name);
  GiveBackIfOver();
  return handle;
}

absl::StatusOr<uint64_t> PooledSession::NewestCommit() {
  return WithClient([](RsiClient& client) { return client.NewestCommit(); });
}

absl::StatusOr<uint64_t> PooledSession::AwaitCommits() {
  return WithClient([](RsiClient& client) { return client.AwaitCommits(); });
}

absl::StatusOr<uint64_t> PooledSession::FillIndex(TableHandle table, AllocationId index) {
  return WithClient([&](RsiClient& client) { return client.FillIndex(table, index); });
}

absl::StatusOr<VacuumCounts> PooledSession::Vacuum(TableHandle table) {
  return WithClient([&](RsiClient& client) { return client.Vacuum(table); });
}

}  // namespace nam::txn
