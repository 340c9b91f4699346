#include "execution/partition/part_directory.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/partition/parts.h"

namespace nam::execution {
namespace {

absl::Status Broken(const char* what) {
  return absl::DataLossError(absl::StrCat("a directory of scratch memory is damaged: ", what));
}

/// Pieces continue pages, which together have a size that long pages have.
absl::Status CheckLongPages(const proto::PartPages& part, const RowLayout& layout) {
  uint64_t bytes = 0;  // of the page that pieces continue
  uint32_t before = 0;
  for (const uint32_t piece : part.continuing()) {
    if (piece <= before || piece >= static_cast<uint32_t>(part.bytes_size())) return Broken("its pieces");
    if (piece != before + 1 || bytes == 0) {
      if (bytes > 0 && !layout.IsPageSize(bytes)) return Broken("the size of a long page");
      bytes = part.bytes(static_cast<int>(piece) - 1);
    }
    bytes += part.bytes(static_cast<int>(piece));
    before = piece;
  }
  return bytes == 0 || layout.IsPageSize(bytes) ? absl::OkStatus() : Broken("the size of a long page");
}

absl::Status CheckPages(const proto::PartPages& part, const RowLayout& layout) {
  if (part.pages_size() == 0 || part.pages_size() != part.bytes_size()) return Broken("its pages");
  uint64_t pages = 0;
  for (int i = 0; i < part.pages_size(); ++i) {
    const auto page = storage::RemotePtr<void>::FromRaw(part.pages(i));
    if (part.bytes(i) < kPageHeaderBytes || part.bytes(i) > StretchBytes(layout))
      return Broken("the size of a page");
    pages += (part.bytes(i) + layout.page_bytes() - 1) / layout.page_bytes();
    if (page.server() == MemoryServerId() || page.offset() % 64 != 0) return Broken("the place of a page");
  }
  NAM_RETURN_IF_ERROR(CheckLongPages(part, layout));
  if (part.rows() > uint64_t{layout.rows_max()} * pages) return Broken("more rows than its pages hold");
  return absl::OkStatus();
}

}  // namespace

void PartDirectory::Add(const PartDirectory& other) {
  for (const auto& [number, part] : other.parts_) {
    Part& to = parts_[number];
    to.pages.insert(to.pages.end(), part.pages.begin(), part.pages.end());
    to.rows += part.rows;
  }
  null_rows_ += other.null_rows_;
}

proto::Directory PartDirectory::ToProto(uint64_t attempt, uint32_t pipeline) const {
  proto::Directory out;
  out.set_attempt(attempt);
  out.set_pipeline(pipeline);
  out.set_null_rows(null_rows_);
  for (const auto& [number, part] : parts_) {
    proto::PartPages& to = *out.add_parts();
    to.set_part(number);
    to.set_rows(part.rows);
    for (const storage::ScratchPage& page : part.pages) {
      if (page.continues) to.add_continuing(static_cast<uint32_t>(to.pages_size()));
      to.add_pages(page.at.raw());
      to.add_bytes(page.bytes);
    }
  }
  return out;
}

std::vector<storage::ScratchPage> PagesOf(const proto::PartPages& part) {
  std::vector<storage::ScratchPage> pages;
  pages.reserve(static_cast<size_t>(part.pages_size()));
  for (int i = 0; i < part.pages_size(); ++i)
    pages.push_back({storage::RemotePtr<void>::FromRaw(part.pages(i)), part.bytes(i)});
  for (const uint32_t piece : part.continuing()) pages[piece].continues = true;
  return pages;
}

absl::Status CheckDirectory(const proto::Directory& directory, uint32_t parts, const RowLayout& layout,
                            bool counts_nulls) {
  if (directory.null_rows() > 0 && !counts_nulls) return Broken("rows that were to be written");
  int64_t before = -1;
  for (const proto::PartPages& part : directory.parts()) {
    if (part.part() <= before || part.part() >= parts) return Broken("the number of a part");
    before = part.part();
    NAM_RETURN_IF_ERROR(CheckPages(part, layout));
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
