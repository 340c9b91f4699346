#include "txn/check/history_index.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"

namespace nam::txn {
namespace {

/// The pass that a record belongs to, of `passes`. Spreads any distribution of keys evenly.
uint64_t PassOf(uint64_t record, uint64_t passes) {
  const uint64_t mixed = (record ^ record >> 32) * 0x9e3779b97f4a7c15;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(mixed) * passes >> 64);
}

bool Before(const Access& a, const Access& b) {
  if (a.record != b.record) return a.record < b.record;
  if (a.transaction != b.transaction) return a.transaction < b.transaction;
  return a.place < b.place;
}

}  // namespace

std::span<const Access> FirstTransaction(std::span<const Access> accesses) {
  size_t n = 1;
  while (n < accesses.size() && accesses[n].transaction == accesses[0].transaction) ++n;
  return accesses.first(n);
}

HistoryIndex::HistoryIndex(std::span<const SessionHistory* const> sessions) : sessions_(sessions) {
  TransactionRecord transaction;
  for (const SessionHistory* const session : sessions_) {
    first_of_session_.push_back(static_cast<uint32_t>(snapshots_.size()));
    HistoryReader reader(*session);
    while (reader.Next(transaction)) {
      snapshots_.push_back(transaction.snapshot);
      commits_.push_back(transaction.commit);
      outcomes_.push_back(static_cast<uint8_t>(transaction.outcome));
      operations_ += transaction.operations.size();
      for (const Operation& operation : transaction.operations)
        locks_ += operation.kind == OperationKind::kLock ? 1 : 0;
    }
  }
  NAM_CHECK(snapshots_.size() < std::numeric_limits<uint32_t>::max() / 2, "too many transactions");
  first_of_session_.push_back(static_cast<uint32_t>(snapshots_.size()));
}

size_t HistoryIndex::SessionOf(uint32_t transaction) const {
  const auto after = std::upper_bound(first_of_session_.begin(), first_of_session_.end(), transaction);
  return static_cast<size_t>(after - first_of_session_.begin()) - 1;
}

void HistoryIndex::Conclude(uint32_t transaction, uint64_t snapshot) {
  if (outcome(transaction) == Outcome::kUnknown) {
    outcomes_[transaction] = static_cast<uint8_t>(Outcome::kCommitted);
    if (commits_[transaction] != 0) return;  // its timestamp is known
    outcomes_[transaction] |= kConcluded;
    commits_[transaction] = snapshot;
  } else if (concluded(transaction)) {
    commits_[transaction] = std::min(commits_[transaction], snapshot);
  }
}

void HistoryIndex::ForEachTransaction(const Body& body) const {
  TransactionRecord transaction;
  uint32_t number = 0;
  for (const SessionHistory* const session : sessions_) {
    HistoryReader reader(*session);
    while (reader.Next(transaction)) body(number++, transaction);
  }
}

void HistoryIndex::ForEachRecord(size_t memory_bytes, const RecordBody& body) const {
  const uint64_t passes =
      std::max<uint64_t>(1, operations_ * sizeof(Access) / std::max<size_t>(memory_bytes, 1));
  std::vector<Access> accesses;
  // The hash spreads records, not operations: hot records make passes unequal.
  accesses.reserve(operations_ / passes + operations_ / passes / 16 + 16);
  for (uint64_t pass = 0; pass < passes; ++pass) {
    accesses.clear();
    ForEachTransaction([&](uint32_t transaction, const TransactionRecord& content) {
      for (uint32_t i = 0; i < content.operations.size(); ++i) {
        const Operation& operation = content.operations[i];
        if (PassOf(operation.record, passes) != pass) continue;
        accesses.push_back({.record = operation.record,
                            .value = operation.value,
                            .version = operation.version,
                            .transaction = transaction,
                            .place = i,
                            .kind_bits = static_cast<uint32_t>(operation.kind)});
      }
    });
    std::sort(accesses.begin(), accesses.end(), Before);
    for (size_t first = 0; first < accesses.size();) {
      size_t end = first + 1;
      while (end < accesses.size() && accesses[end].record == accesses[first].record) ++end;
      if (!body(std::span<const Access>(accesses).subspan(first, end - first))) return;
      first = end;
    }
  }
}

void HistoryIndex::ConcludeFromReads() {
  if (std::find(outcomes_.begin(), outcomes_.end(), static_cast<uint8_t>(Outcome::kUnknown)) ==
      outcomes_.end()) {
    return;
  }
  absl::flat_hash_map<uint64_t, uint32_t> writer_of;
  ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    if (content.outcome != Outcome::kUnknown) return;
    for (const Operation& operation : content.operations) {
      if (IsWrite(operation.kind) && operation.value != kNoValue) {
        writer_of.emplace(operation.value, number);
      }
    }
  });
  ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    for (const Operation& operation : content.operations) {
      if (operation.kind != OperationKind::kRead) continue;
      const auto writer = writer_of.find(operation.value);
      if (writer == writer_of.end() || writer->second == number) continue;
      const bool told = operation.version != kVersionNotTold;
      Conclude(writer->second, told ? operation.version : content.snapshot);
    }
  });
}

}  // namespace nam::txn
