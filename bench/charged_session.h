#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "txn/session.h"

namespace nam::bench {

/// The virtual computing time of a transaction client (Clock::Charge), besides posting and polling, which the
/// network's model charges. From a profile of `nam checkout` over shm with 2 clients on 2 cores: of 4.3 µs
/// per checkout, 1.6 µs were txn/ and storage/, and 0.35 µs making and checking rows. The rest was work of a
/// network card (copies, and waiting for cache lines) and fabric/, which the model charges.
namespace session_cost {
inline constexpr int64_t kBeginNs = 80;
inline constexpr int64_t kLookupNs = 140;     // a key, its record, the visible version
inline constexpr int64_t kWriteNs = 30;       // recorded in the client
inline constexpr int64_t kCommitRowNs = 130;  // log, lock, install, index
inline constexpr int64_t kRowBytePs = 55;     // made or checked by the client
}  // namespace session_cost

/// A session that charges its caller's virtual time before each call, as if all work were done at its start.
class ChargedSession final : public txn::Session {
 public:
  /// `warm` counts the sessions with a finished transaction, which has opened the tables; used by one
  /// simulated thread at a time.
  ChargedSession(std::unique_ptr<txn::Session> session, Clock& clock, uint32_t* warm)
      : session_(std::move(session)), clock_(clock), warm_(warm) {}

  absl::StatusOr<txn::TableHandle> OpenTable(const std::string& name) override {
    return session_->OpenTable(name);
  }
  absl::Status Begin() override {
    ChargeBegin();
    return session_->Begin();
  }
  absl::Status Read(std::span<txn::Lookup> lookups) override {
    ChargeRead(lookups);
    return session_->Read(lookups);
  }
  absl::Status BeginAndRead(std::span<txn::Lookup> lookups) override {
    ChargeBegin();
    ChargeRead(lookups);
    return session_->BeginAndRead(lookups);
  }
  absl::Status Write(std::span<const txn::RowWrite> writes) override {
    for (const txn::RowWrite& write : writes) {
      ++writes_;
      Charge(session_cost::kWriteNs, write.kind == txn::RowWrite::Kind::kDelete ? 0 : write.row.size());
    }
    return session_->Write(writes);
  }
  absl::StatusOr<uint64_t> Commit() override {
    clock_.Charge(session_cost::kCommitRowNs * writes_);
    return session_->Commit();
  }
  void Abort() override { session_->Abort(); }
  uint64_t snapshot() const override { return session_->snapshot(); }

 private:
  void ChargeBegin() {
    writes_ = 0;
    if (++begins_ == 2) ++*warm_;
    clock_.Charge(session_cost::kBeginNs);
  }
  void ChargeRead(std::span<const txn::Lookup> lookups) {
    for (const txn::Lookup& lookup : lookups) Charge(session_cost::kLookupNs, lookup.row.size());
  }
  void Charge(int64_t ns, size_t row_bytes) {
    clock_.Charge(ns + session_cost::kRowBytePs * static_cast<int64_t>(row_bytes) / 1'000);
  }

  const std::unique_ptr<txn::Session> session_;
  Clock& clock_;
  uint32_t* const warm_;
  uint64_t begins_ = 0;
  int64_t writes_ = 0;
};

}  // namespace nam::bench
