#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/join_algorithm.h"
#include "proto/compute.pb.h"
#include "sql/bound_query.h"
#include "types/time_zone.h"

namespace nam::session {

/// When to do something: where it pays, never, or wherever possible.
enum class Choice : uint8_t { kAuto, kOff, kOn };

/// The transport of exchanges between compute servers.
enum class ExchangeOver : uint8_t { kAuto, kFabric, kSockets };

/// The settings that SET changes, for planning and running. A field's value here is its default; the table in
/// settings.cc has a line for each: its name, its values, its effect.
struct SessionSettings {
  int64_t prefetch_window = 10;  // blocks in flight per thread
  bool in_place = true;          // use blocks in place, if the fabric can
  bool verify_checksums = true;
  bool whole_tuples = false;
  bool compaction = true;
  int64_t result_mib_max = 1024;
  int64_t build_mib_max = 4096;
  int64_t transaction_mib_max = 1024;
  int64_t load_mib_max = 4096;
  int64_t compute_servers = 0;  // 0: all
  Choice multicast = Choice::kAuto;
  Choice work_queue = Choice::kAuto;
  Choice sorts_by_runs = Choice::kAuto;
  Choice server_writes = Choice::kAuto;
  plan::JoinAlgorithm join = plan::JoinAlgorithm::kAuto;
  plan::AggregateAlgorithm aggregate = plan::AggregateAlgorithm::kAuto;
  ExchangeOver exchange = ExchangeOver::kAuto;
  sql::NameSettings names;           // nam.default_storage, search_path
  std::string time_zone = kUtc;      // a name that TimeZone::Find knows
  int64_t statement_timeout_ms = 0;  // 0: none
  int64_t lock_timeout_ms = 0;       // 0: a lock of another transaction is a conflict at once
  std::string application_name;      // chosen by the client

  bool operator==(const SessionSettings&) const = default;

  proto::StreamSettings ForStreams() const;
  uint64_t build_bytes_max() const { return static_cast<uint64_t>(build_mib_max) << 20; }
  uint64_t transaction_bytes_max() const { return static_cast<uint64_t>(transaction_mib_max) << 20; }
  uint64_t load_bytes_max() const { return static_cast<uint64_t>(load_mib_max) << 20; }
  uint64_t result_bytes_max() const { return static_cast<uint64_t>(result_mib_max) << 20; }
};

/// A session's settings, transactional as PostgreSQL's:
///
///              SET    SET LOCAL   COMMIT    ROLLBACK
///     now      new    new         = kept    = before
///     kept     new    as it was             = before
///
/// Outside of a transaction the first two are the same. A savepoint saves the first two, and ROLLBACK TO
/// restores them.
class Settings {
 public:
  struct Shown {
    std::string name;
    std::string value;
    std::string description;
  };

  explicit Settings(SessionSettings defaults);

  const SessionSettings& now() const { return now_; }
  /// SET and RESET. 42704 if there is no such setting, 22023 for an invalid value, 55P02 if it cannot be
  /// changed. SET LOCAL outside of a transaction has no effect.
  absl::Status Set(const sql::SetStatement& statement);
  absl::StatusOr<Shown> Show(const sql::ShowStatement& statement) const;
  /// By name.
  std::vector<Shown> ShowAll() const;

  void BeginTransaction();
  void EndTransaction(bool committed);
  bool in_transaction() const { return in_transaction_; }

  /// Adds a savepoint of the transaction, inside its others.
  void AddSavepoint() { savepoints_.push_back({now_, kept_}); }
  /// Rolls back to the innermost of the first `savepoints`, and drops those inside of it.
  void RollBackTo(size_t savepoints);
  /// Drops those after the first `savepoints`. Keeps settings made since them.
  void Release(size_t savepoints) { savepoints_.resize(savepoints); }

 private:
  struct Savepoint {
    SessionSettings now, kept;
  };
  void ResetAll();

  const SessionSettings defaults_;
  SessionSettings now_;
  SessionSettings kept_;    // after COMMIT
  SessionSettings before_;  // after ROLLBACK
  bool in_transaction_ = false;
  std::vector<Savepoint> savepoints_;  // the innermost is last
};

}  // namespace nam::session
