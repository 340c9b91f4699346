#include "sql/assignment.h"

#include <sys/random.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "partitioner/record_row.h"
#include "types/bytes.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using partitioner::BytesOfColumn;
using partitioner::MostTextBytesOf;
using plan::Expr;

constexpr plan::ColumnRef kRandomUuid = {-2, 0};

/// Version 4.
__int128 NewUuid() {
  std::string bytes(sizeof(__int128), '\0');
  NAM_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "random bytes");
  constexpr size_t kVersion = 6, kVariant = 8;
  bytes[kVersion] = static_cast<char>((bytes[kVersion] & 0x0f) | 0x40);
  bytes[kVariant] = static_cast<char>((bytes[kVariant] & 0x3f) | 0x80);
  return UuidOfBytes(bytes);
}

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

Expr RandomUuid(int position) {
  Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = Type::Uuid();
  expr.position = position;
  expr.column = kRandomUuid;
  return expr;
}

bool AsksRandomUuid(const Expr& expr) {
  return (expr.op == plan::Op::kColumn && expr.column == kRandomUuid) ||
         std::any_of(expr.children.begin(), expr.children.end(), AsksRandomUuid);
}

plan::Resolver ValueResolver() {
  return [](const Expr& e) {
    NAM_CHECK(e.column == kRandomUuid, "a value without a row");
    return UuidValue(NewUuid());
  };
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

absl::Status Check(const proto::Table& table, const std::vector<BoundCheck>& checks,
                   const std::vector<Value>& row) {
  for (const BoundCheck& check : checks) {
    NAM_ASSIGN_OR_RETURN(const Value holds, Evaluate(check.condition, RowResolver(row)));
    if (holds.null || holds.number != 0) continue;
    return UserError(
        sqlstate::kCheckViolation,
        absl::StrCat("a row of ", Quote(table.name()), " violates check constraint ", Quote(check.name)), -1);
  }
  return absl::OkStatus();
}

absl::Status StillReferenced(const std::string& table, const proto::ReferencingKey& reference) {
  return UserError(sqlstate::kDependentObjects,
                   absl::StrCat("cannot drop table ", table, " because constraint ", reference.key().name(),
                                " on table ", reference.child(), " depends on it"),
                   -1, absl::StrCat("DROP TABLE ", reference.child(), " first"));
}

std::string ConstraintName(const proto::Table& table, int key) {
  if (key != ConflictAction::kPrimaryKey) return table.record().parts(key).name();
  const std::string& name = table.record().primary_key_name();
  return name.empty() ? absl::StrCat(table.name(), "_pkey") : name;
}

absl::Status DuplicateKey(const proto::Table& table, int key, const std::vector<Value>& row) {
  std::vector<uint32_t> columns = partitioner::KeyColumnsOf(table);
  if (key != ConflictAction::kPrimaryKey) {
    const auto& of_index = table.record().parts(key).columns();
    columns.assign(of_index.begin(), of_index.end());
  }
  std::string names, values;
  for (const uint32_t column : columns) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", table.columns(static_cast<int>(column)).name());
    absl::StrAppend(&values, column == columns[0] ? "" : ", ", row[column].ToString());
  }
  return UserError(
      sqlstate::kUniqueViolation,
      absl::StrCat("duplicate key value violates unique constraint ", Quote(ConstraintName(table, key))), -1,
      absl::StrCat("key (", names, ")=(", values, ") already exists"));
}

}  // namespace nam::sql
