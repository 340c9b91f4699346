#pragma once

#include <cstdint>
#include <string>

#include "tests/txn/accounts.h"
#include "tests/txn/record_cluster.h"
#include "txn/rsi/session.h"

namespace nam::txn {

struct TellerMember {
  RecordCluster::Member member;
};

/// A member with a session of the RSI protocol.
struct Teller : TellerMember, AccountSession {
  Teller(RecordCluster& cluster, uint32_t id, fabric::Fabric& fabric, const RsiOptions& options = {})
      : TellerMember{{cluster, fabric, id}}, AccountSession(OpenRsiSession(member, options)) {}
  Teller(RecordCluster& cluster, uint32_t id) : Teller(cluster, id, cluster.client()) {}

  /// Each in one transaction: keys first … first + count - 1.
  absl::Status InsertRows(uint64_t first, uint64_t count) {
    if (const absl::Status begun = session->Begin(); !begun.ok()) return begun;
    for (uint64_t key = first; key < first + count; ++key) {
      if (const absl::Status status = Insert(key, 1); !status.ok()) return status;
    }
    return session->Commit().status();
  }
  absl::Status DeleteRows(uint64_t first, uint64_t count) {
    if (const absl::Status begun = session->Begin(); !begun.ok()) return begun;
    for (uint64_t key = first; key < first + count; ++key) {
      if (const absl::Status status = Read(key).status(); !status.ok()) return status;
      if (const absl::Status status = Delete(key); !status.ok()) return status;
    }
    return session->Commit().status();
  }
};

inline std::string NameOf(TimestampKind kind) {
  return kind == TimestampKind::kLeased ? "leased" : "bitvector";
}

}  // namespace nam::txn
