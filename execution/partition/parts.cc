#include "execution/partition/parts.h"

#include <algorithm>

#include "types/sql_error.h"

namespace nam::execution {
namespace {

uint32_t PageBytes(const plan::Schema& rows, uint32_t parts) {
  const bool texts = std::any_of(rows.begin(), rows.end(), [](const plan::Slot& slot) {
    return PhysicalOf(slot.type) == Physical::kText;
  });
  if (texts || parts <= 32) return RowLayout::kMostPageBytes;
  return parts <= 64 ? RowLayout::kMostPageBytes / 2 : RowLayout::kLeastPageBytes;
}

}  // namespace

bool IsTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !SqlErrorOf(status).has_value();
}

absl::StatusOr<RowLayout> PartLayout(const plan::Schema& rows, uint32_t parts) {
  uint32_t page_bytes = PageBytes(rows, parts);
  while (true) {
    absl::StatusOr<RowLayout> layout = RowLayout::Of(rows, page_bytes);
    if (layout.ok() || page_bytes == RowLayout::kMostPageBytes) return layout;
    page_bytes *= 2;  // rows that are too wide for it
  }
}

}  // namespace nam::execution
