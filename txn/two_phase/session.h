#pragma once

#include <memory>
#include <string>
#include <vector>

#include "txn/session.h"
#include "txn/two_phase/row_store.h"
#include "txn/two_phase/transport.h"

namespace nam::txn::two_phase {

/// What a client has to know. The order of the participants decides who owns which row.
struct ClusterLayout {
  std::vector<std::string> coordinators;
  std::vector<std::string> participants;
  std::vector<TableLayout> tables;
};

struct SessionOptions {
  enum class Snapshots : uint8_t {
    /// Begin asks the coordinator: sees everything that was visible when it was called, and this session's
    /// own commits. Commit returns once the transaction is decided.
    kFresh,
    /// Generalized snapshot isolation: after a commit that was answered, the snapshot is the one that came
    /// with the answer, so Begin costs no message, and Commit returns once the transaction is visible. Of a
    /// session that idles in between it is as old as that.
    kLastAnswer,
  } snapshots = Snapshots::kFresh;
  uint32_t coordinator = 0;  // any number
  int64_t timeout_us = 20'000'000;
};

/// A client of two-phase commit. Once a server does not answer, or is gone, every call gives UNAVAILABLE.
/// `fabric` is that of the transport; its clock is used.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(fabric::Fabric& fabric,
                                                     const TransportOptions& transport,
                                                     const ClusterLayout& cluster,
                                                     const SessionOptions& options);

}  // namespace nam::txn::two_phase
