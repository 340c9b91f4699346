#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "txn/check/history.h"

/// Decides whether a history is one of snapshot isolation. Twice, independently:
///
///  - CheckTimestamps believes the engine's timestamps: every read must have returned the newest version
///    committed at its snapshot, and of two writers of one record one must have seen the other. Exact.
///  - CheckDependencies believes no timestamp. As no write is blind, reads tell the order of each record's
///    versions; from it follow who read from whom (a dependency) and who read what another replaced (an
///    anti-dependency). There is snapshot isolation if every cycle of these has two anti-dependencies in a
///    row: Adya, Weak Consistency, 1999; Cerone and Gotsman, Analysing Snapshot Isolation, 2016. Write skew
///    is such a cycle, and allowed.
///
/// Both take time and memory linear in the history, but for sorting; one thread. A transaction whose outcome
/// is unknown counts as committed if somebody saw it, else as if it had never been; records of which that
/// leaves open who deleted them are not checked by timestamps.
namespace nam::txn {

enum class AnomalyKind : uint8_t {
  kDirtyRead,            // of a version not yet committed at the snapshot
  kAbortedRead,          // of a transaction that aborted
  kIntermediateRead,     // of what its writer itself replaced before it committed
  kTornValue,            // of what nobody wrote
  kStaleRead,            // all from one snapshot, but not from its own
  kFracturedRead,        // reads of one transaction from different snapshots
  kLongFork,             // two transactions saw two others in opposite orders
  kCircularInformation,  // a transaction depends on what depends on it
  kLostUpdate,           // two replaced the same version
  kLostWrite,            // committed, but those who should have seen it did not
  kDuplicateKey,         // insert of a row that was there
  kMissingRow,           // update or delete of a row that was not there
  kWrongTimestamp,       // snapshot not before commit, one timestamp twice, version told differently
  kSessionWentBack,      // a session's snapshots or commits do not ascend
  kOwnCommitNotSeen,     // a session's snapshot is older than its last commit
  kValueUsedTwice,       // the recording is wrong: values must name writes
};
std::string_view AnomalyName(AnomalyKind kind);

inline constexpr uint64_t kNoRecord = ~uint64_t{0};

struct Anomaly {
  AnomalyKind kind;
  uint64_t record = kNoRecord;         // where it showed, if in a single one
  std::vector<uint32_t> transactions;  // numbered session by session; the victim first
  std::string text;                    // name, record, and each of the transactions on a line
};

struct CheckOptions {
  /// Versions up to this timestamp were there before the history; 0: nothing was.
  uint64_t loaded_until = 0;
  /// Snapshots and commits of a session ascend.
  bool monotonic_sessions = true;
  /// A session's snapshot holds its own earlier commits.
  bool read_own_commits = false;
  size_t anomalies_max = 20;
  /// For the operations that are looked at at once, beside 17 bytes a transaction (timestamps), or 33 a
  /// transaction and 4 a dependency.
  size_t memory_bytes = size_t{512} << 20;
};

struct CheckReport {
  size_t transactions = 0;
  size_t committed = 0;
  size_t concluded = 0;  // of them: outcome not known, but somebody saw them
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
