#include "execution/scan/stored_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace nam::execution {

absl::Status StoredRows::Feed(std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(pages_.empty() && done_ == rows_, "the pages before are used up");
  pages_ = pages;
  attempt_ = attempt;
  return absl::OkStatus();
}

Step StoredRows::Next(TaskContext& context, Chunk& out) {
  out.SelectAll(0);
  while (done_ == rows_) {
    if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
    if (pages_.empty()) return ended_ ? Step::kDone : Step::kNeedInput;
    const absl::StatusOr<std::span<const std::byte>> page = layout_.TakePage(pages_);
    if (!page.ok()) return context.Fail(page.status());
    page_ = *page;
    const absl::Status checked = layout_.CheckPage(page_, attempt_);
    if (!checked.ok()) return context.Fail(checked);
    PageHeader header;
    std::memcpy(&header, page_.data(), sizeof(header));
    rows_ = header.rows;
    done_ = 0;
  }
  const uint32_t count = std::min(kChunkRows, rows_ - done_);
  std::iota(places_.begin(), places_.begin() + count, done_);
  for (size_t i = 0; i < layout_.fields(); ++i) {
    out.columns()[i] = {.kind = Column::Kind::kField,
                        .width = layout_.field(i).width,
                        .physical = layout_.field(i).physical,
                        .base = page_.data(),
                        .rows = places_.data(),
                        .field = &layout_.field(i)};
  }
  done_ += count;
  out.SelectAll(count);
  return Step::kHaveMore;
}

}  // namespace nam::execution
