#include "execution/partition/parts.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/process_limits.h"
#include "execution/rows/row_hash.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

/// All open pages of a thread: they stay in its second-level cache beside its other data.
constexpr uint32_t kOpenPagesBytes = 1 << 20;

uint32_t PageBytes(const plan::Schema& rows, uint32_t parts) {
  const bool texts = std::any_of(rows.begin(), rows.end(), [](const plan::Slot& slot) {
    return PhysicalOf(slot.type) == Physical::kText;
  });
  if (texts) return RowLayout::kMostPageBytes;
  return std::clamp(kOpenPagesBytes / std::bit_ceil(parts), RowLayout::kLeastPageBytes,
                    RowLayout::kMostPageBytes);
}

/// For a number below 16 bytes: a NULL counts as the least one.
void HashInDomain(const RowField& field, const plan::KeyDomain& domain, const std::byte* row, uint32_t count,
                  uint64_t* hashes) {
  const uint64_t first = domain.NumberOf(field.base);
  const uint32_t stride = field.stride;
  WithStored(field.width, [&](auto zero) {
    for (uint32_t i = 0; i < count; ++i, row += stride)
      hashes[i] = domain.HashOf(first + static_cast<uint64_t>(field.Stored<decltype(zero)>(row)));
  });
}

}  // namespace

void PartBy::Hash(const RowLayout& layout, const std::byte* page, uint32_t place, uint32_t count,
                  uint64_t* hashes) const {
  if (!domain.known()) return HashRows(layout, keys, page, place, count, hashes);
  HashInDomain(layout.field(keys[0]), domain, page + kPageHeaderBytes + size_t{place} * layout.stride(),
               count, hashes);
}

bool IsTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !IsProcessLimit(status) && !SqlErrorOf(status).has_value();
}

absl::StatusOr<RowLayout> PartLayout(const plan::Schema& rows, uint32_t parts) {
  uint32_t page_bytes = PageBytes(rows, parts);
  while (true) {
    absl::StatusOr<RowLayout> layout = RowLayout::Of(rows, page_bytes);
    if (layout.ok() || page_bytes == RowLayout::kMostPageBytes) return layout;
    page_bytes *= 2;  // rows are too wide for it
  }
}

uint32_t StretchBytes(const RowLayout& layout) {
  constexpr uint32_t kStretchBytes = 16 << 10;
  return std::max(layout.page_bytes(), kStretchBytes);
}

}  // namespace nam::execution
