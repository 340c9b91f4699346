#pragma once

#include <cstdint>
#include <vector>

#include "session/session.h"

namespace nam::session {

/// Discards the rows of EXPLAIN ANALYZE.
class NoRows final : public RowReceiver {
 public:
  absl::Status Begin(const std::vector<ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const ResultBatch& rows) override {
    rows_ += rows.rows();
    return absl::OkStatus();
  }
  uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0;
};

}  // namespace nam::session
