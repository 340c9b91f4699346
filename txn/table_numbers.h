#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/strong_id.h"

namespace nam::txn {

/// Numbers the record tables that a process uses, so that a handle means the same table to every client of
/// the process. A table that was dropped and recreated has another allocation, and so another number.
/// Thread-safe.
class TableNumbers {
 public:
  struct Table {
    std::string name;
    AllocationId allocation;
  };

  uint32_t NumberOf(const std::string& name, AllocationId allocation) {
    const MutexLock lock(mutex_);
    const auto [found, fresh] = numbers_.emplace(allocation, static_cast<uint32_t>(tables_.size()));
    if (fresh) tables_.push_back({name, allocation});
    return found->second;
  }
  /// nullopt if no table has this number.
  std::optional<Table> At(uint32_t number) const {
    const MutexLock lock(mutex_);
    if (number >= tables_.size()) return std::nullopt;
    return tables_[number];
  }

 private:
  mutable Mutex mutex_;
  std::map<AllocationId, uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Table> tables_ ABSL_GUARDED_BY(mutex_);  // by number
};

}  // namespace nam::txn
