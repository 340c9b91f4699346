#include "execution/rows/row_appender.h"

#include <algorithm>

#include "base/status_macros.h"

namespace nam::execution {

absl::Status RowAppender::Append(const Chunk& chunk, Selection rows, uint32_t* numbers) {
  for (uint32_t done = 0; done < rows.count;) NAM_RETURN_IF_ERROR(AppendSome(chunk, rows, done, numbers));
  return absl::OkStatus();
}

absl::Status RowAppender::AppendSome(const Chunk& chunk, Selection rows, uint32_t& done, uint32_t* numbers) {
  while (done < rows.count) {
    if (full_) NAM_RETURN_IF_ERROR(NextPage());
    const uint32_t before = done;
    if (!writer_.Append(frame_, chunk, rows, done, numbers == nullptr ? nullptr : numbers + done))
      return frame_.error();
    full_ = done < rows.count;
    if (done > before && table_.page_bytes(pages_.back()) > table_.layout().page_bytes()) break;
  }
  return absl::OkStatus();
}

absl::Status RowAppender::NextPage() {
  if (!pages_.empty() &&
      PageHeaderOf(table_.page(pages_.back())).rows == 0) {  // the next row is too long for it
    bytes_ -= table_.page_bytes(pages_.back());
    free_.push_back(pages_.back());
    pages_.pop_back();
  }
  const uint32_t bytes = writer_.next_page_bytes();
  const bool is_long = bytes > table_.layout().page_bytes();
  std::optional<uint32_t> page;
  if (is_long) {
    page = JoinFree(bytes);
  } else if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
    table_.layout().Clear(table_.page(*page));
  }
  if (!page.has_value()) {
    NAM_ASSIGN_OR_RETURN(page, table_.NewPage(bytes));
  }
  pages_.push_back(*page);
  bytes_ += bytes;
  writer_.Open(table_.page(*page), *page << table_.layout().rows_shift());
  full_ = false;
  return absl::OkStatus();
}

std::optional<uint32_t> RowAppender::JoinFree(uint32_t bytes) {
  const uint32_t wanted = bytes / table_.layout().page_bytes();
  if (free_.size() < wanted) return std::nullopt;
  std::sort(free_.begin(), free_.end());
  uint32_t found = 1;
  for (size_t i = 1; i < free_.size() && found < wanted; ++i) {
    found = free_[i] == free_[i - 1] + 1 ? found + 1 : 1;
    if (found < wanted) continue;
    const auto end = free_.begin() + static_cast<ptrdiff_t>(i) + 1;
    const uint32_t first = *(end - wanted);
    free_.erase(end - wanted, end);
    table_.Join(first, bytes);
    return first;
  }
  return std::nullopt;
}

void RowAppender::Reuse(std::span<const uint32_t> pages) {
  for (const uint32_t page : pages) {
    const uint32_t count = table_.Split(page);
    for (uint32_t i = 0; i < count; ++i) free_.push_back(page + i);
  }
}

uint64_t RowAppender::BytesOf(std::span<const uint32_t> pages) const {
  uint64_t bytes = 0;
  for (const uint32_t page : pages) bytes += table_.page_bytes(page);
  return bytes;
}

void SealPages(RowTable& table, uint64_t attempt, std::vector<std::span<const std::byte>>& pages) {
  const RowLayout& layout = table.layout();
  for (uint32_t page = 0; page < table.pages(); ++page) {
    if (table.continues(page)) continue;
    layout.Seal(table.page(page), attempt);
    pages.emplace_back(table.page(page), table.page_bytes(page));
  }
}

}  // namespace nam::execution
