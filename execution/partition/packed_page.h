#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "execution/rows/row_layout.h"

/// Pages of rows in scratch memory lie there without what is free between rows and texts: a part's few rows
/// take the bytes that they have, and not a whole page.
///
///     whole     ├ header ┼ rows ┤               free               ├ texts ┤
///               0        32     end                                begin   page_bytes
///
///     packed    ├ header ┼ rows ┼ texts ┼ any ┤
///               0        32     end           bytes: a multiple of 64, below page_bytes
///
/// Header and rows are in both the same bytes: they say where a text is in the whole page. So is the
/// checksum, which is of header, rows and texts, wherever these are: a page is sealed before it is packed,
/// and checked once it is unpacked. Its size tells which of the two it is.
namespace nam::execution {

/// Of a page that was written here and sealed: returns how many bytes from its beginning on are to be kept.
/// If they are fewer than the whole page's, it is packed, and no page until it is cleared or unpacked.
uint32_t PackPage(const RowLayout& layout, std::byte* page);

/// Makes a page whole of which the first `bytes` of `page` have come from elsewhere; the rest of that memory
/// is any. DATA_LOSS, and nothing is moved, unless its header has rows and texts for just so many bytes. What
/// they hold is for RowLayout::CheckPage to say, and whether it is a page at all.
absl::Status UnpackPage(const RowLayout& layout, std::span<std::byte> page, size_t bytes);

}  // namespace nam::execution
