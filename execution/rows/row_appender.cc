#include "execution/rows/row_appender.h"

#include "base/status_macros.h"

namespace nam::execution {

absl::Status RowAppender::Append(const Chunk& chunk, Selection rows, uint32_t* numbers) {
  uint32_t done = 0;
  while (done < rows.count) {
    if (full_) NAM_RETURN_IF_ERROR(NextPage());
    if (!writer_.Append(frame_, chunk, rows, done, numbers == nullptr ? nullptr : numbers + done))
      return frame_.error();
    full_ = done < rows.count;
  }
  return absl::OkStatus();
}

absl::Status RowAppender::NextPage() {
  uint32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
    table_.layout().Clear(table_.page(page));
  } else {
    NAM_ASSIGN_OR_RETURN(page, table_.NewPage());
  }
  pages_.push_back(page);
  writer_.Open(table_.page(page), page << table_.layout().rows_shift());
  full_ = false;
  return absl::OkStatus();
}

void SealPages(RowTable& table, uint64_t attempt, std::vector<std::span<const std::byte>>& pages) {
  const RowLayout& layout = table.layout();
  for (uint32_t page = 0; page < table.pages(); ++page) {
    layout.Seal(table.page(page), attempt);
    pages.emplace_back(table.page(page), layout.page_bytes());
  }
}

}  // namespace nam::execution
