#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "execution/task.h"
#include "execution/window/partition.h"
#include "execution/window/results.h"
#include "plan/schema.h"
#include "plan/window.h"

namespace nam::execution {

/// The form of a call's results.
WindowResults::Form FormOf(const plan::WindowCall& call);

/// One call over one partition, and the place of its results: row i of the partition goes to at + i.
struct WindowRun {
  TaskContext& context;
  const plan::WindowCall& call;
  const plan::Schema& schema;  // of the rows
  const Partition& partition;
  WindowResults& results;
  uint64_t at = 0;
};

/// Computes the call for each row of the partition. CANCELLED soon after the query is; the function's errors,
/// among them 22014 and 22016 for invalid arguments, and RESOURCE_EXHAUSTED.
absl::Status RunCall(const WindowRun& run);

/// The part of RunCall for aggregates over frames.
absl::Status RunWindowAggregate(const WindowRun& run);

/// Calls body(i), which returns a status, for each row, and checks now and then whether the query was
/// cancelled.
template <typename Body>
absl::Status ForRows(const WindowRun& run, Body&& body) {
  constexpr uint32_t kRowsBetweenLooks = 1 << 12;
  for (uint32_t i = 0; i < run.partition.size(); ++i) {
    if (i % kRowsBetweenLooks == 0 && run.context.cancelled())
      return absl::CancelledError("the query was cancelled");
    if (absl::Status status = body(i); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
