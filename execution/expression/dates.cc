#include <optional>
#include <utility>

#include "execution/expression/operands.h"
#include "plan/function.h"
#include "types/date.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Bounds;

constexpr Bounds kTimestamps{__int128{kLeastDay} * kMicrosecondsPerDay,
                             __int128{kGreatestDay + 1} * kMicrosecondsPerDay - 1, true};

int64_t DayOf(int64_t us) {
  return us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
}

template <typename Function>
NodePtr Try(Function function, absl::Status error, NodePtr a) {
  return MakeMapNumbers<int64_t, int64_t>(function, kTimestamps, std::move(a), FailsWith(std::move(error)));
}

template <typename Function>
NodePtr Map(Function function, const Bounds& bounds, NodePtr a) {
  return MakeMapNumbers<int64_t, int64_t>(function, bounds, std::move(a));
}

}  // namespace

NodePtr MakeExtract(plan::Op op, NodePtr date) {
  switch (op) {
    case plan::Op::kExtractYear: {
      const Bounds of = date->bounds();
      Bounds years{1, 9999, true};
      if (of.known)
        years = {CivilFromDays(static_cast<int64_t>(of.low)).year,
                 CivilFromDays(static_cast<int64_t>(of.high)).year, true};
      return Map([](int64_t day) { return int64_t{CivilFromDays(day).year}; }, years, std::move(date));
    }
    case plan::Op::kExtractMonth:
      return Map([](int64_t day) { return int64_t{CivilFromDays(day).month}; }, {1, 12, true},
                 std::move(date));
    default:
      return Map([](int64_t day) { return int64_t{CivilFromDays(day).day}; }, {1, 31, true}, std::move(date));
  }
}

NodePtr MakeTimeField(plan::TimeField field, bool date, NodePtr time) {
  const int64_t unit = date ? kMicrosecondsPerDay : 1;
  return Map([field, unit](int64_t n) { return plan::FieldOfTimestamp(field, n * unit); },
             {0, kGreatestDay, true}, std::move(time));
}

NodePtr MakeTruncateTimestamp(plan::TimeField field, int position, NodePtr timestamp) {
  return Try([field](int64_t us) { return plan::TruncateTimestamp(field, us); }, DateOutOfRange(position),
             std::move(timestamp));
}

NodePtr MakeMoveTimestamp(const Interval& by, int sign, int position, NodePtr timestamp) {
  const auto move = [by, sign](int64_t us) -> std::optional<int64_t> {
    const absl::StatusOr<int64_t> moved = AddToTimestamp(us, by, sign);
    return moved.ok() ? std::optional(*moved) : std::nullopt;
  };
  return Try(move, plan::TimestampOutOfRange(position), std::move(timestamp));
}

NodePtr MakeDateOfTimestamp(NodePtr timestamp) {
  const Bounds of = timestamp->bounds();
  Bounds days{kLeastDay, kGreatestDay, true};
  if (of.known) days = {DayOf(static_cast<int64_t>(of.low)), DayOf(static_cast<int64_t>(of.high)), true};
  return Map([](int64_t us) { return DayOf(us); }, days, std::move(timestamp));
}

NodePtr MakeTimestampOfDate(NodePtr date) {
  Bounds us = date->bounds();
  us.low *= kMicrosecondsPerDay;
  us.high *= kMicrosecondsPerDay;
  return Map(
      [](int64_t day) { return static_cast<int64_t>(static_cast<uint64_t>(day) * kMicrosecondsPerDay); }, us,
      std::move(date));
}

}  // namespace nam::execution
