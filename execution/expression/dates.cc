#include <utility>

#include "execution/expression/node.h"
#include "types/date.h"

namespace nam::execution {
namespace {

using plan::Bounds;

int64_t DayOf(int64_t us) {
  return us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
}

/// A number of 64 bits of another, in one loop.
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
