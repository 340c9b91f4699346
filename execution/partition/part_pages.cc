#include "execution/partition/part_pages.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "execution/partition/packed_page.h"
#include "execution/partition/part_directory.h"
#include "execution/partition/parts.h"

namespace nam::execution {
namespace {

/// READs in flight: their bytes cover the round trip.
constexpr uint32_t kWindow = 16;

}  // namespace

absl::StatusOr<PartPages> PartPages::Make(std::span<const proto::Directory> directories, uint32_t pipeline,
                                          uint32_t parts, const RowLayout& layout, bool counts_nulls) {
  PartPages made;
  made.by_part_.resize(parts);
  std::set<uint64_t> attempts;
  for (const proto::Directory& directory : directories) {
    if (directory.pipeline() != pipeline) continue;  // another source of the stage reads it
    if (!attempts.insert(directory.attempt()).second)
      return absl::DataLossError("an attempt has two directories in scratch memory");
    NAM_RETURN_IF_ERROR(CheckDirectory(directory, parts, layout, counts_nulls));
    made.has_null_rows_ |= directory.null_rows() > 0;
    made.empty_ &= directory.null_rows() == 0;
    for (const proto::PartPages& part : directory.parts()) {
      Run& run = made.by_part_[part.part()].emplace_back();
      run.attempt = directory.attempt();
      run.rows = part.rows();
      made.empty_ &= run.rows == 0;
      run.pages = PagesOf(part);
    }
  }
  return made;
}

uint64_t PartPages::RowsOf(uint32_t part) const {
  uint64_t rows = 0;
  for (const Run& run : RunsOf(part)) rows += run.rows;
  return rows;
}

PartReader::PartReader(const PartPages& pages, const RowLayout& layout, const PartBy& by,
                       storage::Channel& channel, MemoryBudget& budget, const std::atomic<bool>& cancel,
                       const RowLayout* other)
    : pages_(pages),
      layout_(layout),
      other_(other),
      by_(by),
      reader_(channel, StretchBytes(layout), kWindow, cancel),
      long_page_(budget),
      places_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      positions_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      hashes_(std::make_unique_for_overwrite<uint64_t[]>(kChunkRows)) {}

void PartReader::Start(uint32_t part, PartSlice slice, PartShare share) {
  slice_ = slice;
  std::vector<storage::ScratchPage> pages = TakeShare(pages_.RunsOf(part), share);
  run_ = 0;
  reads_left_ = runs_.empty() ? 0 : runs_[0].pages;
  stretch_ = {};
  page_ = nullptr;
  run_rows_ = rows_before_ = 0;
  rows_ = done_ = 0;
  reader_.Start(std::move(pages));
}

std::vector<storage::ScratchPage> PartReader::TakeShare(const std::vector<PartPages::Run>& runs,
                                                        PartShare share) {
  unsigned __int128 all_bytes = 0, before_bytes = 0;
  for (const PartPages::Run& run : runs) {
    for (const storage::ScratchPage& page : run.pages) all_bytes += page.bytes;
  }
  runs_.clear();
  std::vector<storage::ScratchPage> taken;
  for (const PartPages::Run& run : runs) {
    Reading reading{.run = &run};
    bool ours = false;
    for (const storage::ScratchPage& page : run.pages) {
      if (!page.continues) ours = before_bytes * share.count / all_bytes == share.number;
      before_bytes += page.bytes;
      if (!ours) continue;
      taken.push_back(page);
      ++reading.pages;
    }
    if (reading.pages > 0) runs_.push_back(reading);
  }
  return taken;
}

/// A share of a run's pages can only check that it has no more rows than the whole run.
absl::Status PartReader::EndRun() {
  const auto& [run, pages] = runs_[run_];
  const bool whole = pages == run->pages.size();
  if (whole ? run_rows_ != run->rows : run_rows_ > run->rows)
    return absl::DataLossError("a part in scratch memory does not have the rows that its directory says");
  run_rows_ = 0;
  if (++run_ < runs_.size()) reads_left_ = runs_[run_].pages;
  return absl::OkStatus();
}

absl::StatusOr<bool> PartReader::NextPage() {
  if (stretch_.empty()) {
    NAM_ASSIGN_OR_RETURN(stretch_, reader_.Next());
    if (stretch_.empty()) return false;
    reads_ = 1;
    if (reader_.left_of_page() > stretch_.size()) {
      NAM_RETURN_IF_ERROR(NextLongPage());
      return true;
    }
  }
  // The memory after the READ bytes is the reader's, up to the end of the page.
  const std::span<std::byte> page(stretch_.data(), layout_.page_bytes());
  const size_t bytes = std::min<size_t>(stretch_.size(), layout_.page_bytes());
  stretch_ = stretch_.subspan(bytes);
  PageHeader header;
  std::memcpy(&header, page.data(), sizeof(header));
  page_layout_ = other_ != nullptr && header.layout == other_->digest() ? other_ : &layout_;
  NAM_RETURN_IF_ERROR(UnpackPage(*page_layout_, page, bytes));
  NAM_RETURN_IF_ERROR(Open(page));
  return true;
}

absl::Status PartReader::NextLongPage() {
  const auto bytes = static_cast<uint32_t>(reader_.left_of_page());
  NAM_RETURN_IF_ERROR(long_page_.Reserve(bytes));
  const std::span<std::byte> page = long_page_.bytes();
  for (size_t done = 0; done < bytes; done += stretch_.size()) {
    if (done > 0) {
      NAM_ASSIGN_OR_RETURN(stretch_, reader_.Next());
      ++reads_;
    }
    std::memcpy(page.data() + done, stretch_.data(), stretch_.size());
  }
  stretch_ = {};
  const uint32_t digest = PageHeaderOf(page.data()).layout;
  page_layout_ = other_ != nullptr && digest == other_->digest() ? other_ : &layout_;
  return Open(page);
}

absl::Status PartReader::Open(std::span<const std::byte> page) {
  NAM_RETURN_IF_ERROR(page_layout_->CheckPage(page, runs_[run_].run->attempt));
  page_ = page.data();
  page_bytes_ = static_cast<uint32_t>(page.size());
  rows_before_ += rows_;
  rows_ = PageHeaderOf(page_).rows;
  done_ = 0;
  run_rows_ += rows_;
  return absl::OkStatus();
}

absl::StatusOr<bool> PartReader::HasPage() {
  while (done_ == rows_) {
    if (page_ != nullptr && stretch_.empty() && (reads_left_ -= reads_) == 0) NAM_RETURN_IF_ERROR(EndRun());
    page_ = nullptr;
    NAM_ASSIGN_OR_RETURN(const bool more, NextPage());
    if (!more) return false;
  }
  return true;
}

absl::StatusOr<std::span<const std::byte>> PartReader::NextWhole() {
  NAM_ASSIGN_OR_RETURN(const bool more, HasPage());
  if (!more || !takes_all() || done_ > 0) return std::span<const std::byte>();
  done_ = rows_;
  rows_read_ += rows_;
  return std::span<const std::byte>(page_, page_bytes_);
}

bool PartReader::HasNullKey(uint32_t place) const {
  const std::byte* const row = page_ + kPageHeaderBytes + size_t{place} * page_layout_->stride();
  return std::any_of(by_.keys.begin(), by_.keys.end(),
                     [&](uint32_t key) { return page_layout_->IsNull(row, key); });
}

uint32_t PartReader::SelectSlice(uint32_t first, uint32_t count) {
  by_.Hash(*page_layout_, page_, first, count, hashes_.get());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t hash = hashes_[i];
    if (HasNullKey(first + i)) hash = HashNumber(static_cast<int64_t>(rows_before_ + first + i));
    positions_[kept] = i;
    kept += IsIn(slice_, hash, pages_.parts());
  }
  return kept;
}

absl::StatusOr<bool> PartReader::Next(Chunk& out) {
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, HasPage());
    if (!more) return false;
    const uint32_t first = done_, count = std::min(kChunkRows, rows_ - done_);
    done_ += count;
    uint32_t kept = count;
    out.SelectAll(count);
    if (!takes_all()) {
      kept = SelectSlice(first, count);
      if (kept == 0) continue;
      if (kept < count) out.Select(positions_.get(), kept);
    }
    rows_read_ += kept;
    // Rows of whole pages, the common case, lie where their positions say.
    if (first > 0) std::iota(places_.get(), places_.get() + count, first);
    for (size_t i = 0; i < page_layout_->fields(); ++i) {
      const RowField& field = page_layout_->field(i);
      out.columns()[i] = {.kind = Column::Kind::kField,
                          .width = field.width,
                          .physical = field.physical,
                          .base = page_,
                          .rows = first > 0 ? places_.get() : nullptr,
                          .field = &field};
    }
    return true;
  }
}

}  // namespace nam::execution
