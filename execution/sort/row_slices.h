#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "execution/chunk.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// Splits a chunk's rows into slices that take little memory at rest, so that a sink can check its budget in
/// between: a thousand rows with texts may be as large as all of it.
class RowSlices {
 public:
  explicit RowSlices(const RowLayout& layout) {
    bool large = layout.stride() > kLargeBytes;
    for (size_t i = 0; i < layout.fields(); ++i) large = large || layout.field(i).physical == Physical::kText;
    rows_max_ = large ? kLargeRows : kChunkRows;
  }

  /// Calls body(rows), which returns a status, for each slice.
  template <typename Body>
  absl::Status ForEach(Selection all, Body&& body) {
    if (all.count <= rows_max_) return body(all);
    for (uint32_t done = 0; done < all.count; done += rows_max_) {
      const uint32_t count = std::min(rows_max_, all.count - done);
      const uint32_t* first = all.positions == nullptr ? nullptr : all.positions + done;
      if (first == nullptr) {
        positions_.resize(count);
        std::iota(positions_.begin(), positions_.end(), done);
        first = positions_.data();
      }
      NAM_RETURN_IF_ERROR(body(Selection{first, count}));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint32_t kLargeBytes = 128, kLargeRows = 128;
  uint32_t rows_max_;
  std::vector<uint32_t> positions_;
};

}  // namespace nam::execution
