#include "sql/column_type.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::CharType;

constexpr uint32_t kMostBytesOfCharacter = 4;  // in UTF-8
constexpr uint32_t kBytesOfText = 1000;        // text and bytea: other columns fit beside it in a key
constexpr int64_t kLongestText =
    (64 << 10) / kMostBytesOfCharacter - 1;  // characters; a row has up to 64 KiB

struct PlainType {
  const char* name;
  TypeKind kind;
  uint8_t precision;
};
constexpr PlainType kPlainTypes[] = {
    {"int2", TypeKind::kInteger, 2},        {"int4", TypeKind::kInteger, 4},
    {"int8", TypeKind::kInteger, 8},        {"date", TypeKind::kDate, 0},
    {"timestamp", TypeKind::kTimestamp, 0}, {"bool", TypeKind::kBool, 0},
    {"float8", TypeKind::kDouble, 0},       {"float4", TypeKind::kReal, 0},
    {"interval", TypeKind::kInterval, 0},   {"timestamptz", TypeKind::kTimestampTz, 0},
    {"time", TypeKind::kTime, 0},           {"uuid", TypeKind::kUuid, 0},
};

absl::StatusOr<std::vector<int64_t>> Modifiers(const Node& type_name) {
  std::vector<int64_t> numbers;
  for (const Node& modifier : type_name.List("typmods")) {
    if (!modifier.Has("ival")) {
      return UserError(sqlstate::kBadParameter, "the modifiers of a type are whole numbers",
                       modifier.position());
    }
    // Modifiers that the parser adds (char is char(1)) have no place in the text.
    numbers.push_back(modifier.position() >= 0 ? type_name.text().IntegerAt(modifier.position())
                                               : modifier.Field("ival").Integer("ival"));
  }
  return numbers;
}

absl::StatusOr<proto::Type> DecimalType(const std::vector<int64_t>& modifiers, int position) {
  if (modifiers.empty()) return ToProto(Type::Numeric());  // each value keeps its own scale
  const int64_t scale = modifiers.size() > 1 ? modifiers[1] : 0;
  if (modifiers.size() > 2 || modifiers[0] < 1 || modifiers[0] > kMaxDecimalDigits || scale < 0 ||
      scale > modifiers[0]) {
    return UserError(sqlstate::kBadParameter,
                     "a decimal has up to 38 digits, and no more decimals than digits", position,
                     "write decimal(38, 2)");
  }
  return ToProto(Type{.kind = TypeKind::kDecimal,
                      .scale = static_cast<uint8_t>(scale),
                      .precision = static_cast<uint8_t>(modifiers[0])});
}

absl::StatusOr<proto::Type> TextType(const std::vector<int64_t>& modifiers, bool padded, int position) {
  if (modifiers.empty()) {
    proto::Type type = ToProto(Type::String());
    type.set_precision(kBytesOfText);
    return type;
  }
  if (modifiers.size() > 1 || modifiers[0] < 1 || modifiers[0] > kLongestText) {
    return UserError(sqlstate::kBadParameter, absl::StrCat("a length goes from 1 to ", kLongestText),
                     position, "it counts characters, and each takes 4 bytes of a row");
  }
  const auto length = static_cast<uint32_t>(modifiers[0]);
  proto::Type type = ToProto(padded ? CharType(length) : Type::String(length));
  type.set_precision(kMostBytesOfCharacter * length);
  return type;
}

}  // namespace

absl::StatusOr<proto::Type> ColumnTypeOfName(const Node& type_name) {
  const int position = type_name.position();
  if (type_name.Has("arrayBounds")) return Refusal("arrays are not supported", position);
  NAM_RETURN_IF_ERROR(type_name.Only({"names", "typmods", "typemod"}));
  const std::vector<std::string> names = type_name.Names("names");
  if (names.empty() || names.size() > 2 || (names.size() == 2 && names[0] != "pg_catalog")) {
    return Refusal("type names with a schema are not supported", position);
  }
  const std::string& name = names.back();
  NAM_ASSIGN_OR_RETURN(const std::vector<int64_t> modifiers, Modifiers(type_name));
  if (name == "numeric" || name == "decimal") return DecimalType(modifiers, position);
  if (name == "varchar" || name == "bpchar") return TextType(modifiers, name == "bpchar", position);
  if (name == "text") return TextType({}, false, position);
  if (name == "bytea" && modifiers.empty()) {
    proto::Type type = ToProto(Type::Bytes());
    type.set_precision(kBytesOfText + partitioner::kLengthBytes);
    return type;
  }
  for (const PlainType& plain : kPlainTypes) {
    if (name == plain.name && modifiers.empty())
      return ToProto(Type{.kind = plain.kind, .precision = plain.precision});
  }
  std::string hint =
      "types are smallint, integer, bigint, decimal(p, s), double precision, real, date, time, timestamp, "
      "timestamptz, interval, boolean, char(n), varchar(n), text, uuid and bytea";
  if (name == "timestamp" || name == "timestamptz" || name == "time")
    hint = "times have microseconds: leave the precision out";
  if (name == "timetz") hint = "use time, which has no time zone, or timestamptz";
  return Refusal(absl::StrCat("type ", name, modifiers.empty() ? "" : "(…)", " is not supported"), position,
                 hint);
}

absl::StatusOr<std::optional<proto::Type>> SerialTypeOfName(const Node& type_name) {
  constexpr std::pair<std::string_view, uint8_t> kSerials[] = {
      {"smallserial", 2}, {"serial2", 2}, {"serial", 4}, {"serial4", 4}, {"bigserial", 8}, {"serial8", 8}};
  const std::vector<std::string> names = type_name.Names("names");
  for (const auto& [name, bytes] : kSerials) {
    if (names.size() != 1 || names[0] != name) continue;
    if (type_name.Has("arrayBounds")) return Refusal("arrays are not supported", type_name.position());
    NAM_RETURN_IF_ERROR(type_name.Only({"names", "typemod"}));
    return std::optional<proto::Type>(ToProto(Type{.kind = TypeKind::kInteger, .precision = bytes}));
  }
  return std::optional<proto::Type>();
}

}  // namespace nam::sql
