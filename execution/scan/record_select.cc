#include "execution/scan/record_select.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/table_schema.h"
#include "plan/work_cost.h"

namespace nam::execution {
absl::Status BadRecordScan(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("not a plan: ", what));
}

absl::StatusOr<RecordSelect> RecordSelect::Make(const proto::Table& table, Options options) {
  RecordSelect select(table, std::move(options));
  NAM_RETURN_IF_ERROR(select.CheckColumns(table));
  NAM_RETURN_IF_ERROR(select.PrepareFilters());
  return select;
}

absl::Status RecordSelect::CheckColumns(const proto::Table& table) const {
  if (options_.schema.size() != options_.columns.size()) return BadRecordScan("columns without types");
  uint32_t before = 0;
  for (size_t i = 0; i < options_.columns.size(); ++i) {
    const uint32_t column = options_.columns[i];
    if (column >= static_cast<uint32_t>(table.columns_size()) || column < before)
      return BadRecordScan("it reads columns that do not exist");
    before = column + 1;
    NAM_ASSIGN_OR_RETURN(const plan::Slot slot, plan::SlotOfColumn(table, column));
    if (slot != options_.schema[i]) return BadRecordScan("a scan of columns that hold something else");
  }
  const bool all_read = std::all_of(options_.outputs.begin(), options_.outputs.end(),
                                    [&](uint32_t slot) { return slot < options_.columns.size(); });
  return all_read ? absl::OkStatus() : BadRecordScan("it uses a column that it does not read");
}

absl::Status RecordSelect::PrepareFilters() {
  std::vector<bool> seen(options_.columns.size());
  const auto add = [&](uint32_t slot, std::vector<uint32_t>& to) {
    if (!seen[slot]) to.push_back(slot);
    seen[slot] = true;
  };
  for (const plan::Expr& filter : options_.filters) {
    for (const plan::ColumnRef ref : plan::ColumnsOf(filter)) {
      if (static_cast<size_t>(ref.column) >= seen.size())
        return BadRecordScan("it uses a column that it does not read");
      add(static_cast<uint32_t>(ref.column), filtered_);
    }
  }
  for (const uint32_t slot : options_.outputs) add(slot, others_);
  if (options_.filters.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(program_, Program::Compile(options_.filters, options_.schema));
  return absl::OkStatus();
}

RecordSelect::Task::Task(const RecordSelect& select, MemoryBudget& budget)
    : select_(select),
      columns_(select.row_, select.options_.columns, select.options_.schema, budget),
      read_(select.options_.columns.size(), 0) {
  if (select.program_ != nullptr) frame_.emplace(select.program_->NewFrame());
}

absl::Status RecordSelect::Task::Begin(Chunk& out) {
  NAM_RETURN_IF_ERROR(columns_.Reserve());
  for (uint32_t slot = 0; slot < read_.columns().size(); ++slot)
    read_.columns()[slot] = columns_.column(slot);
  const std::vector<uint32_t>& outputs = select_.options_.outputs;
  NAM_CHECK(out.columns().size() == outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) out.columns()[i] = columns_.column(outputs[i]);
  out_ = &out;
  return absl::OkStatus();
}

absl::Status RecordSelect::Task::Decode(const std::vector<uint32_t>& slots,
                                        std::span<const std::byte* const> rows, Selection selection) {
  for (const uint32_t slot : slots) NAM_RETURN_IF_ERROR(columns_.Decode(slot, rows, selection));
  return absl::OkStatus();
}

Step RecordSelect::Task::Run(TaskContext& context, std::span<const std::byte* const> rows, Chunk& out) {
  NAM_CHECK(&out == out_ && rows.size() <= kChunkRows, "a task fills one chunk");
  const auto size = static_cast<uint32_t>(rows.size());
  Selection selection{nullptr, size};
  if (frame_) {
    if (const absl::Status status = Decode(select_.filtered_, rows, selection); !status.ok())
      return context.Fail(status);
    context.Charge(uint64_t{size} * select_.options_.filters.size(), plan::work_cost::kFilterRowPs);
    read_.SelectAll(size);
    const auto kept = SelectWhere(*select_.program_, *frame_, read_, selection, positions_);
    if (!kept) return context.Fail(frame_->error());
    if (*kept == 0) return Step::kNeedInput;
    if (*kept < size) selection = {positions_, *kept};
  }
  if (const absl::Status status = Decode(select_.others_, rows, selection); !status.ok())
    return context.Fail(status);
  out.Reset(size, selection);
  return Step::kHaveMore;
}

}  // namespace nam::execution
