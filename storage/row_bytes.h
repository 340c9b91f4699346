#pragma once

#include <cstdint>

namespace nam::storage {

/// The most bytes of a row with its texts, of either kind of table. A query keeps rows whole, in one page
/// (execution/rows/row_layout.h): a longer one could be stored, but no statement could read it again.
inline constexpr uint32_t kRowBytesMax = 65'000;

/// The most columns of a columnar table: a row has a validity bit for each, beside those bytes, and a row of
/// numbers alone is never too long. The zones of so many columns fit into a block of the most bytes.
inline constexpr uint32_t kColumnsMax = 4'000;

}  // namespace nam::storage
