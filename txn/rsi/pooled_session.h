#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "txn/rsi/client_pool.h"
#include "txn/session.h"

namespace nam::txn {

/// A session that holds one of its process's clients during each transaction, and none in between. Its tables
/// stay open with any client. A lost client costs only the transaction that uses it: the next Begin replaces
/// it.
class PooledSession final : public Session {
 public:
  explicit PooledSession(std::shared_ptr<ClientPool> pool)
      : pool_(std::move(pool)), transaction_bytes_max_(pool_->options().transaction_bytes_max) {}
  ~PooledSession() override;
  /// Called once, before anything else.
  absl::Status Enter();

  absl::StatusOr<TableHandle> OpenTable(const std::string& name) override;
  absl::Status Begin() override;
  absl::Status BeginAndRead(std::span<Lookup> lookups) override;
  absl::Status Read(std::span<Lookup> lookups) override {
    if (client_ == nullptr) [[unlikely]]
      return NoTransaction();
    return Checked(client_->Read(lookups));
  }
  absl::Status Write(std::span<const RowWrite> writes) override {
    if (client_ == nullptr) [[unlikely]]
      return NoTransaction();
    return Checked(client_->Write(writes));
  }
  absl::Status Scan(TableHandle table, const RowVisitor& visit) override;
  absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit) override;
  absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit) override;
  absl::StatusOr<uint64_t> Commit() override;
  void Abort() override;
  size_t Mark() const override { return client_ == nullptr ? 0 : client_->Mark(); }
  absl::Status RollBackTo(size_t mark) override;
  absl::Status MayWrite(size_t rows) const override {
    return client_ == nullptr ? absl::OkStatus() : client_->MayWrite(rows);
  }
  void SetLockTimeout(int64_t us) override;
  void SetTransactionBytesMax(uint64_t bytes) override { transaction_bytes_max_ = bytes; }
  uint64_t snapshot() const override { return snapshot_; }
  BeginCosts begin_costs() const override { return pool_->BeginCostsOf(user_); }
  absl::StatusOr<uint64_t> NewestCommit() override;
  absl::StatusOr<uint64_t> AwaitCommits() override;
  absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index) override;
  absl::StatusOr<VacuumCounts> Vacuum(TableHandle table) override;

 private:
  absl::Status Acquire();
  void GiveBackIfOver();
  absl::Status Begun(absl::Status status);
  /// Runs a call between transactions, which any client can make. Fails within a transaction.
  template <typename Call>
  auto WithClient(const Call& call) -> decltype(call(std::declval<RsiClient&>()));
  absl::Status NoTransaction() const;
  absl::Status Checked(absl::Status status) {
    if (!status.ok()) [[unlikely]]
      GiveBackIfOver();
    return status;
  }

  const std::shared_ptr<ClientPool> pool_;
  mutable ClientPool::User user_;
  RsiClient* client_ = nullptr;  // the current transaction's
  absl::Status lost_;            // why the last transaction's client was lost; OK if it was not
  uint64_t snapshot_ = 0;
  int64_t lock_timeout_us_ = 0;
  uint64_t transaction_bytes_max_;
};

}  // namespace nam::txn
