#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "txn/check/history.h"

namespace nam::txn {

/// One operation, grouped by its record.
struct Access {
  uint64_t record;
  uint64_t value;
  uint64_t version;
  uint32_t transaction;
  uint32_t place : 29;  // among the transaction's operations
  uint32_t kind_bits : 3;

  OperationKind kind() const { return static_cast<OperationKind>(kind_bits); }
  bool is_read() const { return kind() == OperationKind::kRead; }
  bool is_write() const { return IsWrite(kind()); }
};
static_assert(sizeof(Access) == 32);

/// The transactions of all sessions, numbered session by session, at 17 bytes each. Their operations stay
/// encoded and are decoded in as many passes as needed. One thread.
class HistoryIndex {
 public:
  explicit HistoryIndex(std::span<const SessionHistory* const> sessions);

  size_t transactions() const { return outcomes_.size(); }
  size_t operations() const { return operations_; }
  /// The operations among them that are locks.
  size_t locks() const { return locks_; }
  size_t sessions() const { return sessions_.size(); }
  /// The transactions of session i: numbers [first, second).
  std::pair<uint32_t, uint32_t> TransactionsOf(size_t session) const {
    return {first_of_session_[session], first_of_session_[session + 1]};
  }
  size_t SessionOf(uint32_t transaction) const;

  uint64_t snapshot(uint32_t transaction) const { return snapshots_[transaction]; }
  uint64_t commit(uint32_t transaction) const { return commits_[transaction]; }
  Outcome outcome(uint32_t transaction) const { return static_cast<Outcome>(outcomes_[transaction] & 3); }
  bool committed(uint32_t transaction) const { return outcome(transaction) == Outcome::kCommitted; }
  /// The outcome was unknown; a transaction that saw it proves the commit.
  bool concluded(uint32_t transaction) const { return (outcomes_[transaction] & kConcluded) != 0; }
  /// Concludes that an unknown transaction committed, since a transaction at `snapshot` saw it. Its timestamp
  /// is not above `snapshot`.
  void Conclude(uint32_t transaction, uint64_t snapshot);

  using Body = std::function<void(uint32_t transaction, const TransactionRecord&)>;
  void ForEachTransaction(const Body& body) const;

  /// Calls `body` for each record with its accesses by all transactions, ordered by transaction and place.
  /// Makes as many passes over the history as needed to hold at most `memory_bytes` of accesses. Stops when
  /// `body` returns false.
  using RecordBody = std::function<bool(std::span<const Access>)>;
  void ForEachRecord(size_t memory_bytes, const RecordBody& body) const;

  /// Concludes that unknown transactions committed if a read returned their values.
  void ConcludeFromReads();

 private:
  static constexpr uint8_t kConcluded = 4;

  std::span<const SessionHistory* const> sessions_;
  std::vector<uint32_t> first_of_session_;  // and the end
  std::vector<uint64_t> snapshots_;
  std::vector<uint64_t> commits_;
  std::vector<uint8_t> outcomes_;
  size_t operations_ = 0;
  size_t locks_ = 0;
};

/// The accesses of the first transaction in `accesses`, which is not empty.
std::span<const Access> FirstTransaction(std::span<const Access> accesses);

}  // namespace nam::txn
