#include "execution/rows/row_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/mapping_pool.h"

namespace nam::execution {
namespace {

/// Memory is made writable in steps: a system call for each page of 16 KiB would be noticeable. The system
/// supplies and counts memory when it is touched.
constexpr uint64_t kCommitBytes = 2 << 20;

/// The most memory of a range that is left for the next table: 16 such ranges in all.
constexpr uint64_t kLeftBytesMax = 1 << 20;

/// Most tables of a short query have a page or two; those of parts as much as stays in a cache.
MappingPool& LeftRanges() {
  static MappingPool& ranges = *new MappingPool({.of_one = kLeftBytesMax, .of_all = 16 * kLeftBytesMax});
  return ranges;
}

/// Takes a range of at least so many bytes.
absl::StatusOr<MappingPool::Mapping> AcquireRange(uint64_t bytes) {
  if (const std::optional<MappingPool::Mapping> left = LeftRanges().Acquire(bytes, UINT64_MAX)) return *left;
  // Layouts round the same budget differently: ranges must fit them all.
  bytes = (bytes + kCommitBytes - 1) / kCommitBytes * kCommitBytes;
  if (const std::optional<MappingPool::Mapping> range = MappingPool::Map(bytes, /*writable=*/false))
    return *range;
  return NoAddressesLeft(absl::StrCat(bytes >> 20, " MiB of a query's rows"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Make(RowLayout layout, MemoryBudget& budget,
                                                         uint64_t pages_max) {
  // No more addresses than the budget can fill: a process has 128 TiB of them, with the thread sanitizer 1.
  pages_max = std::min({pages_max, layout.pages_max(), budget.bytes() / layout.page_bytes()});
  pages_max = std::max<uint64_t>(pages_max, 1);
  NAM_ASSIGN_OR_RETURN(const MappingPool::Mapping range, AcquireRange(pages_max * layout.page_bytes()));
  std::unique_ptr<RowTable> table(new RowTable(std::move(layout), budget, range.data, pages_max));
  table->range_bytes_ = range.bytes;
  {
    const MutexLock lock(table->mutex_);
    table->committed_bytes_ = range.writable_bytes;
  }
  return table;
}

RowTable::RowTable(RowLayout layout, MemoryBudget& budget, std::byte* base, uint64_t pages_max)
    : layout_(std::move(layout)), budget_(budget), base_(base), pages_max_(pages_max) {}

RowTable::~RowTable() {
  const uint64_t used_bytes = uint64_t{pages()} * layout_.page_bytes();
  // Earlier tables may have touched as much as may be left.
  LeftRanges().Leave({base_, range_bytes_, committed_bytes_}, std::max(used_bytes, kLeftBytesMax));
  budget_.Release(used_bytes);
}

absl::StatusOr<uint32_t> RowTable::NewPage(uint32_t bytes) {
  NAM_CHECK(layout_.IsPageSize(bytes));
  const uint32_t pages = bytes / layout_.page_bytes();
  if (!budget_.Reserve(bytes)) return absl::ResourceExhaustedError("the query's memory is used up");
  uint32_t number;
  {
    const MutexLock lock(mutex_);
    number = pages_.load(std::memory_order_relaxed);
    const uint64_t end = uint64_t{number} + pages;
    if (end > pages_max_ || !Commit(end * layout_.page_bytes())) {
      budget_.Release(bytes);
      if (end <= pages_max_) return NoAddressesLeft("a query's rows");
      return absl::ResourceExhaustedError("a table of rows has all its pages");
    }
    if (pages > 1) SetContinues(number + 1, pages - 1, true);
    pages_.store(static_cast<uint32_t>(end), std::memory_order_release);
  }
  layout_.Clear(page(number), bytes);
  return number;
}

void RowTable::SetContinues(uint32_t number, uint32_t pages, bool continues) {
  if (continues_.size() < uint64_t{number} + pages) continues_.resize(uint64_t{number} + pages);
  std::fill_n(continues_.begin() + number, pages, static_cast<uint8_t>(continues));
}

uint32_t RowTable::Split(uint32_t number) {
  const uint32_t pages = page_bytes(number) / layout_.page_bytes();
  for (uint32_t i = 0; i < pages; ++i) layout_.Clear(page(number + i));
  if (pages == 1) return pages;
  const MutexLock lock(mutex_);
  SetContinues(number + 1, pages - 1, false);
  return pages;
}

void RowTable::Join(uint32_t number, uint32_t bytes) {
  layout_.Clear(page(number), bytes);
  const MutexLock lock(mutex_);
  SetContinues(number + 1, bytes / layout_.page_bytes() - 1, true);
}

bool RowTable::Commit(uint64_t bytes) {
  if (bytes <= committed_bytes_) return true;
  const uint64_t more =
      std::min(std::max(bytes - committed_bytes_, kCommitBytes), range_bytes_ - committed_bytes_);
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
