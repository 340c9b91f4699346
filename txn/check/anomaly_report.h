#pragma once

#include "txn/check/history_checker.h"
#include "txn/check/history_index.h"

namespace nam::txn {

/// Collects the anomalies that a check finds, up to anomalies_max. One thread.
class AnomalyReport {
 public:
  AnomalyReport(const HistoryIndex& index, const CheckOptions& options) : index_(index), options_(options) {}

  void Add(AnomalyKind kind, uint64_t record, std::vector<uint32_t> transactions);
  /// Notes that more anomalies exist than the check looks for.
  void Stop() { report_.more = true; }
  bool full() const { return report_.more; }
  /// Writes the anomalies' texts. Takes one more pass over the history if there are any.
  CheckReport Finish();

 private:
  const HistoryIndex& index_;
  const CheckOptions& options_;
  CheckReport report_;
};

}  // namespace nam::txn
