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
};

inline std::string NameOf(TimestampKind kind) {
  return kind == TimestampKind::kLeased ? "leased" : "bitvector";
}

}  // namespace nam::txn
