#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "txn/session.h"
#include "txn/tables.h"

namespace nam::txn {

struct RsiOptions {
  /// Begin waits until the snapshot holds this session's last commit. Without, a session may find that it
  /// conflicts with itself.
  bool sees_own_commits = true;
  int64_t own_commit_timeout_us = 20'000'000;
  uint64_t scratch_bytes = uint64_t{4} << 20;  // registered memory of a client; grows for a transaction
  /// Clients of one process, which its sessions share: so many transactions run at once, and each client has
  /// a connection to every memory server.
  uint32_t clients_max = 64;
  /// How long Begin waits while all clients are in transactions of other sessions.
  int64_t client_timeout_us = 10'000'000;
  /// What one transaction may take of the client's memory for what it reads and writes.
  uint64_t transaction_bytes_max = uint64_t{1} << 30;

  /// A commit that others have passed over has taken back everything; it then begins anew, so many times, as
  /// its rows may well be what they were.
  uint32_t skips_retried = 4;

  /// Rules of the protocol that a test switches off, to see that the history checker notices.
  struct Broken {
    bool torn_reads = false;     // blocks are used whatever their headers say
    bool blind_locks = false;    // a lock does not mind that the row has changed
    bool visible_early = false;  // the timestamp is done before the commit is decided
    bool operator==(const Broken&) const = default;
  } broken;
  bool operator==(const RsiOptions&) const = default;
};

/// A session of the RSI protocol: snapshot isolation by one-sided verbs alone. docs/design/transactions.md.
/// The sessions of a `Tables` share its clients, so they have the same options (INVALID_ARGUMENT). A session
/// holds a client from Begin to the transaction's end; Begin fails with IsTooManyAtOnce if it waits for one
/// in vain. RESOURCE_EXHAUSTED: all client slots are used. `tables` outlives it.
absl::StatusOr<std::unique_ptr<Session>> OpenRsiSession(Tables& tables, const RsiOptions& options);

}  // namespace nam::txn
