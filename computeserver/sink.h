#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "computeserver/batch.h"
#include "optimizer/plan.h"

namespace nam::computeserver {

/// Where a pipeline ends: one per thread; merged into one per server when all threads are done.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual absl::Status Consume(const Batch& batch) = 0;
  /// Adds what `other`, a sink of the same plan, has gathered.
  virtual absl::Status Merge(Sink& other) = 0;
  /// The partial result in its stored form (partial_result.h).
  virtual absl::Status Store(std::string& out) = 0;
  /// True when more rows cannot change the result.
  virtual bool Satisfied() const { return false; }
};

/// `space` outlives the sink. RESOURCE_EXHAUSTED from its methods above `bytes_max` of memory.
std::unique_ptr<Sink> MakeSink(const optimizer::Plan& plan, const ColumnSpace& space, uint64_t bytes_max);

}  // namespace nam::computeserver
