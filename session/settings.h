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

/// Something that is done where it pays, never, or wherever possible.
enum class Choice : uint8_t { kAuto, kOff, kOn };

/// What exchanges between compute servers go over.
enum class ExchangeOver : uint8_t { kAuto, kFabric, kSockets };

/// What SET changes, as planning and running read it. A field's value here is its default; the table in
/// settings.cc has a line for each: its name, its values, what it does.
struct SessionSettings {
  int64_t prefetch_window = 10;  // blocks in flight per thread
  bool in_place = true;          // take blocks where they lie, if the fabric can
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
  std::string application_name;      // whatever the client says

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
/// Outside of a transaction the first two are the same. A savepoint keeps the first two, and ROLLBACK TO
/// brings them back.
class Settings {
 public:
  struct Shown {
    std::string name;
    std::string value;
    std::string description;
  };

  explicit Settings(SessionSettings defaults);

  const SessionSettings& now() const { return now_; }
  /// SET and RESET. 42704 if there is no such setting, 22023 if it takes no such value, 55P02 if it cannot be
  /// changed. SET LOCAL outside of a transaction has no effect.
  absl::Status Set(const sql::SetStatement& statement);
  absl::StatusOr<Shown> Show(const sql::ShowStatement& statement) const;
  /// By name.
  std::vector<Shown> ShowAll() const;

  void BeginTransaction();
  void EndTransaction(bool committed);
  bool in_transaction() const { return in_transaction_; }

  /// Of the transaction: inside the others that it has.
  void AddSavepoint() { savepoints_.push_back({now_, kept_}); }
  /// The innermost of the first `savepoints` is rolled back to; those inside of it are gone.
  void RollBackTo(size_t savepoints);
  /// Those behind the first `savepoints` are gone. What was set since them stays.
  void Release(size_t savepoints) { savepoints_.resize(savepoints); }

 private:
  struct Savepoint {
    SessionSettings now, kept;
  };
  void ResetAll();

  const SessionSettings defaults_;
  SessionSettings now_;
  SessionSettings kept_;    // what COMMIT leaves
  SessionSettings before_;  // what ROLLBACK leaves
  bool in_transaction_ = false;
  std::vector<Savepoint> savepoints_;  // the innermost is the last
};

}  // namespace nam::session
