#include "partitioner/assigned_value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "partitioner/record_row.h"
#include "types/decimal.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

absl::Status OutOfRange(const proto::Type& type, int position) {
  if (ColumnTypeOf(type).kind == TypeKind::kDecimal) {
    return UserError(sqlstate::kNumberOutOfRange, "numeric field overflow", position,
                     absl::StrCat("a ", ColumnTypeName(type), " has at most ",
                                  type.precision() - type.scale(), " digits before the decimal point"));
  }
  return IntegerOutOfRange(static_cast<int>(type.precision()), position);
}

bool Fits(const proto::Type& type, __int128 number) {
  switch (ColumnTypeOf(type).kind) {
    case TypeKind::kInteger: {
      // Loaders' columns may be as wide as their kind allows.
      const uint32_t bytes = type.precision() == 0 ? sizeof(int64_t) : type.precision();
      const __int128 limit = __int128{1} << (8 * bytes - 1);
      return number >= -limit && number < limit;
    }
    case TypeKind::kDecimal: {
      const __int128 limit =
          PowerOfTen(type.precision() == 0 ? kMaxDecimalDigits : static_cast<int>(type.precision()));
      return number > -limit && number < limit;
    }
    default:
      return true;
  }
}

}  // namespace

std::string ColumnTypeName(const proto::Type& type) {
  switch (ColumnTypeOf(type).kind) {
    case TypeKind::kInteger:
      return type.precision() == 2 ? "smallint" : type.precision() == 4 ? "integer" : "bigint";
    case TypeKind::kDecimal:
      return absl::StrCat("decimal(", type.precision(), ",", type.scale(), ")");
    case TypeKind::kString:
      if (type.length() == 0) return "text";
      return absl::StrCat(type.blank_padded() ? "char(" : "varchar(", type.length(), ")");
    default:
      return TypeName(ColumnTypeOf(type));
  }
}

absl::StatusOr<Value> Assign(const proto::Table& table, int column, Value value, int position) {
  const proto::Column& to = table.columns(column);
  const proto::Type& type = to.type();
  if (value.null) {
    if (to.nullable()) return value;
    return UserError(sqlstate::kNotNullViolation,
                     absl::StrCat("null value in column ", Quote(to.name()), " of ", Quote(table.name())),
                     position, "the column is NOT NULL");
  }
  if (PhysicalOf(ColumnTypeOf(type)) != Physical::kText) {
    if (!Fits(type, value.number)) return OutOfRange(type, position);
    return value;
  }
  // Texts of columnar tables may have any number of bytes.
  const bool bounded = table.has_record();
  if (type.length() == 0) {
    if (!bounded) return value;
    const uint32_t most = MostTextBytesOf(type);
    if (value.text.size() <= most) return value;
    return UserError(
        sqlstate::kLimitExceeded,
        absl::StrCat("value too long for column ", Quote(to.name()), " of type ", ColumnTypeName(type)),
        position,
        absl::StrCat("it has ", value.text.size(), " bytes; a ", ColumnTypeName(type),
                     " of a record table has ", most, " at most, a varchar(n) as many as it says"));
  }
  if (type.blank_padded()) value.text.erase(value.text.find_last_not_of(' ') + 1);
  // A table made with as many bytes as characters keeps that bound.
  size_t end = EndOfCharacters(value.text, type.length());
  if (bounded) end = std::min<size_t>(end, BytesOfColumn(type));
  if (end < value.text.size()) {
    if (value.text.find_first_not_of(' ', end) != std::string::npos) {
      return UserError(
          sqlstate::kTextTooLong,
          absl::StrCat("value too long for column ", Quote(to.name()), " of type ", ColumnTypeName(type)),
          position, absl::StrCat("it has ", CountCharacters(value.text), " characters"));
    }
    value.text.resize(end);
  }
  return value;
}

}  // namespace nam::partitioner
