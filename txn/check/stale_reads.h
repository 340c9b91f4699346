#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "txn/check/anomaly_report.h"
#include "txn/check/history_index.h"

namespace nam::txn {

/// Classifies reads that missed a version, by the other reads of the same transaction:
///
///     stale read       it saw nothing as new as what it missed: one snapshot, but an old one
///     fractured read   it saw something as new, so its reads are not from one snapshot
///     long fork        it saw a later one, and another transaction saw what it missed without that one
///
/// Makes a few passes over the history, if there are such reads. One thread.
class StaleReads {
 public:
  struct Miss {
    uint32_t reader;
    uint32_t missed;  // the version's writer
    uint64_t record;
  };

  StaleReads(const HistoryIndex& index, AnomalyReport& report) : index_(index), report_(report) {}
  void Add(const Miss& miss) { misses_.push_back(miss); }
  size_t size() const { return misses_.size(); }
  void Report();

 private:
  struct Later {
    uint32_t writer;
    uint64_t record;
  };
  void CollectReads();
  void CollectWriters();
  /// Finds a write that `miss.reader` saw and that was committed no earlier than the missed one. Null if
  /// there is none.
  const Later* LaterSeen(const Miss& miss, Later& later) const;
  /// A transaction whose snapshot lies between `miss.missed` and `later`, and that read both records; the
  /// reader itself if there is none.
  uint32_t Witness(const Miss& miss, const Later& later) const;

  const HistoryIndex& index_;
  AnomalyReport& report_;
  std::vector<Miss> misses_;
  absl::flat_hash_map<uint32_t, std::vector<Operation>> reads_of_;  // by reader
  absl::flat_hash_map<uint64_t, uint32_t> writer_of_;               // by value that a reader saw
};

}  // namespace nam::txn
