#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "optimizer/lower_tree.h"
#include "plan/logical.h"
#include "session/record_statements.h"
#include "session/session.h"
#include "session/settings.h"
#include "session/stage_run.h"

namespace nam::session {

/// A query by its tree, from its plan to its rows: stages of compute servers one after the other, then the
/// session's. All that it is made of outlives it. One thread, once.
class TreeRun {
 public:
  struct Options {
    catalog::Attachment& attachment;
    StageRunner& stages;
    RecordStatements* records = nullptr;  // null: the session runs no transactions
    const SessionSettings& settings;
    const std::atomic<bool>& cancel;
  };
  /// Makes the plan, and finds servers for its stages.
  static absl::StatusOr<std::unique_ptr<TreeRun>> Make(const Options& options,
                                                       plan::logical::Query query);

  /// The rows go to the receiver.
  absl::StatusOr<ResultSet> Run(RowReceiver& receiver);
  /// The lines of EXPLAIN, or its JSON document; with `analyze` it runs before.
  absl::StatusOr<std::vector<std::string>> Explain(bool analyze, bool json);

 private:
  explicit TreeRun(const Options& options) : options_(options) {}
  absl::StatusOr<ResultSet> RunStages(RowReceiver& receiver);
  const plan::PhysicalPlan& plan() const { return tree_.lowered.plan; }

  const Options options_;
  optimizer::LoweredTree tree_;
  std::vector<PreparedStage> stages_;  // of servers, as the plan's
  std::vector<ResultSet::Column> columns_;
  std::vector<std::vector<uint64_t>> session_rows_;  // once it has run: LocalStage::rows
};

}  // namespace nam::session
