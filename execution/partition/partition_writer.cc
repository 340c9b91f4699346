#include "execution/partition/partition_writer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/partition/open_scratch.h"
#include "execution/partition/packed_page.h"
#include "execution/partition/parts.h"
#include "execution/rows/long_page.h"
#include "execution/rows/permute_keys.h"
#include "execution/task.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// A thread's caches hold, for each part, the current line of its page, and the next one.
constexpr uint64_t kOpenBytesOfPart = 2 * kPageLineBytes;

}  // namespace

PartitionWriter::PartitionWriter(const PartedRows& rows, const Program& program,
                                 storage::ScratchWriter& scratch, MemoryBudget& budget)
    : rows_(rows),
      budget_(budget),
      scratch_(scratch),
      staged_(rows.layout.Resized(std::max(rows.layout.page_bytes(), RowLayout::kSmallPageBytes))),
      writer_(staged_, program),
      frame_(program.NewFrame()),
      cursors_(rows.by.parts),
      open_(rows.by.parts),
      hashes_(std::make_unique_for_overwrite<uint64_t[]>(kChunkRows)),
      parts_of_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {
  for (size_t i = 0; i < rows.layout.fields(); ++i) {
    if (rows.layout.field(i).physical == Physical::kText) texts_.push_back(i);
  }
}

PartitionWriter::~PartitionWriter() {
  budget_.Release(uint64_t{pages_} * rows_.layout.page_bytes());
  if (arena_.data != nullptr) munmap(arena_.data, arena_.bytes);
  if (staging_ == nullptr) return;
  std::free(staging_);
  budget_.Release(staged_.page_bytes());
}

absl::Status PartitionWriter::MakeStaging() {
  const uint32_t bytes = staged_.page_bytes();
  if (!budget_.Reserve(bytes)) return OverBudget(budget_);
  staging_ = static_cast<std::byte*>(std::aligned_alloc(kPageLineBytes, bytes));
  if (staging_ != nullptr) return absl::OkStatus();
  budget_.Release(bytes);
  return OverBudget(budget_);
}

/// Pages lie a line more than their size apart: they fill alike, and otherwise the lines in use would share
/// few sets of the caches.
absl::StatusOr<std::byte*> PartitionWriter::NewPage() {
  const uint32_t bytes = rows_.layout.page_bytes();
  if (arena_.data == nullptr) {
    const uint64_t most = std::min(rows_.by.parts, rows_.open_pages_max) * uint64_t{bytes + kPageLineBytes};
    const auto arena = MappingPool::Map(most, /*writable=*/true);
    if (!arena.has_value()) return NoAddressesLeft("parts of a query's rows");
    arena_ = *arena;
  }
  if (!budget_.Reserve(bytes)) return OverBudget(budget_);
  return arena_.data + uint64_t{pages_++} * (bytes + kPageLineBytes);
}

uint32_t PartitionWriter::RowsOf(uint32_t part) const {
  if (open_[part].bytes == nullptr) return 0;
  const std::byte* const first = open_[part].bytes + kPageHeaderBytes;
  return static_cast<uint32_t>(arena_.data + cursors_[part].next - first) / rows_.layout.stride();
}

void PartitionWriter::Clear(uint32_t part) {
  OpenPage& page = open_[part];
  page.text_begin = rows_.layout.page_bytes();
  const auto first = static_cast<uint32_t>(page.bytes - arena_.data) + kPageHeaderBytes;
  cursors_[part] = {first, first + rows_.layout.rows_max() * rows_.layout.stride()};
}

absl::StatusOr<std::byte*> PartitionWriter::OpenPageFor(TaskContext& context) {
  absl::StatusOr<std::byte*> page = absl::ResourceExhaustedError("pages enough are open");
  if (pages_ < rows_.open_pages_max) page = NewPage();
  if (!absl::IsResourceExhausted(page.status()) || pages_ == 0) return page;
  // Written pages stay with their parts, without rows: these go first.
  const auto fullness = [this](uint32_t part) {
    const uint32_t rows = RowsOf(part);
    return rows == 0 ? UINT32_MAX : rows;
  };
  std::optional<uint32_t> fullest;
  for (uint32_t part = 0; part < open_.size(); ++part) {
    if (open_[part].bytes == nullptr) continue;
    if (!fullest.has_value() || fullness(part) > fullness(*fullest)) fullest = part;
  }
  short_of_pages_ = true;
  if (RowsOf(*fullest) > 0) NAM_RETURN_IF_ERROR(WritePage(context, *fullest));
  cursors_[*fullest] = {};
  return std::exchange(open_[*fullest].bytes, nullptr);
}

absl::Status PartitionWriter::Append(TaskContext& context, const Chunk& chunk, Selection tuples) {
  if (staging_ == nullptr) NAM_RETURN_IF_ERROR(MakeStaging());
  for (uint32_t done = 0; done < tuples.count;) {
    staged_.Clear(staging_);
    writer_.Open(staging_, 0);
    const uint32_t before = done;
    if (!writer_.Append(frame_, chunk, tuples, done, nullptr)) return frame_.error();
    NAM_RETURN_IF_ERROR(done > before ? Scatter(context, done - before)
                                      : WriteLongRow(context, chunk, tuples, done));
  }
  return absl::OkStatus();
}

absl::Status PartitionWriter::WriteLongRow(TaskContext& context, const Chunk& chunk, Selection tuples,
                                           uint32_t& done) {
  LongPage page(budget_);
  NAM_RETURN_IF_ERROR(page.Make(staged_, writer_.next_page_bytes()));
  writer_.Open(page.data(), 0);
  if (!writer_.Append(frame_, chunk, tuples, done, nullptr)) return frame_.error();
  uint64_t hash = 0;
  rows_.by.Hash(staged_, page.data(), 0, 1, &hash);
  page.Seal(rows_.layout, rows_.attempt);
  context.Charge(page.bytes().size(), plan::work_cost::kChecksumBytePs);
  context.Settle();
  const absl::StatusOr<std::vector<storage::ScratchPage>> pieces = scratch_.WriteLong(page.bytes());
  if (!pieces.ok()) return ScratchError(pieces.status());
  directory_.Add(PartOf(hash, rows_.by.parts), *pieces, 1);
  ++pages_written_;
  bytes_written_ += page.bytes().size();
  return absl::OkStatus();
}

namespace {

/// Calls `body` with a common stride as a constant, or 0.
template <typename Body>
absl::Status WithStride(uint32_t stride, Body&& body) {
  switch (stride) {
    case 8:
      return body(std::integral_constant<uint32_t, 8>());
    case 16:
      return body(std::integral_constant<uint32_t, 16>());
    case 24:
      return body(std::integral_constant<uint32_t, 24>());
    case 32:
      return body(std::integral_constant<uint32_t, 32>());
    default:
      return body(std::integral_constant<uint32_t, 0>());
  }
}

}  // namespace

absl::Status PartitionWriter::Scatter(TaskContext& context, uint32_t rows) {
  context.Charge(rows, plan::work_cost::kSinkRowPs);
  ChargeAccesses(context, rows, rows_.by.parts * kOpenBytesOfPart);
  const bool any = short_of_pages_ || !texts_.empty();
  if (rows_.by.domain.known() && !any) {
    const auto part_bits = static_cast<uint32_t>(std::countr_zero(rows_.by.parts));
    PermuteKeys(rows_.by.domain, rows_.layout.field(rows_.by.keys[0]), {rows_.by.domain.bits - part_bits},
                staging_ + kPageHeaderBytes, rows, parts_of_.get());
    return WithStride(rows_.layout.stride(), [&](auto stride) { return ScatterRows<stride>(context, rows); });
  }
  rows_.by.Hash(staged_, staging_, 0, rows, hashes_.get());
  if (short_of_pages_) return ScatterAny(context, rows, ByPart(rows));
  if (any) return ScatterAny(context, rows, {});
  for (uint32_t i = 0; i < rows; ++i) parts_of_[i] = PartOf(hashes_[i], rows_.by.parts);
  return WithStride(rows_.layout.stride(), [&](auto stride) { return ScatterRows<stride>(context, rows); });
}

template <uint32_t kStride>
absl::Status PartitionWriter::ScatterRows(TaskContext& context, uint32_t rows) {
  const uint32_t stride = kStride > 0 ? kStride : rows_.layout.stride();
  Cursor* const cursors = cursors_.data();
  const uint32_t* const parts_of = parts_of_.get();
  const std::byte* row = staging_ + kPageHeaderBytes;
  for (uint32_t i = 0; i < rows; ++i, row += stride) {
    Cursor& cursor = cursors[parts_of[i]];
    if (cursor.next == cursor.end) [[unlikely]]
      NAM_RETURN_IF_ERROR(MakeRoom(context, parts_of[i], 0));
    const uint32_t to = cursor.next;
    cursor.next = to + stride;
    std::memcpy(arena_.data + to, row, stride);
  }
  return absl::OkStatus();
}

std::span<const uint32_t> PartitionWriter::ByPart(uint32_t rows) {
  const uint32_t parts = rows_.by.parts;
  part_ends_.assign(parts + 1, 0);
  order_.resize(rows);
  for (uint32_t i = 0; i < rows; ++i) ++part_ends_[PartOf(hashes_[i], parts) + 1];
  std::partial_sum(part_ends_.begin(), part_ends_.end(), part_ends_.begin());
  for (uint32_t i = 0; i < rows; ++i) order_[part_ends_[PartOf(hashes_[i], parts)]++] = i;
  return order_;
}

absl::Status PartitionWriter::ScatterAny(TaskContext& context, uint32_t rows,
                                         std::span<const uint32_t> order) {
  const RowLayout& layout = rows_.layout;
  const uint32_t stride = layout.stride();
  for (uint32_t next = 0; next < rows; ++next) {
    const uint32_t i = order.empty() ? next : order[next];
    const std::byte* const row = staging_ + kPageHeaderBytes + size_t{i} * stride;
    uint32_t text_bytes = 0;
    for (const size_t field : texts_)
      text_bytes += layout.field(field).Stored<uint32_t>(row + sizeof(uint32_t));
    const uint32_t part = PartOf(hashes_[i], rows_.by.parts);
    NAM_RETURN_IF_ERROR(MakeRoom(context, part, text_bytes));
    OpenPage& page = open_[part];
    std::byte* const to = arena_.data + std::exchange(cursors_[part].next, cursors_[part].next + stride);
    std::memcpy(to, row, stride);
    for (const size_t f : texts_) {
      const RowField& field = layout.field(f);
      const std::string_view text = field.Text(staging_, row);
      if (text.empty()) continue;
      page.text_begin -= static_cast<uint32_t>(text.size());
      std::memcpy(page.bytes + page.text_begin, text.data(), text.size());
      std::memcpy(to + field.offset, &page.text_begin, sizeof(uint32_t));
    }
  }
  return absl::OkStatus();
}

absl::Status PartitionWriter::MakeRoom(TaskContext& context, uint32_t part, uint32_t text_bytes) {
  OpenPage& page = open_[part];
  if (page.bytes != nullptr) {
    const Cursor& cursor = cursors_[part];
    const auto left = page.bytes + page.text_begin - (arena_.data + cursor.next);
    if (cursor.next != cursor.end && int64_t{rows_.layout.stride()} + text_bytes <= left)
      return absl::OkStatus();
    return WritePage(context, part);
  }
  NAM_ASSIGN_OR_RETURN(page.bytes, OpenPageFor(context));
  Clear(part);
  return absl::OkStatus();
}

/// Leaves the page empty.
absl::Status PartitionWriter::WritePage(TaskContext& context, uint32_t part) {
  OpenPage& page = open_[part];
  PageHeader header;
  rows_.layout.Clear(page.bytes);
  std::memcpy(&header, page.bytes, sizeof(header));
  header.rows = RowsOf(part);
  header.text_begin = page.text_begin;
  std::memcpy(page.bytes, &header, sizeof(header));
  rows_.layout.Seal(page.bytes, rows_.attempt);
  const uint32_t bytes = PackPage(rows_.layout, page.bytes);
  context.Charge(bytes, plan::work_cost::kChecksumBytePs);
  context.Settle();
  NAM_RETURN_IF_ERROR(WriteToStretch(part, {page.bytes, bytes}, header.rows));
  Clear(part);
  return absl::OkStatus();
}

/// Packed pages end their stretch. Where all pages are packed, because they are many or have texts, each has
/// its own.
absl::Status PartitionWriter::WriteToStretch(uint32_t part, std::span<const std::byte> page, uint32_t rows) {
  ++pages_written_;
  bytes_written_ += page.size();
  storage::ScratchStretch& stretch = open_[part].stretch;
  const bool packed = page.size() < rows_.layout.page_bytes();
  if (short_of_pages_ || !texts_.empty() || (packed && page.size() > stretch.left())) {
    const absl::StatusOr<storage::ScratchPage> place = scratch_.Write(page);
    if (!place.ok()) return ScratchError(place.status());
    directory_.Add(part, *place, rows);
    return absl::OkStatus();
  }
  if (stretch.left() < page.size()) {
    const uint32_t before = stretch.bytes;
    EndStretch(part);
    absl::StatusOr<storage::ScratchStretch> next =
        scratch_.Reserve(std::clamp(2 * before, rows_.layout.page_bytes(), StretchBytes(rows_.layout)));
    if (!next.ok()) return ScratchError(next.status());
    stretch = *next;
  }
  open_[part].stretch_rows += rows;
  const absl::Status status = scratch_.Append(page, stretch);
  return status.ok() ? status : ScratchError(status);
}

void PartitionWriter::EndStretch(uint32_t part) {
  const storage::ScratchPage pages = std::exchange(open_[part].stretch, {}).pages;
  const uint32_t rows = std::exchange(open_[part].stretch_rows, 0);
  if (pages.bytes > 0) directory_.Add(part, pages, rows);
}

absl::Status PartitionWriter::Finish(TaskContext& context) {
  for (uint32_t part = 0; part < rows_.by.parts; ++part) {
    if (RowsOf(part) > 0) NAM_RETURN_IF_ERROR(WritePage(context, part));
    EndStretch(part);
  }
  return scratch_.Flush();
}

}  // namespace nam::execution
