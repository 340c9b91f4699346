#include "execution/sort/run_writer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/partition/open_scratch.h"
#include "execution/partition/packed_page.h"
#include "plan/work_cost.h"

namespace nam::execution {

RunWriter::RunWriter(const RowsPlan& plan, uint64_t attempt, const RunPlace& place, MemoryBudget& budget,
                     const std::atomic<bool>& cancel)
    : plan_(plan),
      attempt_(attempt),
      budget_(budget),
      scratch_(*place.space, *place.channel, plan.layout().page_bytes(), cancel),
      writer_(plan.layout(), plan.slots()),
      frame_(plan.slots().NewFrame()),
      long_page_(budget) {}

RunWriter::~RunWriter() {
  if (page_ == nullptr) return;
  std::free(page_);
  budget_.Release(plan_.layout().page_bytes());
}

absl::Status RunWriter::NewPage() {
  const uint32_t bytes = plan_.layout().page_bytes();
  if (!budget_.Reserve(bytes)) return OverBudget(budget_);
  page_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (page_ == nullptr) {
    budget_.Release(bytes);
    return OverBudget(budget_);
  }
  plan_.layout().Clear(page_);
  writer_.Open(page_, 0);
  return absl::OkStatus();
}

absl::Status RunWriter::Append(TaskContext& context, const Chunk& chunk) {
  if (page_ == nullptr) NAM_RETURN_IF_ERROR(NewPage());
  const Selection rows = chunk.selection();
  for (uint32_t done = 0; done < rows.count;) {
    if (!writer_.Append(frame_, chunk, rows, done, nullptr)) return frame_.error();
    if (done == rows.count) break;
    const bool is_long = writer_.next_page_bytes() > plan_.layout().page_bytes();
    // WritePage opens a normal page, whose rows come after the long one's.
    if (PageHeaderOf(page_).rows > 0) NAM_RETURN_IF_ERROR(WritePage(context));
    if (is_long) NAM_RETURN_IF_ERROR(WriteLongRow(context, chunk, rows, done));
  }
  long_page_.Clear();
  context.Charge(rows.count, plan::work_cost::kSinkRowPs);
  return absl::OkStatus();
}

absl::Status RunWriter::AppendSorted(TaskContext& context, const RowOrder& order, const RowTable& table,
                                     std::vector<std::span<const OrderedRow>> spans) {
  SpanMerge merge(order, std::move(spans));
  std::vector<OrderedRow> rows(kChunkRows);
  std::vector<uint32_t> numbers(kChunkRows);
  Chunk chunk(plan_.schema().size(), 0);
  for (size_t i = 0; i < chunk.columns().size(); ++i) chunk.columns()[i] = table.ColumnOf(i, numbers.data());
  while (true) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    const auto count = static_cast<uint32_t>(merge.Take(rows.data(), kChunkRows));
    if (count == 0) return absl::OkStatus();
    for (uint32_t i = 0; i < count; ++i) numbers[i] = rows[i].row;
    chunk.SelectAll(count);
    NAM_RETURN_IF_ERROR(Append(context, chunk));
  }
}

/// Leaves the page empty.
absl::Status RunWriter::WritePage(TaskContext& context) {
  const RowLayout& layout = plan_.layout();
  PageHeader header;
  std::memcpy(&header, page_, sizeof(header));
  layout.Seal(page_, attempt_);
  const uint32_t bytes = PackPage(layout, page_);
  context.Charge(bytes, plan::work_cost::kChecksumBytePs);
  context.Settle();
  const absl::StatusOr<storage::ScratchPage> place = scratch_.Write({page_, bytes});
  if (!place.ok()) return ScratchError(place.status());
  run_.pages.push_back(*place);
  run_.rows += header.rows;
  layout.Clear(page_);
  writer_.Open(page_, 0);
  return absl::OkStatus();
}

absl::Status RunWriter::WriteLongRow(TaskContext& context, const Chunk& chunk, Selection rows,
                                     uint32_t& done) {
  const RowLayout& layout = plan_.layout();
  NAM_RETURN_IF_ERROR(long_page_.Make(layout, writer_.next_page_bytes()));
  writer_.Open(long_page_.data(), 0);
  if (!writer_.Append(frame_, chunk, rows, done, nullptr)) return frame_.error();
  layout.Seal(long_page_.data(), attempt_);
  context.Charge(long_page_.bytes().size(), plan::work_cost::kChecksumBytePs);
  context.Settle();
  const absl::StatusOr<std::vector<storage::ScratchPage>> pieces = scratch_.WriteLong(long_page_.bytes());
  if (!pieces.ok()) return ScratchError(pieces.status());
  run_.pages.insert(run_.pages.end(), pieces->begin(), pieces->end());
  ++run_.rows;
  writer_.Open(page_, 0);
  return absl::OkStatus();
}

absl::StatusOr<ScratchRun> RunWriter::EndRun(TaskContext& context) {
  PageHeader header;
  if (page_ != nullptr) std::memcpy(&header, page_, sizeof(header));
  if (header.rows > 0) NAM_RETURN_IF_ERROR(WritePage(context));
  run_.attempt = attempt_;
  return std::exchange(run_, {});
}

absl::Status RunWriter::Flush() {
  return scratch_.Flush();
}

}  // namespace nam::execution
