#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/rows/row_layout.h"
#include "execution/task.h"

namespace nam::execution {

/// Rows that arrive as the pages of other servers' sinks. A task is fed with the pages of one attempt at a
/// time and copies nothing.
class StoredRows final : public SourceTask {
 public:
  /// `layout` outlives the task.
  explicit StoredRows(const RowLayout& layout) : layout_(layout), places_(kChunkRows) {}

  /// Takes in the consecutive pages of an attempt. They stay in place until Next returns kNeedInput.
  absl::Status Feed(std::span<const std::byte> pages, uint64_t attempt);
  /// No attempt follows.
  void End() { ended_ = true; }

  /// Checks each page before it reads the first row: DATA_LOSS if it is not of this layout and attempt.
  Step Next(TaskContext& context, Chunk& out) override;

 private:
  const RowLayout& layout_;
  std::span<const std::byte> pages_;  // not yet opened
  std::span<const std::byte> page_;
  uint64_t attempt_ = 0;
  uint32_t rows_ = 0, done_ = 0;  // in page_
  bool ended_ = false;
  std::vector<uint32_t> places_;
};

}  // namespace nam::execution
