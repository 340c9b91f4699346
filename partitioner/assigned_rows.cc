#include "partitioner/assigned_rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/status_macros.h"
#include "partitioner/assigned_value.h"
#include "types/decimal.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

std::string_view WithoutBlanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

constexpr __int128 kWidest = std::numeric_limits<__int128>::max();

/// Copies numbers none of which is NULL. False: one of them is out of range.
template <typename From, typename To, typename AtRow>
bool CopyNumbers(const From* from, AtRow at, size_t rows, __int128 least, __int128 most,
                 std::vector<To>& out) {
  // Narrow numbers are compared as such, so that the loop knows no words of 128 bits.
  using Word = std::conditional_t<sizeof(From) <= sizeof(int64_t), int64_t, __int128>;
  constexpr __int128 kWordMost = std::is_same_v<Word, int64_t> ? __int128{INT64_MAX} : kWidest;
  const auto low = static_cast<Word>(std::max(least, -kWordMost - 1));
  const auto high = static_cast<Word>(std::min(most, kWordMost));
  const size_t before = out.size();
  out.resize(before + rows);
  bool outside = false;
  for (size_t row = 0; row < rows; ++row) {
    const auto number = static_cast<Word>(from[at(row)]);
    outside |= number < low || number > high;
    out[before + row] = static_cast<To>(number);
  }
  return !outside;
}

}  // namespace

/// Of one column.
struct AssignedRows::Rows {
  const ValueColumn& column;
  const uint32_t* positions;
  size_t count;

  size_t At(size_t row) const { return positions == nullptr ? row : positions[row]; }
  bool may_be_null() const { return column.physical == Physical::kTruth || column.nulls != nullptr; }
  bool null(size_t row) const { return column.null(At(row)); }
};

AssignedRows::AssignedRows(const proto::Table& table, const std::vector<GivenColumn>& given)
    : table_(table), row_bytes_(table) {
  NAM_CHECK(given.size() == static_cast<size_t>(table.columns_size()), "something is given to each column");
  for (int c = 0; c < table.columns_size(); ++c) {
    const proto::Column& column = table.columns(c);
    const GivenColumn& from = given[static_cast<size_t>(c)];
    Target& target = targets_.emplace_back();
    target.slot = from.slot;
    target.absent = from.absent;
    if (target.slot < 0) target.absent = Assign(table, c, from.absent, -1);
    target.type = TypeOf(column.type()).value_or(Type::Null());
    target.form = FormOf(target.type);
    target.nullable = column.nullable();
    const uint8_t precision = target.type.precision;
    if (target.type.kind == TypeKind::kInteger) {
      target.most = (__int128{1} << (8 * (precision == 0 ? 8 : precision) - 1)) - 1;
      target.least = -target.most - 1;
    } else if (target.type.kind == TypeKind::kDecimal) {
      target.most = PowerOfTen(precision == 0 ? kMaxDecimalDigits : precision) - 1;
      target.least = -target.most;
    }
  }
}

absl::Status AssignedRows::Add(std::span<const ValueColumn> columns, const uint32_t* positions, size_t rows,
                               ColumnBatch& batch) const {
  if (rows == 0) return absl::OkStatus();
  size_t taken = rows;  // before the first row with an error
  const Target* failed = nullptr;
  for (const Target& target : targets_) {
    if (target.slot < 0) {
      const absl::Status repeated = Repeat(target, rows, batch);
      if (repeated.ok()) continue;
      if (taken > 0) failed = &target;
      taken = 0;
      continue;
    }
    const Rows from{columns[static_cast<size_t>(target.slot)], positions, rows};
    const size_t of_column = AddColumn(target, from, batch);
    if (of_column < taken) failed = &target;
    taken = std::min(taken, of_column);
  }
  const size_t before = batch.rows();
  batch.set_rows(before + rows);
  if (failed == nullptr) return row_bytes_.Check(batch, before, rows);
  if (failed->slot < 0) return failed->absent.status();
  const Rows from{columns[static_cast<size_t>(failed->slot)], positions, rows};
  const absl::Status error =
      Assign(table_, static_cast<int>(NumberOf(*failed)), from.column.Boxed(from.At(taken)), -1).status();
  return error.ok() ? absl::InternalError("a value has another kind than its column") : error;
}

absl::Status AssignedRows::Repeat(const Target& target, size_t rows, ColumnBatch& batch) const {
  NAM_RETURN_IF_ERROR(target.absent.status());
  ColumnBatch::Column& out = batch.column(NumberOf(target));
  const Value& value = *target.absent;
  for (size_t row = 0; row < rows; ++row) {
    if (value.null) {
      out.PushNull(target.form, batch.rows() + row);
    } else {
      out.Push(target.form, value.number, value.text);  // which outlives the batch's rows
    }
  }
  return absl::OkStatus();
}

size_t AssignedRows::AddColumn(const Target& target, const Rows& rows, ColumnBatch& batch) const {
  ColumnBatch::Column& out = batch.column(NumberOf(target));
  const size_t not_null = AddNulls(target, rows, batch.rows(), out);
  const size_t taken =
      target.form == Form::kText ? AddTexts(target, rows, batch) : AddNumbers(target, rows, out);
  return std::min(not_null, taken);
}

size_t AssignedRows::AddNulls(const Target& target, const Rows& rows, size_t before,
                              ColumnBatch::Column& out) {
  size_t first = rows.may_be_null() ? 0 : rows.count;
  while (first < rows.count && !rows.null(first)) ++first;
  if (first == rows.count) {
    if (!out.nulls.empty()) out.nulls.resize(before + rows.count);
    return rows.count;
  }
  out.nulls.resize(before + rows.count);
  for (size_t row = first; row < rows.count; ++row) out.nulls[before + row] = rows.null(row);
  return target.nullable ? rows.count : first;
}

size_t AssignedRows::AddNumbers(const Target& target, const Rows& rows, ColumnBatch::Column& out) {
  if (rows.column.physical == Physical::kText) return AddNone(target, rows, out);
  const auto copy_from = [&](const auto* from, auto& to) {
    const __int128 least = target.least, most = target.most;
    if (rows.positions == nullptr)
      return CopyNumbers(
          from, [](size_t row) { return row; }, rows.count, least, most, to);
    return CopyNumbers(
        from, [&](size_t row) { return rows.positions[row]; }, rows.count, least, most, to);
  };
  const auto copy = [&](auto& to) {
    const size_t before = to.size();
    const ValueColumn& column = rows.column;
    const bool fit = column.physical == Physical::kInt64    ? copy_from(column.narrow, to)
                     : column.physical == Physical::kInt128 ? copy_from(column.wide, to)
                                                            : copy_from(column.truth, to);
    if (fit && !rows.may_be_null()) return rows.count;
    // The number of a NULL row is undefined.
    for (size_t row = 0; row < rows.count; ++row) {
      if (rows.null(row)) {
        to[before + row] = 0;
      } else if (const __int128 number = column.number(rows.At(row));
                 number < target.least || number > target.most) {
        return row;
      }
    }
    return rows.count;
  };
  return target.form == Form::kWide ? copy(out.wide) : copy(out.numbers);
}

size_t AssignedRows::AddTexts(const Target& target, const Rows& rows, ColumnBatch& batch) const {
  ColumnBatch::Column& out = batch.column(NumberOf(target));
  if (rows.column.physical != Physical::kText) return AddNone(target, rows, out);
  out.strings.reserve(out.strings.size() + rows.count);
  for (size_t row = 0; row < rows.count; ++row) {
    if (rows.null(row)) {
      out.strings.emplace_back();
      continue;
    }
    std::string_view text = rows.column.text[rows.At(row)];
    if (target.type.blank_padded) text = WithoutBlanks(text);
    // There are at least as many bytes as characters.
    if (target.type.length == 0 || text.size() <= target.type.length) {
      out.strings.push_back(batch.Keep(text));
      continue;
    }
    const absl::StatusOr<Value> value =
        Assign(table_, static_cast<int>(NumberOf(target)), Value::String(std::string(text)), -1);
    if (!value.ok()) return row;
    out.strings.push_back(batch.Keep(value->text));
  }
  return rows.count;
}

size_t AssignedRows::AddNone(const Target& target, const Rows& rows, ColumnBatch::Column& out) {
  size_t row = 0;
  while (row < rows.count && rows.null(row)) ++row;
  out.numbers.resize(out.numbers.size() + (target.form == Form::kNumber ? rows.count : 0));
  out.wide.resize(out.wide.size() + (target.form == Form::kWide ? rows.count : 0));
  out.strings.resize(out.strings.size() + (target.form == Form::kText ? rows.count : 0));
  return row;
}

absl::Status AssignedRows::Add(const std::vector<Value>& row, ColumnBatch& batch) const {
  for (const Target& target : targets_) {
    absl::StatusOr<Value> value = target.absent;
    if (target.slot >= 0) {
      value = Assign(table_, static_cast<int>(NumberOf(target)), row[static_cast<size_t>(target.slot)], -1);
    }
    NAM_RETURN_IF_ERROR(value.status());
    ColumnBatch::Column& out = batch.column(NumberOf(target));
    if (value->null) {
      out.PushNull(target.form, batch.rows());
    } else {
      out.Push(target.form, value->number, target.form == Form::kText ? batch.Keep(value->text) : "");
    }
  }
  batch.set_rows(batch.rows() + 1);
  return row_bytes_.Check(batch, batch.rows() - 1, 1);
}

}  // namespace nam::partitioner
