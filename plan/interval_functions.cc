#include <string>

#include "base/status_macros.h"
#include "plan/function_families.h"
#include "types/bytes.h"
#include "types/interval.h"
#include "types/sql_error.h"

/// The parts of intervals' groups, orders and aggregates: optimizer/packed_keys.h.
namespace nam::plan {
namespace {

/// A span has 73 bits and a sign.
constexpr size_t kNumberBytes = 16, kOrderBytes = 2 * kNumberBytes;

/// Encodes both numbers like a uuid's: their bytes sort like the numbers.
std::string OrderBytesOf(const Value& interval) {
  return BytesOfUuid(SpanOf(interval.interval())) + BytesOfUuid(interval.number);
}

absl::Status OutOfRange(int position) {
  return UserError(sqlstate::kDateOutOfRange, "interval out of range", position);
}

}  // namespace

absl::StatusOr<Value> ApplyToIntervals(const Expr& call, std::span<const Value> a) {
  const Function function = FunctionOf(call);
  if (function == F::kIntervalOfParts) {
    const absl::StatusOr<Interval> interval = MakeInterval(a[0].number, a[1].number, a[2].number);
    if (!interval.ok()) return OutOfRange(call.position);
    return Value::Span(*interval);
  }
  if (function == F::kIntervalOfOrder) {
    const std::string_view bytes = a[0].text;
    if (bytes.size() != kOrderBytes)
      return UserError(sqlstate::kBadParameter, "not the order of an interval", call.position);
    return Value{Type::Interval(), false, UuidOfBytes(bytes.substr(kNumberBytes)), {}};
  }
  const Interval interval = a[0].interval();
  switch (function) {
    case F::kIntervalSpan:
      return Value::Decimal(SpanOf(interval), 0);
    case F::kIntervalMonths:
      return Value::Integer(interval.months);
    case F::kIntervalDays:
      return Value::Integer(interval.days);
    case F::kIntervalTime:
      return Value::Integer(interval.us);
    default:
      return BytesValue(OrderBytesOf(a[0]));
  }
}

}  // namespace nam::plan
