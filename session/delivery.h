#pragma once

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "session/noted_receiver.h"

namespace nam::session {

/// Delivers a statement's rows, from a query or all at once.
class Delivery final : public NotedReceiver {
 public:
  using NotedReceiver::NotedReceiver;

  /// Ends the result of a statement that no query answers, with or without rows.
  absl::Status End(ResultSet& result) {
    if (begun() || result.columns.empty()) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(Begin(result.columns));
    const std::vector<std::vector<Value>> rows = std::exchange(result.rows, {});
    return rows.empty() ? absl::OkStatus() : Add(ResultBatch(rows));
  }
};

}  // namespace nam::session
