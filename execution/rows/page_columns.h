#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>

#include "execution/chunk.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// Shows rows of one page after another as columns of chunks, which point to both. Belongs to the task that
/// reads the pages.
class PageColumns {
 public:
  PageColumns() : places_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {}

  /// The fields of rows [first, first + count) of a page, all selected; at most kChunkRows.
  void Show(const RowLayout& layout, const std::byte* page, uint32_t first, uint32_t count, Chunk& out) {
    std::iota(places_.get(), places_.get() + count, first);
    for (size_t i = 0; i < layout.fields(); ++i) {
      const RowField& field = layout.field(i);
      out.columns()[i] = {.kind = Column::Kind::kField,
                          .width = field.width,
                          .physical = field.physical,
                          .base = page,
                          .rows = places_.get(),
                          .field = &field};
    }
    out.SelectAll(count);
  }

 private:
  std::unique_ptr<uint32_t[]> places_;  // a page that stands alone has number 0
};

}  // namespace nam::execution
