#include "session/loaded_rows.h"

#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "session/result_batch.h"
#include "sql/assignment.h"
#include "sql/bound_query.h"
#include "types/decimal.h"
#include "types/wire.h"

namespace nam::session {

LoadedRows::LoadedRows(const proto::Table& table, std::vector<int> columns, partitioner::TableLoader& loader)
    : table_(table), loader_(loader), batch_(static_cast<size_t>(table.columns_size())) {
  for (const proto::Column& column : table.columns()) {
    Target& target = targets_.emplace_back();
    target.type = TypeOf(column.type()).value_or(Type::Null());
    target.form = partitioner::FormOf(target.type);
    target.absent = sql::ConstantDefault(column).value_or(Value::Null(target.type));
    const uint8_t precision = target.type.precision;
    if (target.type.kind == TypeKind::kInteger) {
      target.most = (__int128{1} << (8 * (precision == 0 ? 8 : precision) - 1)) - 1;
      target.least = -target.most - 1;
    } else if (target.type.kind == TypeKind::kDecimal) {
      target.most = PowerOfTen(precision == 0 ? kMaxDecimalDigits : precision) - 1;
      target.least = -target.most;
    }
  }
  for (size_t i = 0; i < columns.size(); ++i)
    targets_[static_cast<size_t>(columns[i])].source = static_cast<int>(i);
}

absl::Status LoadedRows::Begin(const std::vector<ResultSet::Column>&) {
  return absl::OkStatus();
}

bool LoadedRows::FitsAsItIs(const Target& target, const ResultBatch& rows, size_t row) {
  const auto source = static_cast<size_t>(target.source);
  const Type& type = rows.type(source, row);
  if (type.kind != target.type.kind) return false;
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kDecimal: {
      const __int128 number = rows.number(source, row);
      return type.scale == target.type.scale && number >= target.least && number <= target.most;
    }
    case TypeKind::kString:
      // There are at least as many bytes as characters.
      return !target.type.blank_padded && !type.blank_padded &&
             (target.type.length == 0 || rows.text(source, row).size() <= target.type.length);
    default:
      return true;
  }
}

absl::Status LoadedRows::AddValue(size_t column, const ResultBatch& rows, size_t row) {
  const Target& target = targets_[column];
  partitioner::ColumnBatch::Column& out = batch_.column(column);
  const auto source = static_cast<size_t>(target.source);
  const bool given = target.source >= 0;
  const bool null = given && rows.null(source, row);
  if (given && !null && FitsAsItIs(target, rows, row)) {
    if (target.form == partitioner::Form::kText) {
      out.Push(target.form, 0, batch_.Keep(rows.text(source, row)));
    } else {
      out.Push(target.form, rows.number(source, row), {});
    }
    return absl::OkStatus();
  }
  Value value = !given ? target.absent : null ? Value::Null(target.type) : rows.Boxed(source, row);
  NAM_ASSIGN_OR_RETURN(value, sql::Assign(table_, static_cast<int>(column), std::move(value), -1));
  if (value.null) {
    out.PushNull(target.form, batch_.rows());
  } else {
    out.Push(target.form, value.number,
             target.form == partitioner::Form::kText ? batch_.Keep(value.text) : std::string_view());
  }
  return absl::OkStatus();
}

absl::Status LoadedRows::Add(const ResultBatch& rows) {
  for (size_t row = 0; row < rows.rows(); ++row) {
    for (size_t column = 0; column < targets_.size(); ++column)
      NAM_RETURN_IF_ERROR(AddValue(column, rows, row));
    batch_.set_rows(batch_.rows() + 1);
    if (batch_.rows() == kBatchRows) NAM_RETURN_IF_ERROR(Flush());
  }
  rows_ += rows.rows();
  return absl::OkStatus();
}

absl::Status LoadedRows::Add(const std::vector<Value>& row) {
  return Add(ResultBatch({&row, 1}));
}

absl::Status LoadedRows::Flush() {
  if (batch_.rows() > 0) NAM_RETURN_IF_ERROR(loader_.Append(batch_));
  batch_.Clear();
  return absl::OkStatus();
}

absl::Status LoadedRows::End() {
  return Flush();
}

}  // namespace nam::session
