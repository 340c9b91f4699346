#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "txn/check/history.h"

/// Decides whether a history satisfies snapshot isolation. Two independent checks:
///
///  - CheckTimestamps trusts the engine's timestamps: every read must have returned the newest version
///    committed at its snapshot, and of two writers of one record one must have seen the other. Exact.
///  - CheckDependencies trusts no timestamp. As no write is blind, reads tell the order of each record's
///    versions. From it follow dependencies (a transaction reads what another wrote) and anti-dependencies
///    (a transaction replaces what another read). Snapshot isolation holds if every cycle has two consecutive
///    anti-dependencies: Adya, Weak Consistency, 1999; Cerone and Gotsman, Analysing Snapshot Isolation,
///    2016. Write skew is such a cycle, and allowed.
///
/// A lock (Session::Lock) says that the row stays as it was read until its transaction's commit, in the order
/// of commits. So whoever replaces the version that was read commits later; a snapshot may lie in between.
/// The graph of dependencies has a node for that snapshot: its reader sees the lock's transaction (a
/// dependency), and not the version's replacement (an anti-dependency).
///
/// Both take time and memory linear in the history, except for sorting. One thread. A transaction of unknown
/// outcome counts as committed if another transaction saw it, and as absent otherwise. CheckTimestamps skips
/// records if that leaves open which transaction deleted them.
namespace nam::txn {

enum class AnomalyKind : uint8_t {
  kDirtyRead,            // saw a version not yet committed at the snapshot
  kAbortedRead,          // saw a version of an aborted transaction
  kIntermediateRead,     // saw a version that its own writer replaced before committing
  kTornValue,            // saw a value that no transaction wrote
  kStaleRead,            // all reads from one snapshot, but not from its own
  kFracturedRead,        // reads of one transaction from different snapshots
  kLongFork,             // two transactions saw two others in opposite orders
  kCircularInformation,  // a transaction depends on itself through others
  kLostUpdate,           // two replaced the same version
  kLostWrite,            // committed, but transactions that should have seen it did not
  kDuplicateKey,         // inserted a row that existed
  kMissingRow,           // updated or deleted a row that did not exist
  kLockIgnored,          // changed a row that another has locked, before that one's commit
  kWrongTimestamp,       // snapshot not before commit, one timestamp twice, version told differently
  kSessionWentBack,      // a session's snapshots or commits do not ascend
  kOwnCommitNotSeen,     // a session's snapshot is older than its last commit
  kValueUsedTwice,       // the recording is wrong: values must name writes
};
std::string_view AnomalyName(AnomalyKind kind);

inline constexpr uint64_t kNoRecord = ~uint64_t{0};

struct Anomaly {
  AnomalyKind kind;
  uint64_t record = kNoRecord;         // the record, if the anomaly shows in a single one
  std::vector<uint32_t> transactions;  // numbered session by session; the victim first
  std::string text;                    // name, record, and each of the transactions on a line
};

struct CheckOptions {
  /// Versions up to this timestamp existed before the history; 0: none did.
  uint64_t loaded_until = 0;
  /// Snapshots and commits of a session ascend.
  bool monotonic_sessions = true;
  /// A session's snapshot holds its own earlier commits.
  bool read_own_commits = false;
  /// Commits follow locks. False: locks count as reads.
  bool ordered_locks = true;
  size_t anomalies_max = 20;
  /// Bounds the operations held at once. Transactions take 17 bytes more each (timestamps), or 33 bytes each
  /// and 4 a dependency.
  size_t memory_bytes = size_t{512} << 20;
};

struct CheckReport {
  size_t transactions = 0;
  size_t committed = 0;
  size_t concluded = 0;  // transactions of unknown outcome that another transaction saw
  size_t operations = 0;
  std::vector<Anomaly> anomalies;
  bool more = false;  // stopped at anomalies_max

  bool ok() const { return anomalies.empty(); }
  bool Has(AnomalyKind kind) const;
  std::string ToString() const;
};

CheckReport CheckTimestamps(std::span<const SessionHistory* const> sessions, const CheckOptions& options);
CheckReport CheckDependencies(std::span<const SessionHistory* const> sessions, const CheckOptions& options);

}  // namespace nam::txn
