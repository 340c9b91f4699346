#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "execution/rows/row_table.h"
#include "execution/task.h"

namespace nam::execution {

/// Rows at rest as chunks: column i is field i of their layout. Tasks share the work by pages, so rows come
/// in any order.
class PageSource final : public Source {
 public:
  /// The pages of a table, once its writers have ended. It outlives the source.
  explicit PageSource(const RowTable& table) : layout_(table.layout()), table_(&table) {}
  /// Pages from elsewhere, in memory that stays and does not change. The task that takes a page checks it:
  /// DATA_LOSS if it is not of this layout and attempt. The layout outlives the source.
  PageSource(const RowLayout& layout, std::vector<std::span<const std::byte>> pages, uint64_t attempt)
      : layout_(layout), pages_(std::move(pages)), attempt_(attempt) {}

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  /// nullptr: there is no such page.
  const std::byte* PageAt(uint32_t number) const;

  const RowLayout& layout_;
  const RowTable* const table_ = nullptr;  // or else pages_
  const std::vector<std::span<const std::byte>> pages_;
  const uint64_t attempt_ = 0;
  std::atomic<uint32_t> next_page_ = 0;
};

}  // namespace nam::execution
