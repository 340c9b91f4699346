#include <algorithm>
#include <utility>

#include "txn/check/anomaly_report.h"
#include "txn/check/dependency_graph.h"
#include "txn/check/history_checker.h"
#include "txn/check/history_index.h"

namespace nam::txn {
namespace {

/// Visits one record after the other: derives the order of its versions from the reads of each update, and
/// from that the dependencies. Runs twice, as the graph requires.
class DependencyCheck {
 public:
  DependencyCheck(HistoryIndex& index, const CheckOptions& options)
      : index_(index),
        options_(options),
        report_(index, options),
        graph_(index.transactions() + index.locks()) {}

  CheckReport Run();

 private:
  struct Write {
    uint64_t value;
    uint32_t writer;
    bool counts;  // committed, and the last of its transaction
  };
  struct Replacement {
    uint64_t value;  // the value that the writer read; kNoValue: no row
    uint32_t writer;
  };
  struct Read {
    uint64_t value;
    uint32_t reader;
  };

  void AddSessions();
  void AddRecord(std::span<const Access> accesses, bool report);
  void AddTransaction(std::span<const Access> own);
  void CheckWrites();
  void AddRead(const Read& read, bool report);
  void AddLock(const Read& lock);
  void Explain(const Read& read);
  void ReportCycles();

  HistoryIndex& index_;
  const CheckOptions& options_;
  AnomalyReport report_;
  DependencyGraph graph_;

  size_t locks_added_ = 0;  // nodes of the graph behind those of transactions

  // The current record.
  uint64_t record_ = 0;
  std::vector<Write> writes_;              // by value
  std::vector<Replacement> replacements_;  // by value
  std::vector<Read> reads_;
  std::vector<Read> locks_;  // of committed transactions
  bool deleted_ = false;     // the record was absent more than once
  bool initial_known_ = false;
  uint64_t initial_ = kNoValue;  // its value before the history
};

void DependencyCheck::AddSessions() {
  if (!options_.read_own_commits) return;
  for (size_t session = 0; session < index_.sessions(); ++session) {
    const auto [first, end] = index_.TransactionsOf(session);
    for (uint32_t i = first; i + 1 < end; ++i) graph_.AddEdge(i, i + 1, false);
  }
}

/// Adds one transaction's accesses to the record.
void DependencyCheck::AddTransaction(std::span<const Access> own) {
  const uint32_t number = own[0].transaction;
  const bool committed = index_.committed(number);
  const Access* first_read = nullptr;
  const Access* first_write = nullptr;
  const Access* last_write = nullptr;
  for (const Access& access : own) {
    if (access.is_write()) {
      if (first_write == nullptr) first_write = &access;
      last_write = &access;
    } else if (access.kind() == OperationKind::kLock) {
      if (committed && options_.ordered_locks) locks_.push_back({access.value, number});
    } else if (first_write == nullptr) {
      if (first_read == nullptr) first_read = &access;
      reads_.push_back({access.value, number});
    }
  }
  if (first_write == nullptr) return;
  for (const Access& access : own) {
    if (!access.is_write()) continue;
    deleted_ |= access.kind() == OperationKind::kDelete && index_.outcome(number) != Outcome::kAborted;
    if (access.kind() == OperationKind::kDelete) continue;
    writes_.push_back({access.value, number, committed && &access == last_write});
  }
  if (!committed) return;
  if (first_write->kind() == OperationKind::kInsert) {
    replacements_.push_back({kNoValue, number});
  } else if (first_read != nullptr) {
    replacements_.push_back({first_read->value, number});
  }
}

void DependencyCheck::CheckWrites() {
  for (size_t i = 1; i < writes_.size(); ++i) {
    if (writes_[i].value != writes_[i - 1].value) continue;
    report_.Add(AnomalyKind::kValueUsedTwice, record_, {writes_[i].writer, writes_[i - 1].writer});
  }
  for (size_t i = 0; i < replacements_.size(); ++i) {
    const Replacement& replacement = replacements_[i];
    if (i > 0 && replacement.value == replacements_[i - 1].value &&
        (replacement.value != kNoValue || !deleted_)) {
      report_.Add(replacement.value == kNoValue ? AnomalyKind::kDuplicateKey : AnomalyKind::kLostUpdate,
                  record_, {replacement.writer, replacements_[i - 1].writer});
    }
  }
}

template <typename Entry>
const Entry* Find(const std::vector<Entry>& entries, uint64_t value) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), value,
                                   [](const Entry& entry, uint64_t v) { return entry.value < v; });
  return at == entries.end() || at->value != value ? nullptr : &*at;
}

void DependencyCheck::AddRead(const Read& read, bool report) {
  if (read.value == kNoValue) {
    // A read of no row precedes the insert, unless it follows a delete.
    const Replacement* const insert = deleted_ ? nullptr : Find(replacements_, kNoValue);
    if (insert != nullptr) graph_.AddEdge(read.reader, insert->writer, true);
    return;
  }
  const Write* const write = Find(writes_, read.value);
  if (write == nullptr || !write->counts) {
    if (report) Explain(read);
    if (write != nullptr) return;
  } else {
    graph_.AddEdge(write->writer, read.reader, false);
  }
  const Replacement* const next = Find(replacements_, read.value);
  if (next != nullptr) graph_.AddEdge(read.reader, next->writer, true);
}

/// A snapshot behind the lock's commit that does not see the change.
void DependencyCheck::AddLock(const Read& lock) {
  const Replacement* const next = Find(replacements_, lock.value);
  if (next == nullptr || next->writer == lock.reader) return;
  const auto between = static_cast<uint32_t>(index_.transactions() + locks_added_++);
  graph_.AddEdge(lock.reader, between, false);
  graph_.AddEdge(between, next->writer, true);
}

/// Explains why no committed transaction wrote what was read.
void DependencyCheck::Explain(const Read& read) {
  const Write* const write = Find(writes_, read.value);
  if (write != nullptr) {
    const bool committed = index_.committed(write->writer);
    if (write->writer == read.reader) return;  // a bug of the recording: it read before it wrote
    report_.Add(committed ? AnomalyKind::kIntermediateRead : AnomalyKind::kAbortedRead, record_,
                {read.reader, write->writer});
    return;
  }
  if (options_.loaded_until != 0 && (!initial_known_ || initial_ == read.value)) {
    initial_known_ = true;
    initial_ = read.value;
    return;
  }
  report_.Add(AnomalyKind::kTornValue, record_, {read.reader});
}

void DependencyCheck::AddRecord(std::span<const Access> accesses, bool report) {
  record_ = accesses[0].record;
  writes_.clear();
  replacements_.clear();
  reads_.clear();
  locks_.clear();
  deleted_ = initial_known_ = false;
  while (!accesses.empty()) {
    const auto own = FirstTransaction(accesses);
    AddTransaction(own);
    accesses = accesses.subspan(own.size());
  }
  const auto by_value = [](const auto& a, const auto& b) {
    return std::pair(a.value, a.writer) < std::pair(b.value, b.writer);
  };
  std::sort(writes_.begin(), writes_.end(), by_value);
  std::sort(replacements_.begin(), replacements_.end(), by_value);
  if (report) CheckWrites();
  for (const Read& read : reads_) AddRead(read, report);
  for (const Read& lock : locks_) AddLock(lock);
}

void DependencyCheck::ReportCycles() {
  for (const auto& cycle : graph_.Cycles(options_.anomalies_max)) {
    std::vector<uint32_t> transactions;
    size_t anti = 0;
    for (const auto& edge : cycle) {
      if (edge.from < index_.transactions()) transactions.push_back(edge.from);
      anti += edge.anti;
    }
    const bool locks = transactions.size() < cycle.size();
    report_.Add(locks       ? AnomalyKind::kLockIgnored
                : anti == 0 ? AnomalyKind::kCircularInformation
                : anti == 1 ? AnomalyKind::kFracturedRead
                            : AnomalyKind::kLongFork,
                kNoRecord, std::move(transactions));
  }
}

CheckReport DependencyCheck::Run() {
  index_.ConcludeFromReads();
  for (const bool counting : {true, false}) {
    locks_added_ = 0;
    AddSessions();
    index_.ForEachRecord(options_.memory_bytes, [&](std::span<const Access> accesses) {
      AddRecord(accesses, counting);
      return true;
    });
    if (counting) graph_.Allocate();
  }
  ReportCycles();
  return report_.Finish();
}

}  // namespace

CheckReport CheckDependencies(std::span<const SessionHistory* const> sessions, const CheckOptions& options) {
  HistoryIndex index(sessions);
  return DependencyCheck(index, options).Run();
}

}  // namespace nam::txn
