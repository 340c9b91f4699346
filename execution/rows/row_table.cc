#include "execution/rows/row_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// Memory is made writable in steps: a call of the system for each page of 16 KiB would show. The system
/// gives memory, and counts it, where it is touched.
constexpr uint64_t kCommitBytes = 2 << 20;

/// Ranges of addresses that tables have left, for the next ones: most tables of a short query have a page or
/// two, and mapping, faults and unmapping of them would be a tenth of its time. Kept are at most 16 ranges of
/// which at most 256 KiB were used, so 4 MiB that no budget counts. Of the process; any thread.
class Ranges {
 public:
  struct Range {
    std::byte* base = nullptr;
    uint64_t bytes = 0;
    uint64_t committed_bytes = 0;  // from the beginning on
  };

  static Ranges& Instance() {
    static Ranges& ranges = *new Ranges;
    return ranges;
  }

  absl::StatusOr<Range> Take(uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto fits =
          std::find_if(kept_.begin(), kept_.end(), [&](const Range& range) { return range.bytes >= bytes; });
      if (fits != kept_.end()) {
        const Range range = *fits;
        *fits = kept_.back();
        kept_.pop_back();
        return range;
      }
    }
    // Layouts round the same budget differently: ranges are to fit them all.
    bytes = (bytes + kCommitBytes - 1) / kCommitBytes * kCommitBytes;
    // Without access, so that a strict system counts nothing yet, and a stray pointer finds nothing.
    void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no addresses for ", bytes, " bytes of rows: ", std::strerror(errno)));
    }
    return Range{static_cast<std::byte*>(base), bytes, 0};
  }

  void Give(const Range& range, uint64_t used_bytes) {
    if (used_bytes <= kUsedBytesMax) {
      const std::lock_guard lock(mutex_);
      if (kept_.size() < kRangesMax) {
        kept_.push_back(range);
        return;
      }
    }
    NAM_CHECK(munmap(range.base, range.bytes) == 0);
  }

 private:
  static constexpr size_t kRangesMax = 16;
  static constexpr uint64_t kUsedBytesMax = 256 << 10;

  std::mutex mutex_;
  std::vector<Range> kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Make(RowLayout layout, MemoryBudget& budget,
                                                         uint64_t pages_max) {
  // No more addresses than the budget can fill: a process has 128 TiB of them, under thread sanitizer 1.
  pages_max = std::min({pages_max, layout.pages_max(), budget.bytes() / layout.page_bytes()});
  pages_max = std::max<uint64_t>(pages_max, 1);
  NAM_ASSIGN_OR_RETURN(const Ranges::Range range, Ranges::Instance().Take(pages_max * layout.page_bytes()));
  std::unique_ptr<RowTable> table(new RowTable(std::move(layout), budget, range.base, pages_max));
  table->range_bytes_ = range.bytes;
  table->committed_bytes_ = range.committed_bytes;
  return table;
}

RowTable::RowTable(RowLayout layout, MemoryBudget& budget, std::byte* base, uint64_t pages_max)
    : layout_(std::move(layout)), budget_(budget), base_(base), pages_max_(pages_max) {}

RowTable::~RowTable() {
  const uint64_t used_bytes = uint64_t{pages()} * layout_.page_bytes();
  Ranges::Instance().Give({base_, range_bytes_, committed_bytes_}, used_bytes);
  budget_.Give(used_bytes);
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
