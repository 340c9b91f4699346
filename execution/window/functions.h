#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "execution/task.h"
#include "execution/window/partition.h"
#include "execution/window/results.h"
#include "plan/schema.h"
#include "plan/window.h"

namespace nam::execution {

/// In which form a call keeps its results.
WindowResults::Form FormOf(const plan::WindowCall& call);

/// One call over one partition; where its results go: the row at place i of the partition is at + i.
struct WindowRun {
  TaskContext& context;
  const plan::WindowCall& call;
  const plan::Schema& schema;  // of the rows
  const Partition& partition;
  WindowResults& results;
  uint64_t at = 0;
};

/// What the call says of each row of the partition. CANCELLED soon after the query was; the function's
/// errors, among them 22014 and 22016 for arguments that are no place, and RESOURCE_EXHAUSTED.
absl::Status RunCall(const WindowRun& run);

/// The part of RunCall that is of aggregates over frames.
absl::Status RunWindowAggregate(const WindowRun& run);

/// Calls body(i) for each row, which returns a status, and looks now and then whether the query was
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
