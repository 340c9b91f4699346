#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/column.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// Pages of rows of one layout in one range of addresses, which is reserved at once and gets memory as pages
/// are taken, so that a row's address follows from its number:
///
///     row number = page << rows_shift | place       address = base + page · page_bytes + 32 + place · stride
///
/// A reservation costs a few microseconds and no memory, whatever its size; small tables leave theirs to
/// later ones, so a new page has arbitrary bytes. A long page takes the places of several: it has the number
/// of the first, and the others are pages without rows to whoever goes over all. Threads take whole pages; a
/// page has one writer until the pipeline's barrier, and any number of readers after it. When the table ends,
/// all memory goes back to the budget, and to the system except some small ranges.
class RowTable {
 public:
  /// `pages_max` is capped by layout.pages_max() and by the whole budget; UINT64_MAX means as many as
  /// possible. The budget pays as pages are taken, and outlives the table. RESOURCE_EXHAUSTED if there are no
  /// addresses left.
  static absl::StatusOr<std::unique_ptr<RowTable>> Make(RowLayout layout, MemoryBudget& budget,
                                                        uint64_t pages_max);
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  /// Returns the number of a new page without rows. RESOURCE_EXHAUSTED if the budget, pages_max or the system
  /// does not allow it: the caller spills, or fails with 53200. Any thread.
  absl::StatusOr<uint32_t> NewPage() { return NewPage(layout_.page_bytes()); }
  /// The same for a page of this size, which may be long.
  absl::StatusOr<uint32_t> NewPage(uint32_t bytes);
  /// Makes the pages in the place of one that is no longer needed, which may be long, pages without rows.
  /// Returns how many. Any thread that owns the page.
  uint32_t Split(uint32_t number);
  /// Makes pages from `number` on, which the thread owns, one long page without rows.
  void Join(uint32_t number, uint32_t bytes);
  std::byte* page(uint32_t number) const { return base_ + uint64_t{number} * layout_.page_bytes(); }
  const std::byte* row(uint32_t number) const {
    return page(number >> layout_.rows_shift()) + kPageHeaderBytes +
           uint64_t{number & ((1u << layout_.rows_shift()) - 1)} * layout_.stride();
  }
  /// The rows of a page; 0 in the middle of a long one. After the barrier.
  uint32_t page_rows(uint32_t number) const { return continues(number) ? 0 : header(number).rows; }
  /// The bytes of a page that the thread owns.
  uint32_t page_bytes(uint32_t number) const { return header(number).bytes; }
  /// Whether this is the middle of a long page. After the barrier.
  bool continues(uint32_t number) const { return number < continues_.size() && continues_[number] != 0; }
  /// A field of the rows with these numbers, as a column of a chunk.
  Column ColumnOf(size_t field, const uint32_t* rows) const;

  const RowLayout& layout() const { return layout_; }
  /// The number of pages taken, a long one as several. Any thread; the pages are complete only after the
  /// barrier.
  uint32_t pages() const { return pages_.load(std::memory_order_acquire); }
  /// The number of rows over all pages, by their headers. Called after the barrier.
  uint64_t rows() const;

 private:
  RowTable(RowLayout layout, MemoryBudget& budget, std::byte* base, uint64_t pages_max);
  const PageHeader& header(uint32_t number) const {
    return *reinterpret_cast<const PageHeader*>(page(number));
  }
  /// Makes so many bytes of the range writable. With `mutex_`.
  bool Commit(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Notes whether `pages` pages from `number` on continue the one before. With `mutex_`.
  void SetContinues(uint32_t number, uint32_t pages, bool continues) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RowLayout layout_;
  MemoryBudget& budget_;
  std::byte* const base_;
  const uint64_t pages_max_;
  uint64_t range_bytes_ = 0;  // of addresses; at least those of pages_max_
  Mutex mutex_;
  uint64_t committed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint8_t> continues_;  // by mutex_ until the barrier; by page, up to the last long one's end
  std::atomic<uint32_t> pages_ = 0;
};

}  // namespace nam::execution
