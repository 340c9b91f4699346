#include "execution/partition/partition_writer.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/partition/open_scratch.h"
#include "execution/partition/packed_page.h"
#include "execution/partition/parts.h"
#include "execution/rows/row_hash.h"
#include "plan/work_cost.h"

namespace nam::execution {

PartitionWriter::PartitionWriter(const PartedRows& rows, const Program& program, storage::ScratchSpace& space,
                                 storage::Channel& channel, MemoryBudget& budget,
                                 const std::atomic<bool>& cancel)
    : rows_(rows),
      budget_(budget),
      scratch_(space, channel, rows.layout.page_bytes(), cancel),
      writer_(rows.layout, program),
      frame_(program.NewFrame()),
      open_(rows.parts),
      hashes_(std::make_unique_for_overwrite<uint64_t[]>(rows.layout.rows_max())) {
  for (size_t i = 0; i < rows.layout.fields(); ++i) {
    if (rows.layout.field(i).physical == Physical::kText) texts_.push_back(i);
  }
}

PartitionWriter::~PartitionWriter() {
  for (std::byte* const page : pages_) {
    std::free(page);
    budget_.Give(rows_.layout.page_bytes());
  }
}

absl::StatusOr<std::byte*> PartitionWriter::NewPage() {
  const uint32_t bytes = rows_.layout.page_bytes();
  if (!budget_.Take(bytes)) return OverBudget(budget_);
  auto* const page = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (page == nullptr) {
    budget_.Give(bytes);
    return OverBudget(budget_);
  }
  pages_.push_back(page);
  return page;
}

absl::StatusOr<std::byte*> PartitionWriter::OpenPageFor(TaskContext& context) {
  absl::StatusOr<std::byte*> page = absl::ResourceExhaustedError("pages enough are open");
  // One of the pages is for staging.
  if (pages_.size() <= rows_.open_pages_max) page = NewPage();
  if (!absl::IsResourceExhausted(page.status()) || pages_.size() <= 1) return page;
  // Pages that have been written stay with their parts, without rows: these go first.
  const auto fullness = [](const OpenPage& open) { return open.rows == 0 ? UINT32_MAX : open.rows; };
  auto fullest = open_.end();
  for (auto open = open_.begin(); open != open_.end(); ++open) {
    if (open->bytes == nullptr) continue;
    if (fullest == open_.end() || fullness(*open) > fullness(*fullest)) fullest = open;
  }
  short_of_pages_ = true;
  if (fullest->rows > 0)
    NAM_RETURN_IF_ERROR(WritePage(context, static_cast<uint32_t>(fullest - open_.begin())));
  return std::exchange(*fullest, {}).bytes;
}

absl::Status PartitionWriter::Append(TaskContext& context, const Chunk& chunk, Selection tuples) {
  if (staging_ == nullptr) {
    NAM_ASSIGN_OR_RETURN(staging_, NewPage());
  }
  for (uint32_t done = 0; done < tuples.count;) {
    rows_.layout.Clear(staging_);
    writer_.Open(staging_, 0);
    const uint32_t before = done;
    if (!writer_.Append(frame_, chunk, tuples, done, nullptr)) return frame_.error();
    NAM_RETURN_IF_ERROR(Scatter(context, done - before));
  }
  return absl::OkStatus();
}

absl::Status PartitionWriter::Scatter(TaskContext& context, uint32_t rows) {
  context.Charge(rows, plan::work_cost::kSinkRowPs);
  HashRows(rows_.layout, rows_.keys, staging_, 0, rows, hashes_.get());
  if (short_of_pages_) return ScatterAny(context, rows, ByPart(rows));
  if (!texts_.empty()) return ScatterAny(context, rows, {});
  switch (rows_.layout.stride()) {
    case 8:
      return ScatterRows<8>(context, rows);
    case 16:
      return ScatterRows<16>(context, rows);
    case 24:
      return ScatterRows<24>(context, rows);
    case 32:
      return ScatterRows<32>(context, rows);
    default:
      return ScatterRows<0>(context, rows);
  }
}

/// The stride, or 0: it is known when it runs.
template <uint32_t kStride>
absl::Status PartitionWriter::ScatterRows(TaskContext& context, uint32_t rows) {
  const uint32_t stride = kStride > 0 ? kStride : rows_.layout.stride();
  const uint32_t rows_max = rows_.layout.rows_max();
  const std::byte* row = staging_ + kPageHeaderBytes;
  for (uint32_t i = 0; i < rows; ++i, row += stride) {
    const uint32_t part = PartOf(hashes_[i], rows_.parts);
    OpenPage& page = open_[part];
    if (page.bytes == nullptr || page.rows == rows_max) [[unlikely]]
      NAM_RETURN_IF_ERROR(MakeRoom(context, part, 0));
    std::memcpy(page.bytes + kPageHeaderBytes + size_t{page.rows++} * stride, row, stride);
  }
  return absl::OkStatus();
}

std::span<const uint32_t> PartitionWriter::ByPart(uint32_t rows) {
  part_ends_.assign(rows_.parts + 1, 0);
  order_.resize(rows);
  for (uint32_t i = 0; i < rows; ++i) ++part_ends_[PartOf(hashes_[i], rows_.parts) + 1];
  std::partial_sum(part_ends_.begin(), part_ends_.end(), part_ends_.begin());
  for (uint32_t i = 0; i < rows; ++i) order_[part_ends_[PartOf(hashes_[i], rows_.parts)]++] = i;
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
    const uint32_t part = PartOf(hashes_[i], rows_.parts);
    NAM_RETURN_IF_ERROR(MakeRoom(context, part, text_bytes));
    OpenPage& page = open_[part];
    std::byte* const to = page.bytes + kPageHeaderBytes + size_t{page.rows++} * stride;
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
  const uint32_t stride = rows_.layout.stride();
  if (page.bytes != nullptr) {
    const uint64_t end = kPageHeaderBytes + uint64_t{page.rows + 1} * stride + text_bytes;
    if (page.rows < rows_.layout.rows_max() && end <= page.text_begin) return absl::OkStatus();
    return WritePage(context, part);
  }
  NAM_ASSIGN_OR_RETURN(page.bytes, OpenPageFor(context));
  rows_.layout.Clear(page.bytes);
  page.text_begin = rows_.layout.page_bytes();
  return absl::OkStatus();
}

/// The page is empty again.
absl::Status PartitionWriter::WritePage(TaskContext& context, uint32_t part) {
  OpenPage& page = open_[part];
  PageHeader header;
  std::memcpy(&header, page.bytes, sizeof(header));
  header.rows = page.rows;
  header.text_begin = page.text_begin;
  std::memcpy(page.bytes, &header, sizeof(header));
  rows_.layout.Seal(page.bytes, rows_.attempt);
  const uint32_t bytes = PackPage(rows_.layout, page.bytes);
  context.Charge(bytes, plan::work_cost::kChecksumBytePs);
  context.Settle();
  const absl::StatusOr<storage::ScratchPage> place = scratch_.Write({page.bytes, bytes});
  if (!place.ok()) return ScratchError(place.status());
  directory_.Add(part, *place, page.rows);
  rows_.layout.Clear(page.bytes);
  page.rows = 0;
  page.text_begin = rows_.layout.page_bytes();
  return absl::OkStatus();
}

absl::Status PartitionWriter::Finish(TaskContext& context) {
  for (uint32_t part = 0; part < rows_.parts; ++part) {
    if (open_[part].rows > 0) NAM_RETURN_IF_ERROR(WritePage(context, part));
  }
  return scratch_.Flush();
}

}  // namespace nam::execution
