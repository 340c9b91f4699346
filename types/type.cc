#include "types/type.h"

#include "absl/strings/str_cat.h"

namespace nam {

std::string TypeName(const Type& type) {
  switch (type.kind) {
    case TypeKind::kNull:
      return "null";
    case TypeKind::kBool:
      return "boolean";
    case TypeKind::kInteger:
      return "integer";
    case TypeKind::kDecimal:
      return absl::StrCat("decimal(", kMaxDecimalDigits, ",", static_cast<int>(type.scale), ")");
    case TypeKind::kDate:
      return "date";
    case TypeKind::kTimestamp:
      return "timestamp";
    case TypeKind::kString:
      if (type.length == 0 || type.length == Type::kAnyLength) return type.blank_padded ? "char" : "varchar";
      return absl::StrCat(type.blank_padded ? "char(" : "varchar(", type.length, ")");
    case TypeKind::kDouble:
      return "double precision";
    case TypeKind::kReal:
      return "real";
    case TypeKind::kTime:
      return "time";
    case TypeKind::kTimestampTz:
      return "timestamp with time zone";
    case TypeKind::kInterval:
      return "interval";
    case TypeKind::kUuid:
      return "uuid";
    case TypeKind::kBytes:
      return "bytea";
    case TypeKind::kNumeric:
      return "numeric";
  }
  return "unknown";
}

Physical PhysicalOf(const Type& type) {
  switch (type.kind) {
    case TypeKind::kNull:  // has no values; uses the smallest form
    case TypeKind::kBool:
      return Physical::kTruth;
    case TypeKind::kInteger:
    case TypeKind::kDate:
    case TypeKind::kTimestamp:
    case TypeKind::kTime:
    case TypeKind::kTimestampTz:
    case TypeKind::kDouble:  // ordered like the numbers: types/real.h
    case TypeKind::kReal:
      return Physical::kInt64;
    case TypeKind::kDecimal:
    case TypeKind::kInterval:  // packed: types/interval.h
    case TypeKind::kNumeric:   // packed: types/numeric.h
    case TypeKind::kUuid:
      return Physical::kInt128;
    case TypeKind::kString:
    case TypeKind::kBytes:
      return Physical::kText;
  }
  return Physical::kTruth;
}

}  // namespace nam
