#pragma once

#include <cstdint>

namespace nam::storage {

/// The most bytes of a record table's row with its texts: a block keeps it in one piece, in each version, and
/// a query in one page.
inline constexpr uint32_t kRowBytesMax = 65'000;

/// The most bytes of a columnar table's row with its texts, each of which has kTextBytesMax
/// (types/text_bytes.h) at most. A query keeps rows whole, on one page (execution/rows/row_layout.h): a
/// longer one could be stored, but no statement could read it again.
inline constexpr uint32_t kLongRowBytesMax = (uint32_t{1} << 30) - (uint32_t{128} << 10);

/// The most columns of a columnar table: a row has a validity bit for each, beside those bytes, and a row of
/// numbers alone is never too long. The zones of so many columns fit into a block of the most bytes.
inline constexpr uint32_t kColumnsMax = 4'000;

}  // namespace nam::storage
