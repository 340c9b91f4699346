#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "session/session.h"

namespace nam::session {

/// Passes a statement's rows on, and notes whether some have left: then it cannot begin again.
class NotedReceiver : public RowReceiver {
 public:
  explicit NotedReceiver(RowReceiver& receiver) : receiver_(receiver) {}
  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override {
    begun_ = true;
    return receiver_.Begin(columns);
  }
  absl::Status Add(const ResultBatch& rows) override { return receiver_.Add(rows); }
  absl::Status Write(std::string_view bytes) override {
    begun_ = true;
    return receiver_.Write(bytes);
  }
  std::unique_ptr<csv::ByteSource> Input() override { return receiver_.Input(); }
  uint64_t bytes_held() const override { return receiver_.bytes_held(); }
  bool begun() const { return begun_; }

 private:
  RowReceiver& receiver_;
  bool begun_ = false;
};

}  // namespace nam::session
