#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "execution/rows/row_layout.h"

/// Pages of rows lie in scratch memory without the gap between rows and texts: a part's few rows take their
/// own bytes, and not a whole page.
///
///     whole     ├ header ┼ rows ┤               free               ├ texts ┤
///               0        32     end                                begin   page_bytes
///
///     packed    ├ header ┼ rows ┼ texts ┼ any ┤
///               0        32     end           bytes: a multiple of 64, below page_bytes
///
/// Both forms have the same bytes of header and rows, which give a text's place in the whole page. They also
/// have the same checksum, over header, rows and texts: a page is sealed before it is packed, and checked
/// after it is unpacked. Its size tells the form.
namespace nam::execution {

/// Pages are written by whole cache lines.
inline constexpr uint32_t kPageLineBytes = 64;

/// Packs a page that was written here and sealed, unless that saves nothing. Returns how many bytes from its
/// beginning on to keep. If they are fewer than the whole page's, it is no page until it is cleared or
/// unpacked.
uint32_t PackPage(const RowLayout& layout, std::byte* page);

/// Restores a whole page of which the first `bytes` of `page` have come from elsewhere; the rest of that
/// memory is arbitrary. DATA_LOSS, and nothing is moved, unless its header has rows and texts for just so
/// many bytes. RowLayout::CheckPage checks their contents, and whether it is a page at all.
absl::Status UnpackPage(const RowLayout& layout, std::span<std::byte> page, size_t bytes);

}  // namespace nam::execution
