#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "execution/column.h"
#include "execution/task.h"

namespace nam::execution {

class BloomFilter;
class DirectBuild;
struct ProbeOptions;

/// The build side of a join on one server: a sink while its pipeline runs, then the input of probes.
class BuildSide : public Sink {
 public:
  /// A probe of it (execution/join/probe.h). Before or after the build.
  virtual absl::StatusOr<std::unique_ptr<StepOperator>> NewProbe(ProbeOptions options) const = 0;
  /// This, if scans may look its keys up; null: they may not.
  virtual const DirectBuild* direct_build() const { return nullptr; }
  /// After the build: the Bloom filter of its keys; null: it has none.
  virtual const BloomFilter* filter() const { return nullptr; }

  // After the build:
  /// Payload column i of the rows with these numbers; kNullRow: NULL.
  virtual Column PayloadOf(size_t i, const uint32_t* rows) const = 0;
  virtual size_t payload_columns() const = 0;
  /// Whether a row has a NULL key: NOT IN is then never true.
  bool has_null_key() const { return has_null_key_.load(std::memory_order_relaxed); }
  /// Whether no row has come, not even one with a NULL key.
  bool empty() const { return !has_rows_.load(std::memory_order_relaxed); }
  /// The bytes that probes search: the table and its rows.
  uint64_t table_bytes() const { return table_bytes_; }

 protected:
  // Called by any thread.
  void SawRows() { Raise(has_rows_); }
  void SawNullKey() { Raise(has_null_key_); }
  /// Called once, while one thread has the build side.
  void SetTableBytes(uint64_t bytes) { table_bytes_ = bytes; }

 private:
  static void Raise(std::atomic<bool>& flag) {
    if (!flag.load(std::memory_order_relaxed)) flag.store(true, std::memory_order_relaxed);
  }
  std::atomic<bool> has_rows_ = false;
  std::atomic<bool> has_null_key_ = false;
  uint64_t table_bytes_ = 0;
};

}  // namespace nam::execution
