#include "storage/row_pages.h"

#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"
#include "storage/checksum.h"

namespace nam::storage {
namespace {

constexpr size_t kSumBytes = sizeof(uint64_t);

}  // namespace

RowPageWriter::RowPageWriter(ScratchWriter& writer, uint32_t row_bytes)
    : writer_(writer), row_bytes_(row_bytes), page_(kSumBytes) {
  NAM_CHECK(row_bytes > 0 && kSumBytes + row_bytes <= kRowPageBytes, "a row that no page holds");
  page_.reserve(kRowPageBytes);
}

absl::Status RowPageWriter::Add(std::string_view row) {
  NAM_CHECK(row.size() == row_bytes_, "a row of another size");
  if (page_.size() + row_bytes_ > kRowPageBytes) NAM_RETURN_IF_ERROR(EndPage());
  const auto bytes = std::as_bytes(std::span(row));
  page_.insert(page_.end(), bytes.begin(), bytes.end());
  ++out_.rows;
  return absl::OkStatus();
}

absl::Status RowPageWriter::EndPage() {
  const uint64_t sum = Checksum(std::span(page_).subspan(kSumBytes));
  std::memcpy(page_.data(), &sum, kSumBytes);
  NAM_ASSIGN_OR_RETURN(out_.pages.emplace_back(), writer_.Write(page_));
  page_.resize(kSumBytes);
  return absl::OkStatus();
}

absl::StatusOr<RowPages> RowPageWriter::Finish() {
  if (page_.size() > kSumBytes) NAM_RETURN_IF_ERROR(EndPage());
  return std::move(out_);
}

absl::Status ReadRowPages(ScratchReader& reader, const RowPages& pages, uint32_t row_bytes,
                          std::vector<std::string>& rows) {
  uint64_t left = pages.rows;
  reader.Start(pages.pages);
  while (true) {
    NAM_ASSIGN_OR_RETURN(const std::span<const std::byte> page, reader.Next());
    if (page.empty()) break;
    uint64_t sum = 0;
    const bool whole = page.size() > kSumBytes && (page.size() - kSumBytes) % row_bytes == 0;
    if (whole) std::memcpy(&sum, page.data(), kSumBytes);
    if (!whole || sum != Checksum(page.subspan(kSumBytes)))
      return absl::DataLossError("rows in scratch memory are not those that the session has left");
    for (size_t at = kSumBytes; at < page.size() && left > 0; at += row_bytes, --left)
      rows.emplace_back(reinterpret_cast<const char*>(page.data()) + at, row_bytes);
  }
  if (left == 0) return absl::OkStatus();
  return absl::DataLossError("rows in scratch memory are fewer than the session has left");
}

}  // namespace nam::storage
