#include <optional>
#include <utility>

#include "execution/expression/node.h"
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

/// Maps 64-bit numbers, in one loop.
template <typename Function>
class Mapped final : public Node {
 public:
  Mapped(Function function, const Bounds& bounds, NodePtr a)
      : Node(Physical::kInt64, bounds, Children(std::move(a))), function_(function) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    ForEach(rows, [to = out.narrow, from = a->narrow, function = function_](uint32_t p) {
      to[p] = function(from[p]);
    });
    return &out;
  }

 private:
  const Function function_;
};

/// Maps timestamps, with errors.
template <typename Function>
class Tried final : public Node {
 public:
  Tried(Function function, absl::Status error, NodePtr a)
      : Node(Physical::kInt64, kTimestamps, Children(std::move(a))),
        function_(function),
        error_(std::move(error)) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    bool wrong = false;
    ForEach(rows, [&, to = out.narrow, from = a->narrow](uint32_t p) {
      if (out.null(p)) {
        to[p] = 0;
        return;
      }
      const std::optional<int64_t> result = function_(from[p]);
      wrong |= !result.has_value();
      to[p] = result.value_or(0);
    });
    return wrong ? FrameAccess::Fail(frame, error_) : &out;
  }

 private:
  const Function function_;
  const absl::Status error_;
};

template <typename Function>
NodePtr Try(Function function, absl::Status error, NodePtr a) {
  return std::make_unique<Tried<Function>>(function, std::move(error), std::move(a));
}

template <typename Function>
NodePtr Map(Function function, const Bounds& bounds, NodePtr a) {
  return std::make_unique<Mapped<Function>>(function, bounds, std::move(a));
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
