#include <cmath>
#include <set>
#include <string>

#include "plan/expression.h"
#include "tests/execution/expression/random_columns.h"
#include "types/bytes.h"
#include "types/date.h"
#include "types/decimal.h"

/// Values of all types, and slots of them.
namespace nam::testing {
namespace {

__int128 RandomNumber(Random& random) {
  switch (Below(random, 8)) {
    case 0:
      return PowerOfTen(static_cast<int>(Below(random, 38))) * (Chance(random, 50) ? 1 : -1);
    case 1:
      return INT64_MAX - static_cast<int64_t>(Below(random, 3));
    case 2:
      return INT64_MIN + static_cast<int64_t>(Below(random, 3));
    case 3:
      return PowerOfTen(38) - 1;
    case 4:
      return static_cast<int64_t>(random());
    default:
      return static_cast<int64_t>(Below(random, 21)) - 10;
  }
}

}  // namespace

Value RandomValue(Random& random, const Type& type, bool far) {
  Value value = Value::Null(type);
  value.null = false;
  switch (type.kind) {
    case TypeKind::kBool:
      value.number = static_cast<int64_t>(Below(random, 2));
      break;
    case TypeKind::kDate:
      value.number = far ? kLeastDay + static_cast<int64_t>(Below(random, kGreatestDay - kLeastDay + 1))
                         : 9000 + static_cast<int64_t>(Below(random, 100));
      break;
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      value.number = (far ? kLeastDay + static_cast<int64_t>(Below(random, kGreatestDay - kLeastDay))
                          : static_cast<int64_t>(Below(random, 4)) - 2) *
                         kMicrosecondsPerDay +
                     static_cast<int64_t>(Below(random, 3));
      break;
    case TypeKind::kTime:
      value.number = far ? static_cast<int64_t>(Below(random, kMicrosecondsPerDay + 1))
                         : static_cast<int64_t>(Below(random, 25)) * 3'600'000'000;
      break;
    case TypeKind::kString:
      value.text = OneOf<std::string>(
          random, {"", "a", "ab", "ab c", "b", "b\xc3\xa9", "x%y", "12", "-3.5", "1999-02-28", "true",
                   "2001-09-09 01:46:40", "ASIA", "AMERICA", "longer than what fits in place", "z\xff"});
      if (far) value.text += std::to_string(Below(random, 300));
      if (!plan::IsChar(type) && type.length > 0 && Chance(random, 30)) value.text += "  ";
      break;
    case TypeKind::kDouble:
    case TypeKind::kReal: {
      const double x = OneOf<double>(random, {0, 1, -1, 0.5, 2.5, -3.75, 1e10, 1e-3, 100});
      const double y = OneOf<double>(random, {1e300, -1e300, 1e-300, INFINITY, -INFINITY, NAN, 3e38, 1e18});
      value = type.kind == TypeKind::kDouble ? Value::Double(far ? y : x) : Value::Real(far ? y : x);
      break;
    }
    case TypeKind::kInterval: {
      nam::Interval interval{static_cast<int32_t>(Below(random, 5)) - 1,
                             static_cast<int32_t>(Below(random, 40)) - 5,
                             static_cast<int64_t>(Below(random, 4)) * 21'600'000'000};
      if (far)
        interval = {static_cast<int32_t>(random()), static_cast<int32_t>(random()),
                    static_cast<int64_t>(random())};
      value = Value::Span(interval);
      break;
    }
    case TypeKind::kNumeric:
      value = Value::OfNumeric(
          FitNumeric(far ? RandomNumber(random) : static_cast<int64_t>(Below(random, 40)) - 5,
                     static_cast<int>(Below(random, far ? kMaxNumericScale + 1 : 3)))
              .value_or(Numeric()));
      break;
    case TypeKind::kUuid: {
      std::string bytes(16, static_cast<char>(0x7f + Below(random, 2)));
      bytes[15] = static_cast<char>(Below(random, 4));
      if (far) bytes[Below(random, 16)] = static_cast<char>(Below(random, 256));
      value.number = UuidOfBytes(bytes);
      break;
    }
    case TypeKind::kBytes:
      value.text =
          OneOf<std::string>(random, {"", "a", "b", std::string(1, '\0'), std::string(2, '\0'),
                                      std::string("a\0", 2), "\xff\xfe", "\x80 longer than in place"});
      if (far) value.text += static_cast<char>(Below(random, 256));
      break;
    default:
      value.number = far ? RandomNumber(random) : static_cast<int64_t>(Below(random, 40)) - 5;
  }
  return value;
}

std::vector<RandomSlot> RandomSlots(Random& random) {
  const std::vector<Type> types = {
      Type::Integer(),   Type::Integer(), Type::Integer(),  Type::Decimal(2),  Type::Decimal(2),
      Type::Decimal(11), Type::Date(),    Type::Date(),     Type::Timestamp(), Type::Bool(),
      Type::String(),    Type::String(),  Type::String(40), plan::CharType(6), plan::CharType(9),
      Type::Double(),    Type::Double(),  Type::Real(),     Type::Interval(),  Type::TimestampTz(),
      Type::Time(),      Type::Uuid(),    Type::Bytes(),    Type::Numeric(),   Type::Numeric()};
  std::vector<RandomSlot> slots;
  for (const Type& type : types) {
    RandomSlot& slot = slots.emplace_back();
    slot.slot.type = type;
    slot.slot.nullable = Chance(random, 60);
    const bool far = Chance(random, 40);
    const auto before = [](const Value& a, const Value& b) {
      return PhysicalOf(a.type) == Physical::kText ? a.text < b.text : a.number < b.number;
    };
    std::set<Value, decltype(before)> values(before);
    while (values.size() < 2) {
      for (uint64_t i = 0; i < (far ? 200 : 12); ++i) {
        Value value = RandomValue(random, type, far);
        if (plan::IsChar(type)) value.text = plan::WithoutBlanks(value.text);
        values.insert(std::move(value));
      }
    }
    slot.values.assign(values.begin(), values.end());
    const bool bounded = type.numeric() || type.kind == TypeKind::kDate ||
                         type.kind == TypeKind::kTimestamp || type.kind == TypeKind::kTimestampTz ||
                         type.kind == TypeKind::kTime;
    if (bounded && Chance(random, 70))
      slot.slot.bounds = {slot.values.front().number, slot.values.back().number, true};
  }
  return slots;
}

plan::Schema SchemaOf(const std::vector<RandomSlot>& slots) {
  plan::Schema schema;
  for (const RandomSlot& slot : slots) schema.push_back(slot.slot);
  return schema;
}

}  // namespace nam::testing
