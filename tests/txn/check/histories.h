#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "txn/check/history.h"
#include "txn/check/history_checker.h"

namespace nam::txn {

using Sessions = std::vector<std::vector<TransactionRecord>>;

inline Operation Saw(uint64_t record, uint64_t value) {
  return {OperationKind::kRead, record, value};
}
inline Operation SawNothing(uint64_t record) {
  return {OperationKind::kRead, record, kNoValue};
}
inline Operation Inserted(uint64_t record, uint64_t value) {
  return {OperationKind::kInsert, record, value};
}
inline Operation Updated(uint64_t record, uint64_t value) {
  return {OperationKind::kUpdate, record, value};
}
inline Operation Locked(uint64_t record, uint64_t value) {
  return {OperationKind::kLock, record, value};
}
inline Operation Deleted(uint64_t record) {
  return {OperationKind::kDelete, record, kNoValue};
}

inline TransactionRecord Committed(uint64_t snapshot, uint64_t commit, std::vector<Operation> operations) {
  return {snapshot, commit, Outcome::kCommitted, std::move(operations)};
}
inline TransactionRecord Aborted(uint64_t snapshot, std::vector<Operation> operations) {
  return {snapshot, 0, Outcome::kAborted, std::move(operations)};
}
inline TransactionRecord Unknown(uint64_t snapshot, std::vector<Operation> operations) {
  return {snapshot, 0, Outcome::kUnknown, std::move(operations)};
}

/// The sessions' histories, in the form that their recorders write.
class Histories {
 public:
  explicit Histories(const Sessions& sessions) {
    for (const auto& transactions : sessions) {
      owned_.push_back(SessionHistory::InMemory());
      HistoryRecorder recorder(static_cast<uint32_t>(owned_.size()), *owned_.back());
      for (const TransactionRecord& transaction : transactions) recorder.Record(transaction);
      pointers_.push_back(owned_.back().get());
    }
  }
  explicit Histories(std::vector<std::unique_ptr<SessionHistory>> owned) : owned_(std::move(owned)) {
    for (const auto& history : owned_) pointers_.push_back(history.get());
  }

  std::span<const SessionHistory* const> all() const { return pointers_; }
  Sessions Decoded() const {
    Sessions sessions;
    for (const SessionHistory* const history : pointers_) {
      HistoryReader reader(*history);
      auto& transactions = sessions.emplace_back();
      for (TransactionRecord transaction; reader.Next(transaction);) transactions.push_back(transaction);
    }
    return sessions;
  }

 private:
  std::vector<std::unique_ptr<SessionHistory>> owned_;
  std::vector<const SessionHistory*> pointers_;
};

inline CheckReport ByTimestamps(const Sessions& sessions, const CheckOptions& options = {}) {
  return CheckTimestamps(Histories(sessions).all(), options);
}
inline CheckReport ByDependencies(const Sessions& sessions, const CheckOptions& options = {}) {
  return CheckDependencies(Histories(sessions).all(), options);
}

}  // namespace nam::txn
