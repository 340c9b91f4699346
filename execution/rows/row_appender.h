#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  /// The same from rows[done] on, but returns after a long page: a chunk of such rows may need more memory
  /// than there is, and the caller looks in between. Their numbers go to numbers[done …].
  absl::Status AppendSome(const Chunk& chunk, Selection rows, uint32_t& done, uint32_t* numbers);

  /// The bytes of written pages that have not been taken.
  uint64_t bytes() const { return bytes_; }
  /// Takes the pages written so far; the appender goes on in others.
  std::vector<uint32_t> TakePages() {
    full_ = true;
    bytes_ = 0;
    return std::exchange(pages_, {});
  }
  /// Takes only the full ones.
  std::vector<uint32_t> TakeFullPages() {
    if (full_) return TakePages();
    const uint32_t open = pages_.back();
    pages_.pop_back();
    bytes_ = table_.page_bytes(open);
    return std::exchange(pages_, {open});
  }
  /// Returns pages whose rows are no longer needed; they are reused before new ones are taken.
  void Reuse(std::span<const uint32_t> pages);
  /// The bytes of these pages, which the caller owns.
  uint64_t BytesOf(std::span<const uint32_t> pages) const;

 private:
  absl::Status NextPage();
  /// A long page in the place of neighbouring free ones, if there are enough.
  std::optional<uint32_t> JoinFree(uint32_t bytes);

  RowTable& table_;
  RowWriter writer_;
  Frame frame_;
  bool full_ = true;
  std::vector<uint32_t> pages_;
  uint64_t bytes_ = 0;          // of them
  std::vector<uint32_t> free_;  // none is long
};

}  // namespace nam::execution
