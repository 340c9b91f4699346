#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "session/session.h"

namespace nam::session {

/// Collects all rows of a statement as values.
class ResultCollector final : public RowReceiver {
 public:
  absl::Status Begin(const std::vector<ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const ResultBatch& rows) override;
  uint64_t bytes_held() const override { return bytes_; }

  std::vector<std::vector<Value>> Take() { return std::exchange(rows_, {}); }

 private:
  std::vector<std::vector<Value>> rows_;
  uint64_t bytes_ = 0;
};

}  // namespace nam::session
