#include "execution/join/unmatched_rows.h"

namespace nam::execution {

uint32_t UnmatchedRows::Next(Cursor& cursor, uint32_t* rows) {
  const RowTable& table = build_.rows();
  uint32_t count = 0;
  while (count < kChunkRows) {
    if (cursor.next == cursor.rows) {
      const uint32_t page = next_page_.fetch_add(1, std::memory_order_relaxed);
      if (page >= table.pages()) break;
      cursor = {page, 0, table.page_rows(page)};
      continue;
    }
    const uint32_t row = (cursor.page << table.layout().rows_shift()) + cursor.next++;
    rows[count] = row;
    count += !build_.Matched(row);
  }
  return count;
}

}  // namespace nam::execution
