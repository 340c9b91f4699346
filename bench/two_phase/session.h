#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/two_phase/row_store.h"
#include "bench/two_phase/transport.h"
#include "txn/session.h"

namespace nam::bench::two_phase {

/// The addresses of a cluster's servers, and its tables. The order of the participants decides each row's
/// owner.
struct ClusterLayout {
  std::vector<std::string> coordinators;
  std::vector<std::string> participants;
  std::vector<TableLayout> tables;
};

struct SessionOptions {
  enum class Snapshots : uint8_t {
    /// Begin asks the coordinator: the snapshot holds everything visible at the call, and this session's own
    /// commits. Commit returns once the transaction is decided.
    kFresh,
    /// Generalized snapshot isolation: after an answered commit, the snapshot is the one that came with the
    /// answer, so Begin costs no message, and Commit returns once the transaction is visible. After an idle
    /// period the snapshot is as old as the last answer.
    kLastAnswer,
  } snapshots = Snapshots::kFresh;
  uint32_t coordinator = 0;  // any number
  int64_t timeout_us = 20'000'000;
};

/// Opens a client of two-phase commit. Once a server does not answer, or is gone, every call returns
/// UNAVAILABLE. `fabric` is that of the transport; its clock is used.
absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(fabric::Fabric& fabric,
                                                          const TransportOptions& transport,
                                                          const ClusterLayout& cluster,
                                                          const SessionOptions& options);

}  // namespace nam::bench::two_phase
