#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "txn/rsi/rsi_session.h"
#include "txn/session.h"

namespace nam::txn {

/// RSI for as long as memory servers can be reached: a session that is lost is replaced when the next
/// transaction begins, and the caller's tables stay open. One that is unavailable then fails whatever uses
/// it, until it can be opened again.
class ReconnectingSession final : public Session {
 public:
  explicit ReconnectingSession(std::unique_ptr<RsiSession> session) : session_(std::move(session)) {}

  absl::StatusOr<TableHandle> OpenTable(const std::string& name) override;
  absl::Status Begin() override;
  absl::Status Read(std::span<Lookup> lookups) override;
  absl::Status BeginAndRead(std::span<Lookup> lookups) override;
  absl::Status Write(std::span<const RowWrite> writes) override;
  absl::Status Scan(TableHandle table, const RowVisitor& visit) override {
    return session_->Scan(Now(table), visit);
  }
  absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit) override {
    return session_->VisitWrites(Now(table), visit);
  }
  absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit) override {
    return session_->ScanIndex(Now(table), index, low, high, visit);
  }
  void SetLockTimeout(int64_t us) override {
    lock_timeout_us_ = us;
    session_->SetLockTimeout(us);
  }
  void SetTransactionBytesMax(uint64_t bytes) override {
    transaction_bytes_max_ = bytes;
    session_->SetTransactionBytesMax(bytes);
  }
  absl::StatusOr<uint64_t> Commit() override { return session_->Commit(); }
  void Abort() override { session_->Abort(); }
  size_t Mark() const override { return session_->Mark(); }
  absl::Status RollBackTo(size_t mark) override { return session_->RollBackTo(mark); }
  absl::Status MayWrite(size_t rows) const override { return session_->MayWrite(rows); }
  uint64_t snapshot() const override { return session_->snapshot(); }
  BeginCosts begin_costs() const override;
  absl::StatusOr<uint64_t> AwaitCommits() override;
  absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index) override;

 private:
  struct Opened {
    std::string name;  // empty: not by the caller
    AllocationId allocation;
  };
  absl::Status ReplaceLost();
  absl::Status WithOwnHandles(std::span<Lookup> lookups, absl::Status (RsiSession::*read)(std::span<Lookup>));
  static absl::StatusOr<TableHandle> Reopen(RsiSession& session, const Opened& opened);
  TableHandle Translate(TableHandle table);
  TableHandle Now(TableHandle table) {
    if (now_.empty()) [[likely]]
      return table;
    return Translate(table);
  }
  static constexpr TableHandle kClosed{~uint32_t{0}};

  std::unique_ptr<RsiSession> session_;
  std::vector<Opened> opened_;    // by the caller's handle
  std::vector<TableHandle> now_;  // likewise: the session's handle; empty: the same
  BeginCosts costs_;              // of former sessions
  int64_t lock_timeout_us_ = 0;
  std::optional<uint64_t> transaction_bytes_max_;
};

}  // namespace nam::txn
