#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/physical.h"
#include "proto/pages.pb.h"

namespace nam::execution {
class LocalStage;
}

namespace nam::session {

class LoadedRows;

/// The destination of a stage of compute servers' rows.
struct StageOutput {
  /// Takes in pages of an attempt. False: no more rows are wanted, from any server.
  std::function<absl::StatusOr<bool>(const std::string& pages, uint64_t attempt)> add;
  /// Whether so many bytes of pages may be fetched.
  std::function<absl::Status(uint64_t bytes)> room;
  /// Takes an accepted attempt's pages in scratch memory. Empty: attempts leave none there.
  std::function<absl::Status(proto::Directory directory)> parts;
  /// The table that servers write the rows into themselves; null: the rows come here. With a table, `add` and
  /// `parts` are not called, and nothing comes in windows.
  LoadedRows* table = nullptr;
  /// An attempt's rows may come in windows of so many bytes, before it has ended; 0: they must not.
  uint64_t window_bytes = 0;
};

/// Feeds the pipeline of the session's stage that reads `pipeline` of the plan. In windows if its rows flow
/// on to the client. `budget_bytes` bounds the session's memory. Calls `use_scratch` before it takes in
/// sorted runs. The stage outlives the output.
StageOutput OutputTo(execution::LocalStage& stage, const plan::PhysicalPlan& plan, uint32_t pipeline,
                     uint64_t budget_bytes, std::function<void()> use_scratch = {});

}  // namespace nam::session
