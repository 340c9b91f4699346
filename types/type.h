#pragma once

#include <cstdint>
#include <string>

namespace nam {

/// The kinds of SQL types. Catalogs and plans store these numbers: they must never change.
enum class TypeKind : uint8_t {
  kNull = 0,
  kBool = 1,
  kInteger = 2,
  kDecimal = 3,
  kDate = 4,
  kString = 5,
  kTimestamp = 6,
  kDouble = 7,
  kReal = 8,
  kTime = 9,
  kTimestampTz = 10,
  kInterval = 11,
  kUuid = 12,
  kBytes = 13,
  kNumeric = 14
};

/// The most digits of a decimal and of any computed number.
inline constexpr int kMaxDecimalDigits = 38;

/// A SQL type. Integers have 64 bits. A decimal is an integer of up to 38 digits divided by 10^scale. A date
/// counts days since 1970-01-01, a timestamp microseconds since then, without a time zone or, with one, since
/// that moment in UTC. A time counts microseconds of a day. An interval is months, days and microseconds
/// (types/interval.h). double precision and real are as in types/real.h. A uuid is a 128-bit number with its
/// highest bit flipped, so that signed numbers are ordered like its bytes. bytea is bytes. A numeric is a
/// number whose scale is its own, not the type's (types/numeric.h).
struct Type {
  TypeKind kind = TypeKind::kNull;
  uint8_t scale = 0;      // decimals
  uint8_t precision = 0;  // of columns: bytes of integers, digits of decimals; 0: widest, as in expressions
  bool blank_padded = false;  // strings: char(n), see plan/expression.h
  uint32_t length = 0;        // strings: maximum characters; 0 for text, kAnyLength for an unlimited varchar
  bool operator==(const Type&) const = default;

  static constexpr uint32_t kAnyLength = UINT32_MAX;

  static constexpr Type Null() { return {}; }
  static constexpr Type Bool() { return {.kind = TypeKind::kBool}; }
  static constexpr Type Integer() { return {.kind = TypeKind::kInteger}; }
  static constexpr Type Decimal(uint8_t scale) { return {.kind = TypeKind::kDecimal, .scale = scale}; }
  static constexpr Type Date() { return {.kind = TypeKind::kDate}; }
  static constexpr Type Timestamp() { return {.kind = TypeKind::kTimestamp}; }
  static constexpr Type Double() { return {.kind = TypeKind::kDouble}; }
  static constexpr Type Real() { return {.kind = TypeKind::kReal}; }
  static constexpr Type Time() { return {.kind = TypeKind::kTime}; }
  static constexpr Type TimestampTz() { return {.kind = TypeKind::kTimestampTz}; }
  static constexpr Type Uuid() { return {.kind = TypeKind::kUuid}; }
  static constexpr Type Bytes() { return {.kind = TypeKind::kBytes}; }
  static constexpr Type Numeric() { return {.kind = TypeKind::kNumeric}; }
  static constexpr Type Interval() { return {.kind = TypeKind::kInterval}; }
  static constexpr Type String(uint32_t length = 0) { return {.kind = TypeKind::kString, .length = length}; }
  /// True for exact numbers of a known scale: integer or decimal.
  bool numeric() const { return kind == TypeKind::kInteger || kind == TypeKind::kDecimal; }
  /// True for exact numbers: integer, decimal or numeric.
  bool exact() const { return numeric() || kind == TypeKind::kNumeric; }
  /// True for double precision and real.
  bool real() const { return kind == TypeKind::kDouble || kind == TypeKind::kReal; }
  /// True if a value's 128 bits are several numbers: equal values may have different bits (1 month and 30
  /// days, 1.0 and 1.00), and the bits are in no order.
  bool packed() const { return kind == TypeKind::kInterval || kind == TypeKind::kNumeric; }
  bool HasValues() const { return kind != TypeKind::kNull; }
};
static_assert(sizeof(Type) == 8);

/// The type's name for messages: `integer`, `decimal(2)`, `varchar(10)` …
std::string TypeName(const Type& type);

/// The memory form of a type's values. Code that processes many values switches over this, not over TypeKind.
enum class Physical : uint8_t { kTruth, kInt64, kInt128, kText };

/// The form that holds every value of the type. Decimals with known bounds may use fewer bits.
Physical PhysicalOf(const Type& type);

}  // namespace nam
