#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "txn/session.h"
#include "txn/tables.h"

namespace nam::txn {

struct RsiOptions {
  /// Begin waits until the snapshot holds this session's last commit. Without it, a session may conflict with
  /// itself.
  bool sees_own_commits = true;
  int64_t own_commit_timeout_us = 20'000'000;
  uint64_t scratch_bytes = uint64_t{4} << 20;  // registered memory of a client; grows for a transaction
  /// Clients that one process's sessions share: so many transactions run at once. Each client has a
  /// connection to every memory server.
  uint32_t clients_max = 64;
  /// The longest wait of Begin while other sessions' transactions use all clients.
  int64_t client_timeout_us = 10'000'000;
  /// The most client memory that one transaction's reads and writes may take.
  uint64_t transaction_bytes_max = uint64_t{1} << 30;

  /// The number of retries of a commit that other clients have skipped. Each retry begins after everything is
  /// undone and may succeed if the rows are unchanged.
  uint32_t skips_retried = 4;

  /// Protocol rules that a test switches off, to prove that the history checker notices.
  struct Broken {
    bool torn_reads = false;     // blocks are used despite moving headers
    bool blind_locks = false;    // a lock ignores that the row has changed
    bool visible_early = false;  // the timestamp is done before the commit is decided
    bool operator==(const Broken&) const = default;
  } broken;
  bool operator==(const RsiOptions&) const = default;
};

/// Opens a session of the RSI protocol: snapshot isolation by one-sided verbs alone.
/// docs/design/transactions.md. The sessions of a `Tables` share its clients, so they have the same options
/// (INVALID_ARGUMENT). A session holds a client from Begin to the transaction's end; Begin fails with
/// IsNoClientFree if none comes free. RESOURCE_EXHAUSTED: all client slots are used. `tables` outlives it.
absl::StatusOr<std::unique_ptr<Session>> OpenRsiSession(Tables& tables, const RsiOptions& options);

}  // namespace nam::txn
