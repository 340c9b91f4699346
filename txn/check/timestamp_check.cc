#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "txn/check/anomaly_report.h"
#include "txn/check/history_checker.h"
#include "txn/check/history_index.h"
#include "txn/check/stale_reads.h"

namespace nam::txn {
namespace {

/// A committed transaction's result for a record.
struct Version {
  uint64_t commit;
  uint64_t value;  // kNoValue: deleted
  uint32_t writer;
  OperationKind first;  // its first operation on the record
};

/// Walks through a record's accesses transaction by transaction.
template <typename Body>
void ForEachOf(std::span<const Access> accesses, const Body& body) {
  while (!accesses.empty()) {
    const auto own = FirstTransaction(accesses);
    body(own);
    accesses = accesses.subspan(own.size());
  }
}

uint64_t ValueOf(const Access& write) {
  return write.kind() == OperationKind::kDelete ? kNoValue : write.value;
}

const Access* LastWrite(std::span<const Access> own) {
  const auto last = std::find_if(own.rbegin(), own.rend(), [](const Access& a) { return a.is_write(); });
  return last == own.rend() ? nullptr : &*last;
}

bool WroteBefore(std::span<const Access> own, const Access& read) {
  return std::any_of(own.begin(), own.end(),
                     [&](const Access& access) { return access.is_write() && access.place < read.place; });
}

/// Checks one record after the other against the order of the commit timestamps.
class TimestampCheck {
 public:
  TimestampCheck(HistoryIndex& index, const CheckOptions& options)
      : index_(index), options_(options), report_(index, options), stale_(index, report_) {}

  CheckReport Run();

 private:
  void CheckSessions();
  void CheckCommitsDiffer();
  void ConcludeDeletes();
  void ConcludeDeletesOf(std::span<const Access> accesses);

  void CheckRecord(std::span<const Access> accesses);
  void CollectVersions(std::span<const Access> accesses);
  void CheckVersions();
  void CheckLocks(std::span<const Access> own);
  void CheckRead(std::span<const Access> accesses, const Access& read);
  void CheckInitialRead(std::span<const Access> accesses, const Access& read);
  void Explain(std::span<const Access> accesses, const Access& read, std::optional<size_t> expected);
  void ExplainAbsence(std::span<const Access> accesses, const Access& read, std::optional<size_t> expected);
  void ReportMissed();

  /// The newest version at a snapshot; nullopt: the state before the history.
  std::optional<size_t> NewestAt(uint64_t snapshot) const;
  bool InitiallyPresent() const { return initial_.has_value() && *initial_ != kNoValue; }
  /// Whether a read that no write explains can have returned the state before the history.
  bool LooksInitial(std::span<const Access> accesses, const Access& read) const;
  void Miss(size_t version, const Access& read);

  HistoryIndex& index_;
  const CheckOptions& options_;
  AnomalyReport report_;
  StaleReads stale_;
  absl::flat_hash_set<uint64_t> undecided_;  // records that unknown outcomes leave undecided

  // The current record.
  uint64_t record_ = 0;
  std::vector<Version> versions_;    // ascending
  std::optional<uint64_t> initial_;  // the value before the history, once a read returned it
  struct Seen {
    size_t readers = 0;
    std::vector<uint32_t> missed_by;
  };
  std::vector<Seen> seen_;  // by version
};

void TimestampCheck::CheckSessions() {
  for (size_t session = 0; session < index_.sessions(); ++session) {
    const auto [first, end] = index_.TransactionsOf(session);
    uint32_t newest_snapshot = first;
    std::optional<uint32_t> last_commit;
    for (uint32_t i = first; i < end; ++i) {
      const uint64_t snapshot = index_.snapshot(i);
      const bool wrote = index_.committed(i) && index_.commit(i) != 0;
      if (wrote && snapshot >= index_.commit(i)) report_.Add(AnomalyKind::kWrongTimestamp, kNoRecord, {i});
      if (options_.monotonic_sessions && snapshot < index_.snapshot(newest_snapshot)) {
        report_.Add(AnomalyKind::kSessionWentBack, kNoRecord, {i, newest_snapshot});
      }
      if (snapshot > index_.snapshot(newest_snapshot)) newest_snapshot = i;
      if (last_commit.has_value()) {
        const uint64_t commit = index_.commit(*last_commit);
        if (options_.read_own_commits && snapshot < commit) {
          report_.Add(AnomalyKind::kOwnCommitNotSeen, kNoRecord, {i, *last_commit});
        }
        if (options_.monotonic_sessions && wrote && !index_.concluded(i) && index_.commit(i) <= commit) {
          report_.Add(AnomalyKind::kSessionWentBack, kNoRecord, {i, *last_commit});
        }
      }
      if (wrote && !index_.concluded(i)) last_commit = i;
    }
  }
}

void TimestampCheck::CheckCommitsDiffer() {
  std::vector<uint64_t> commits;
  for (uint32_t i = 0; i < index_.transactions(); ++i) {
    // A concluded timestamp is a bound, and may equal another's.
    if (index_.committed(i) && !index_.concluded(i) && index_.commit(i) != 0)
      commits.push_back(index_.commit(i));
  }
  std::sort(commits.begin(), commits.end());
  for (auto at = commits.begin(); (at = std::adjacent_find(at, commits.end())) != commits.end(); ++at) {
    std::vector<uint32_t> both;
    for (uint32_t i = 0; i < index_.transactions() && both.size() < 2; ++i) {
      if (index_.committed(i) && !index_.concluded(i) && index_.commit(i) == *at) both.push_back(i);
    }
    report_.Add(AnomalyKind::kWrongTimestamp, kNoRecord, both);
    if (report_.full()) return;
  }
}

/// Concludes unknown deletes from reads that found nothing: the reader should have found the version that the
/// unknown transaction read and deleted.
void TimestampCheck::ConcludeDeletes() {
  absl::flat_hash_map<uint64_t, std::vector<Access>> records;
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    if (index_.outcome(number) != Outcome::kUnknown && !index_.concluded(number)) return;
    for (const Operation& operation : content.operations) {
      if (operation.kind == OperationKind::kDelete) records[operation.record];
    }
  });
  if (records.empty()) return;
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    for (uint32_t i = 0; i < content.operations.size(); ++i) {
      const Operation& operation = content.operations[i];
      const auto at = records.find(operation.record);
      if (at == records.end()) continue;
      at->second.push_back({operation.record, operation.value, operation.version, number, i,
                            static_cast<uint32_t>(operation.kind)});
    }
  });
  for (const auto& [record, accesses] : records) ConcludeDeletesOf(accesses);
}

void TimestampCheck::ConcludeDeletesOf(std::span<const Access> accesses) {
  CollectVersions(accesses);
  absl::flat_hash_map<uint64_t, uint32_t> deleter_of;  // by the value that it found
  ForEachOf(accesses, [&](std::span<const Access> own) {
    const uint32_t number = own[0].transaction;
    if (index_.outcome(number) != Outcome::kUnknown && !index_.concluded(number)) return;
    const Access* const last = LastWrite(own);
    const bool found = own[0].is_read() && own[0].value != kNoValue;
    if (found && last != nullptr && last->kind() == OperationKind::kDelete) {
      const auto [deleter, alone] = deleter_of.emplace(own[0].value, number);
      if (alone || index_.concluded(deleter->second)) return;
      // At most one of the two has committed. If no other read saw either, nothing tells which.
      if (!index_.concluded(number)) undecided_.insert(own[0].record);
      deleter->second = number;
    }
  });
  if (!accesses.empty() && undecided_.contains(accesses[0].record)) return;
  const auto saw_nothing = [&](uint32_t number) {
    const uint64_t snapshot = index_.snapshot(number);
    const auto expected = NewestAt(snapshot);
    for (const auto& [found, deleter] : deleter_of) {
      // Without a version in the history it is one from before.
      const bool it = expected.has_value() ? versions_[*expected].value == found : options_.loaded_until != 0;
      if (it && index_.snapshot(deleter) < snapshot) index_.Conclude(deleter, snapshot);
    }
  };
  ForEachOf(accesses, [&](std::span<const Access> own) {
    for (const Access& access : own) {
      // A committed insert found no row, too.
      const bool inserts = access.kind() == OperationKind::kInsert && index_.committed(access.transaction);
      const bool misses = access.is_read() && access.value == kNoValue;
      if ((inserts || misses) && !WroteBefore(own, access)) saw_nothing(access.transaction);
    }
  });
}

void TimestampCheck::CollectVersions(std::span<const Access> accesses) {
  versions_.clear();
  ForEachOf(accesses, [&](std::span<const Access> own) {
    const uint32_t number = own[0].transaction;
    if (!index_.committed(number)) return;
    const Access* const last = LastWrite(own);
    if (last == nullptr) return;
    const auto first = std::find_if(own.begin(), own.end(), [](const Access& a) { return a.is_write(); });
    // Inserted and deleted by the same transaction, the row was never visible to others.
    if (first->kind() == OperationKind::kInsert && last->kind() == OperationKind::kDelete) return;
    versions_.push_back({index_.commit(number), ValueOf(*last), number, first->kind()});
  });
  std::sort(versions_.begin(), versions_.end(),
            [](const Version& a, const Version& b) { return a.commit < b.commit; });
}

std::optional<size_t> TimestampCheck::NewestAt(uint64_t snapshot) const {
  const auto after = std::upper_bound(versions_.begin(), versions_.end(), snapshot,
                                      [](uint64_t s, const Version& version) { return s < version.commit; });
  if (after == versions_.begin()) return std::nullopt;
  return static_cast<size_t>(after - versions_.begin()) - 1;
}

void TimestampCheck::CheckRecord(std::span<const Access> accesses) {
  CollectVersions(accesses);
  seen_.assign(versions_.size(), {});
  initial_.reset();
  if (options_.loaded_until == 0) initial_ = kNoValue;
  ForEachOf(accesses, [&](std::span<const Access> own) {
    for (const Access& access : own) {
      if (access.is_read() && !WroteBefore(own, access)) CheckRead(accesses, access);
    }
    CheckLocks(own);
  });
  CheckVersions();
  ReportMissed();
}

/// A concluded timestamp is a bound, and proves no order.
void TimestampCheck::CheckLocks(std::span<const Access> own) {
  const uint32_t locker = own[0].transaction;
  if (!options_.ordered_locks || !index_.committed(locker) || index_.concluded(locker)) return;
  const bool locks =
      std::any_of(own.begin(), own.end(), [](const Access& a) { return a.kind() == OperationKind::kLock; });
  if (!locks) return;
  for (const Version& version : versions_) {
    const bool between = version.commit > index_.snapshot(locker) && version.commit < index_.commit(locker);
    if (between && !index_.concluded(version.writer))
      report_.Add(AnomalyKind::kLockIgnored, record_, {version.writer, locker});
  }
}

void TimestampCheck::CheckVersions() {
  for (size_t i = 0; i < versions_.size(); ++i) {
    const Version& version = versions_[i];
    const bool insert = version.first == OperationKind::kInsert;
    if (version.commit == 0) {  // a committed transaction that wrote has one
      report_.Add(AnomalyKind::kWrongTimestamp, record_, {version.writer});
      continue;
    }
    if (i == 0) {
      if (initial_.has_value() && insert == InitiallyPresent()) {
        report_.Add(insert ? AnomalyKind::kDuplicateKey : AnomalyKind::kMissingRow, record_,
                    {version.writer});
      }
      continue;
    }
    const Version& before = versions_[i - 1];
    const bool present = before.value != kNoValue;
    const bool overlap = index_.snapshot(version.writer) < before.commit;
    if (insert && present) {
      report_.Add(AnomalyKind::kDuplicateKey, record_, {version.writer, before.writer});
    } else if (overlap) {
      report_.Add(AnomalyKind::kLostUpdate, record_, {version.writer, before.writer});
    } else if (!insert && !present) {
      report_.Add(AnomalyKind::kMissingRow, record_, {version.writer, before.writer});
    }
  }
}

void TimestampCheck::CheckRead(std::span<const Access> accesses, const Access& read) {
  const auto expected = NewestAt(index_.snapshot(read.transaction));
  if (!expected.has_value()) {
    CheckInitialRead(accesses, read);
    return;
  }
  const Version& version = versions_[*expected];
  if (read.value != version.value) {
    Explain(accesses, read, expected);
    return;
  }
  ++seen_[*expected].readers;
  const bool told = read.version != kVersionNotTold && read.value != kNoValue;
  if (told && read.version != version.commit) {
    report_.Add(AnomalyKind::kWrongTimestamp, read.record, {read.transaction, version.writer});
  }
}

void TimestampCheck::CheckInitialRead(std::span<const Access> accesses, const Access& read) {
  if (initial_.has_value() && read.value == *initial_) return;
  if (initial_.has_value() || !LooksInitial(accesses, read)) {
    Explain(accesses, read, std::nullopt);
    return;
  }
  initial_ = read.value;
}

bool TimestampCheck::LooksInitial(std::span<const Access> accesses, const Access& read) const {
  if (options_.loaded_until == 0) return false;
  if (read.value == kNoValue) return true;
  if (read.version != kVersionNotTold && read.version > options_.loaded_until) return false;
  return std::none_of(accesses.begin(), accesses.end(),
                      [&](const Access& access) { return access.is_write() && access.value == read.value; });
}

void TimestampCheck::Miss(size_t version, const Access& read) {
  auto& missed_by = seen_[version].missed_by;
  if (missed_by.empty() || missed_by.back() != read.transaction) missed_by.push_back(read.transaction);
}

void TimestampCheck::ExplainAbsence(std::span<const Access> accesses, const Access& read,
                                    std::optional<size_t> expected) {
  const bool initially_absent =
      !InitiallyPresent() &&
      (versions_.empty() || versions_[0].first == OperationKind::kInsert || options_.loaded_until == 0);
  bool once = expected.has_value() && initially_absent;
  for (size_t i = 0; expected.has_value() && i < *expected; ++i) once |= versions_[i].value == kNoValue;
  if (once) {
    Miss(*expected, read);
    return;
  }
  for (const Version& version : versions_) {
    if (version.value != kNoValue || version.commit <= index_.snapshot(read.transaction)) continue;
    report_.Add(AnomalyKind::kDirtyRead, read.record, {read.transaction, version.writer});
    return;
  }
  for (const Access& access : accesses) {
    if (access.kind() != OperationKind::kDelete || index_.committed(access.transaction)) continue;
    report_.Add(AnomalyKind::kAbortedRead, read.record, {read.transaction, access.transaction});
    return;
  }
  if (expected.has_value()) {
    report_.Add(AnomalyKind::kLostWrite, read.record, {versions_[*expected].writer, read.transaction});
  } else {
    report_.Add(AnomalyKind::kTornValue, read.record, {read.transaction});
  }
}

/// Explains why a read did not return the expected value. Searches all accesses: only for wrong reads.
void TimestampCheck::Explain(std::span<const Access> accesses, const Access& read,
                             std::optional<size_t> expected) {
  if (report_.full()) return;
  if (read.value == kNoValue) {
    ExplainAbsence(accesses, read, expected);
    return;
  }
  const auto write = std::find_if(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.is_write() && access.value == read.value;
  });
  if (write == accesses.end()) {
    if (initial_.has_value() ? *initial_ == read.value : LooksInitial(accesses, read)) {
      initial_ = read.value;
      Miss(*expected, read);
    } else {
      report_.Add(AnomalyKind::kTornValue, read.record, {read.transaction});
    }
    return;
  }
  const uint32_t writer = write->transaction;
  const auto version =
      std::find_if(versions_.begin(), versions_.end(), [&](const Version& v) { return v.writer == writer; });
  if (version == versions_.end()) {
    const bool committed = index_.committed(writer);
    report_.Add(committed ? AnomalyKind::kIntermediateRead : AnomalyKind::kAbortedRead, read.record,
                {read.transaction, writer});
  } else if (version->value != read.value) {
    report_.Add(AnomalyKind::kIntermediateRead, read.record, {read.transaction, writer});
  } else if (version->commit > index_.snapshot(read.transaction)) {
    report_.Add(AnomalyKind::kDirtyRead, read.record, {read.transaction, writer});
  } else {
    Miss(*expected, read);
  }
}

void TimestampCheck::ReportMissed() {
  for (size_t i = 0; i < versions_.size(); ++i) {
    const Seen& seen = seen_[i];
    if (seen.readers == 0 && seen.missed_by.size() >= 2) {
      report_.Add(AnomalyKind::kLostWrite, record_,
                  {versions_[i].writer, seen.missed_by[0], seen.missed_by[1]});
      continue;
    }
    for (const uint32_t reader : seen.missed_by) stale_.Add({reader, versions_[i].writer, record_});
  }
}

CheckReport TimestampCheck::Run() {
  index_.ConcludeFromReads();
  ConcludeDeletes();
  CheckSessions();
  CheckCommitsDiffer();
  index_.ForEachRecord(options_.memory_bytes, [&](std::span<const Access> accesses) {
    record_ = accesses[0].record;
    if (!undecided_.contains(record_)) CheckRecord(accesses);
    if (stale_.size() > options_.anomalies_max) report_.Stop();
    return !report_.full();
  });
  stale_.Report();
  return report_.Finish();
}

}  // namespace

CheckReport CheckTimestamps(std::span<const SessionHistory* const> sessions, const CheckOptions& options) {
  HistoryIndex index(sessions);
  return TimestampCheck(index, options).Run();
}

}  // namespace nam::txn
