#include "execution/rows/row_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace nam::execution {
namespace {

/// Memory is made writable in steps: a call of the system for each page of 16 KiB would show. The system
/// gives memory, and counts it, where it is touched.
constexpr uint64_t kCommitBytes = 2 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Make(RowLayout layout, MemoryBudget& budget,
                                                         uint64_t pages_max) {
  // No more addresses than the budget can fill: a process has 128 TiB of them, under thread sanitizer 1.
  pages_max = std::min({pages_max, layout.pages_max(), budget.bytes() / layout.page_bytes()});
  pages_max = std::max<uint64_t>(pages_max, 1);
  // Without access, so that a strict system counts nothing yet, and a stray pointer finds nothing.
  void* base = mmap(nullptr, pages_max * layout.page_bytes(), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no addresses for ", pages_max, " pages of rows: ", std::strerror(errno)));
  }
  return std::unique_ptr<RowTable>(
      new RowTable(std::move(layout), budget, static_cast<std::byte*>(base), pages_max));
}

RowTable::RowTable(RowLayout layout, MemoryBudget& budget, std::byte* base, uint64_t pages_max)
    : layout_(std::move(layout)), budget_(budget), base_(base), pages_max_(pages_max) {}

RowTable::~RowTable() {
  NAM_CHECK(munmap(base_, pages_max_ * layout_.page_bytes()) == 0);
  budget_.Give(uint64_t{pages()} * layout_.page_bytes());
}

absl::StatusOr<uint32_t> RowTable::NewPage() {
  const uint64_t bytes = layout_.page_bytes();
  if (!budget_.Take(bytes)) return absl::ResourceExhaustedError("the query's memory is used up");
  uint32_t number;
  {
    const std::lock_guard lock(mutex_);
    number = pages_.load(std::memory_order_relaxed);
    if (number == pages_max_ || !Commit((uint64_t{number} + 1) * bytes)) {
      budget_.Give(bytes);
      return absl::ResourceExhaustedError(number == pages_max_ ? "a table of rows has all its pages"
                                                               : "the system has no memory for rows");
    }
    pages_.store(number + 1, std::memory_order_release);
  }
  layout_.Clear(page(number));
  return number;
}

bool RowTable::Commit(uint64_t bytes) {
  if (bytes <= committed_bytes_) return true;
  const uint64_t all = pages_max_ * layout_.page_bytes();
  const uint64_t more = std::min(std::max(bytes - committed_bytes_, kCommitBytes), all - committed_bytes_);
  if (mprotect(base_ + committed_bytes_, more, PROT_READ | PROT_WRITE) != 0) return false;
  committed_bytes_ += more;
  return true;
}

Column RowTable::ColumnOf(size_t field, const uint32_t* rows) const {
  const RowField& of = layout_.field(field);
  return {.kind = Column::Kind::kField,
          .width = of.width,
          .physical = of.physical,
          .base = base_,
          .rows = rows,
          .field = &of};
}

uint64_t RowTable::rows() const {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < pages(); ++i) rows += page_rows(i);
  return rows;
}

}  // namespace nam::execution
