#include "sql/constraints.h"

#include <sys/random.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "types/bytes.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;

constexpr plan::ColumnRef kRandomUuid = {-2, 0};

/// Of version 4.
__int128 NewUuid() {
  std::string bytes(sizeof(__int128), '\0');
  NAM_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "random bytes");
  constexpr size_t kVersion = 6, kVariant = 8;
  bytes[kVersion] = static_cast<char>((bytes[kVersion] & 0x0f) | 0x40);
  bytes[kVariant] = static_cast<char>((bytes[kVariant] & 0x3f) | 0x80);
  return UuidOfBytes(bytes);
}

}  // namespace

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
  if (key != ConflictAction::kPrimaryKey) return BareName(table.record().parts(key).name());
  const std::string& name = table.record().primary_key_name();
  return name.empty() ? absl::StrCat(BareName(table.name()), "_pkey") : name;
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
