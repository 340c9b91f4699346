#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "execution/budget_array.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// The memory of one long page (row_layout.h), for a writer that sends it elsewhere, or for a reader that
/// puts its pieces together. The budget pays for it and outlives it. One thread.
class LongPage {
 public:
  explicit LongPage(MemoryBudget& budget) : memory_(budget) {}
  LongPage(LongPage&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  LongPage& operator=(LongPage&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  /// Makes room for a page of so many bytes, with arbitrary contents. RESOURCE_EXHAUSTED: see OverBudget.
  absl::Status Reserve(uint32_t bytes) {
    if (bytes / sizeof(uint64_t) > memory_.capacity()) memory_.Clear();
    bytes_ = bytes;
    return memory_.Resize(bytes / sizeof(uint64_t));
  }
  /// The same, as a page without rows.
  absl::Status Make(const RowLayout& layout, uint32_t bytes);
  /// Gives the memory back.
  void Clear() {
    memory_.Clear();
    bytes_ = 0;
  }
  bool empty() const { return bytes_ == 0; }
  /// Prepares the page, written in a layout of the same rows, to leave the process as one of `layout`.
  void Seal(const RowLayout& layout, uint64_t attempt);

  std::byte* data() { return reinterpret_cast<std::byte*>(memory_.data()); }
  std::span<std::byte> bytes() { return {data(), bytes_}; }

 private:
  BudgetArray<uint64_t> memory_;
  uint32_t bytes_ = 0;
};

}  // namespace nam::execution
