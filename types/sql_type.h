#pragma once

#include <cstdint>
#include <string>

#include "types/type.h"

namespace nam {

/// PostgreSQL's type of an expression or a column. It decides which operator a statement means, and is what
/// programs are told. `Type` says how the engine holds the values: sum of bigint is numeric to SQL, and a
/// whole number to the engine; integer and bigint differ to SQL alone.
struct SqlType {
  uint32_t oid = 0;       // pg_type.oid; 0: undeclared
  int32_t modifier = -1;  // pg_attribute.atttypmod; -1: none
  bool operator==(const SqlType&) const = default;

  static constexpr SqlType Bool() { return {16}; }
  static constexpr SqlType Bytes() { return {17}; }
  static constexpr SqlType BigInt() { return {20}; }
  static constexpr SqlType SmallInt() { return {21}; }
  static constexpr SqlType Integer() { return {23}; }
  static constexpr SqlType Text() { return {25}; }
  static constexpr SqlType Real() { return {700}; }
  static constexpr SqlType Double() { return {701}; }
  static constexpr SqlType Unknown() { return {705}; }
  static constexpr SqlType Date() { return {1082}; }
  static constexpr SqlType Time() { return {1083}; }
  static constexpr SqlType Timestamp() { return {1114}; }
  static constexpr SqlType TimestampTz() { return {1184}; }
  static constexpr SqlType Interval() { return {1186}; }
  static constexpr SqlType Numeric() { return {1700}; }
  static constexpr SqlType Numeric(int digits, int scale) { return {1700, ((digits << 16) | scale) + 4}; }
  static constexpr SqlType Char(uint32_t length) { return {1042, Modified(length)}; }
  static constexpr SqlType Varchar(uint32_t length) { return {1043, Modified(length)}; }
  static constexpr SqlType TypeOfTypes() { return {2206}; }
  static constexpr SqlType Uuid() { return {2950}; }

  constexpr bool whole() const {
    return oid == BigInt().oid || oid == SmallInt().oid || oid == Integer().oid;
  }
  constexpr bool numeric() const { return oid == Numeric().oid; }
  /// Of numeric(digits, scale); 0 digits: of any.
  constexpr int digits() const { return modifier < 0 ? 0 : (modifier - 4) >> 16; }
  constexpr int scale() const { return modifier < 0 ? 0 : (modifier - 4) & 0xffff; }

 private:
  static constexpr int32_t Modified(uint32_t length) {
    return length == 0 || length == Type::kAnyLength ? -1 : static_cast<int32_t>(length) + 4;
  }
};

/// The type of a column whose values the engine holds so: its `precision` tells the integers apart, and the
/// digits of a decimal. Of an expression: integer for whole numbers.
SqlType SqlTypeOf(const Type& type);

/// The name that pg_typeof shows: without the modifier.
std::string SqlTypeName(SqlType type);

}  // namespace nam
