#include "session/result_collector.h"

#include <algorithm>

#include "base/status_macros.h"

namespace nam::session {
namespace {

/// The bytes of a row beside its values. A vector that grows holds its elements twice, and room for as many.
constexpr uint64_t kRowBytes = 3 * sizeof(std::vector<Value>);

/// The allocator's bytes for an allocation of so many.
uint64_t AllocatedBytes(uint64_t bytes) {
  constexpr uint64_t kHeader = 8, kStep = 16, kLeast = 32;
  return std::max(kLeast, (bytes + kHeader + kStep - 1) / kStep * kStep);
}

/// The bytes of a text beside the Value itself.
uint64_t TextBytes(size_t bytes) {
  constexpr size_t kWithin = 15;  // stored in std::string itself
  return bytes <= kWithin ? 0 : AllocatedBytes(bytes + 1);
}

}  // namespace

absl::Status ResultCollector::Add(const ResultBatch& rows) {
  const size_t columns = rows.columns();
  bytes_ += rows.rows() * (kRowBytes + AllocatedBytes(columns * sizeof(Value)));
  for (size_t r = 0; r < rows.rows(); ++r) {
    std::vector<Value>& row = rows_.emplace_back();
    row.reserve(columns);
    for (size_t c = 0; c < columns; ++c) {
      row.push_back(rows.Boxed(c, r));
      bytes_ += TextBytes(row.back().text.size());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultSet> Session::Execute(const std::string& statement) {
  ResultCollector rows;
  NAM_ASSIGN_OR_RETURN(ResultSet result, Execute(statement, rows));
  result.rows = rows.Take();
  return result;
}

}  // namespace nam::session
