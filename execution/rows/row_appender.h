#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "execution/rows/row_table.h"
#include "execution/rows/row_writer.h"

namespace nam::execution {

/// A table's page limit if only the budget bounds it.
inline uint64_t PagesMax(const RowLayout& layout, const MemoryBudget& budget) {
  return std::min(budget.bytes() / layout.page_bytes() + 1, layout.pages_max());
}

/// Seals all pages of a table that leave the process, and adds them to `pages`.
void SealPages(RowTable& table, uint64_t attempt, std::vector<std::span<const std::byte>>& pages);

/// Appends tuples of chunks to a table's pages, and takes new ones as they fill. One thread; several may
/// append to one table.
class RowAppender {
 public:
  /// Both outlive the appender. Field i of the table is output i of the program.
  RowAppender(RowTable& table, const Program& program)
      : table_(table), writer_(table.layout(), program), frame_(program.NewFrame()) {}

  /// The row number of the i-th selected tuple goes to numbers[i], if that is not nullptr. RESOURCE_EXHAUSTED
  /// if the budget does not allow another page; the program's errors.
  absl::Status Append(const Chunk& chunk, Selection rows, uint32_t* numbers);

  /// The number of written pages that have not been taken.
  size_t pages() const { return pages_.size(); }
  /// Takes the pages written so far; the appender goes on in others.
  std::vector<uint32_t> TakePages() {
    full_ = true;
    return std::exchange(pages_, {});
  }
  /// Takes only the full ones.
  std::vector<uint32_t> TakeFullPages() {
    if (full_) return TakePages();
    const uint32_t open = pages_.back();
    pages_.pop_back();
    return std::exchange(pages_, {open});
  }
  /// Returns pages whose rows are no longer needed; they are reused before new ones are taken.
  void Reuse(std::span<const uint32_t> pages) { free_.insert(free_.end(), pages.begin(), pages.end()); }

 private:
  absl::Status NextPage();

  RowTable& table_;
  RowWriter writer_;
  Frame frame_;
  bool full_ = true;
  std::vector<uint32_t> pages_;
  std::vector<uint32_t> free_;
};

}  // namespace nam::execution
