#include "types/sql_type.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace nam {
namespace {

struct NamedSqlType {
  SqlType type;
  const char* name;
};
constexpr NamedSqlType kSqlTypeNames[] = {
    {SqlType::Bool(), "boolean"},
    {SqlType::Bytes(), "bytea"},
    {SqlType::BigInt(), "bigint"},
    {SqlType::SmallInt(), "smallint"},
    {SqlType::Integer(), "integer"},
    {SqlType::Text(), "text"},
    {SqlType::Real(), "real"},
    {SqlType::Double(), "double precision"},
    {SqlType::Unknown(), "unknown"},
    {SqlType::Date(), "date"},
    {SqlType::Time(), "time without time zone"},
    {SqlType::Timestamp(), "timestamp without time zone"},
    {SqlType::TimestampTz(), "timestamp with time zone"},
    {SqlType::Interval(), "interval"},
    {SqlType::Numeric(), "numeric"},
    {SqlType::Char(0), "character"},
    {SqlType::Varchar(0), "character varying"},
    {SqlType::TypeOfTypes(), "regtype"},
    {SqlType::Uuid(), "uuid"},
};

}  // namespace

SqlType SqlTypeOf(const Type& type) {
  switch (type.kind) {
    case TypeKind::kNull:
      return SqlType::Unknown();
    case TypeKind::kBool:
      return SqlType::Bool();
    case TypeKind::kInteger:
      return type.precision == 2   ? SqlType::SmallInt()
             : type.precision == 8 ? SqlType::BigInt()
                                   : SqlType::Integer();
    case TypeKind::kDecimal:
      return type.precision == 0 ? SqlType::Numeric() : SqlType::Numeric(type.precision, type.scale);
    case TypeKind::kNumeric:
      return SqlType::Numeric();
    case TypeKind::kDate:
      return SqlType::Date();
    case TypeKind::kString:
      return type.blank_padded ? SqlType::Char(type.length)
             : type.length > 0 ? SqlType::Varchar(type.length)
                               : SqlType::Text();
    case TypeKind::kTimestamp:
      return SqlType::Timestamp();
    case TypeKind::kDouble:
      return SqlType::Double();
    case TypeKind::kReal:
      return SqlType::Real();
    case TypeKind::kTime:
      return SqlType::Time();
    case TypeKind::kTimestampTz:
      return SqlType::TimestampTz();
    case TypeKind::kInterval:
      return SqlType::Interval();
    case TypeKind::kUuid:
      return SqlType::Uuid();
    case TypeKind::kBytes:
      return SqlType::Bytes();
  }
  return SqlType::Unknown();
}

std::string SqlTypeName(SqlType type) {
  const auto* const found =
      std::find_if(std::begin(kSqlTypeNames), std::end(kSqlTypeNames),
                   [&](const NamedSqlType& known) { return known.type.oid == type.oid; });
  return found == std::end(kSqlTypeNames) ? absl::StrCat(type.oid) : found->name;
}

}  // namespace nam
