// Aggregates over frames. Both ends of frames only move forward: values enter at one and leave at the other.
#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/aggregate_state.h"
#include "execution/aggregate/moments.h"
#include "execution/aggregate/real_moments.h"
#include "execution/window/functions.h"
#include "plan/function_families.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/text_bytes.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

/// Exact sums of 128-bit numbers, in any order of additions and removals: sums halves separately.
class SlidingSum {
 public:
  void Add(__int128 n) {
    upper_ += n >> 64;
    lower_ += static_cast<uint64_t>(n);
  }
  void Remove(__int128 n) {
    upper_ -= n >> 64;
    lower_ -= static_cast<uint64_t>(n);
  }
  /// nullopt if it does not fit.
  std::optional<__int128> sum() const {
    const __int128 upper = upper_ + (lower_ >> 64);
    if (upper < INT64_MIN || upper > INT64_MAX) return std::nullopt;
    return static_cast<__int128>(static_cast<unsigned __int128>(upper) << 64 | static_cast<uint64_t>(lower_));
  }

 private:
  __int128 upper_ = 0, lower_ = 0;
};

/// An aggregate over a moving frame: values enter, leave, and give a result. Write gets the frame.
class Aggregate {
 public:
  explicit Aggregate(const WindowRun& run) : run_(run), p_(run.partition) {}
  const WindowRun& run() const { return run_; }

 protected:
  uint32_t slot(size_t argument = 0) const { return run_.call.arguments[argument]; }
  bool IsNull(uint32_t i, size_t argument = 0) const { return p_.IsNull(i, slot(argument)); }
  __int128 Number(uint32_t i, size_t argument = 0) const { return p_.Number(i, slot(argument)); }
  void Null(uint32_t i) { run_.results.SetNull(run_.at + i); }
  void Put(uint32_t i, __int128 n) { run_.results.SetNumber(run_.at + i, n); }

  const WindowRun& run_;
  const Partition& p_;
};

/// Rows enter and leave each part of the frames separately, like frames of one part.
template <typename OfFrames>
absl::Status Slide(OfFrames&& aggregate) {
  const WindowRun& run = aggregate.run();
  FrameWalk walk(run.partition, run.call.frame);
  const size_t parts = walk.in_one_part() ? 1 : std::tuple_size_v<FrameWalk::Parts>;
  FrameWalk::Parts inside{};  // entered and not left
  return ForRows(run, [&](uint32_t i) -> absl::Status {
    const FrameWalk::Parts frame = walk.At(i);
    for (size_t part = 0; part < parts; ++part) {
      FrameWalk::Places& now = inside[part];
      NAM_CHECK(frame[part].start >= now.start && frame[part].end >= now.end, "frames move forward");
      // Rows that would enter and leave at once do neither.
      if (now.end < frame[part].start) {
        for (; now.start < now.end; ++now.start) aggregate.Leave(now.start, part);
        now = {frame[part].start, frame[part].start};
      }
      for (; now.end < frame[part].end; ++now.end) aggregate.Enter(now.end, part);
      for (; now.start < frame[part].start; ++now.start) aggregate.Leave(now.start, part);
    }
    return aggregate.Write(i, frame);
  });
}

class RowCount : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t, size_t) {}
  void Leave(uint32_t, size_t) {}
  absl::Status Write(uint32_t i, const FrameWalk::Parts& frame) {
    Put(i, int64_t{frame[0].size()} + frame[1].size() + frame[2].size());
    return absl::OkStatus();
  }
};

class Count : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i, size_t) { count_ += !IsNull(i); }
  void Leave(uint32_t i, size_t) { count_ -= !IsNull(i); }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    Put(i, count_);
    return absl::OkStatus();
  }

 private:
  int64_t count_ = 0;
};

class Sum : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i, size_t) {
    if (IsNull(i)) return;
    sum_.Add(Number(i));
    ++count_;
  }
  void Leave(uint32_t i, size_t) {
    if (IsNull(i)) return;
    sum_.Remove(Number(i));
    --count_;
  }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    if (count_ == 0) {
      Null(i);
      return absl::OkStatus();
    }
    const std::optional<__int128> sum = sum_.sum();
    if (!sum) return SumOutOfRange();
    if (run_.call.aggregate == AggregateFunction::kAverage) {
      NAM_ASSIGN_OR_RETURN(const __int128 average, AverageOf(*sum, count_, run_.schema[slot()].type.scale));
      Put(i, average);
      return absl::OkStatus();
    }
    if (!FitsDecimal(*sum)) return SumOutOfRange();
    Put(i, *sum);
    return absl::OkStatus();
  }

 private:
  SlidingSum sum_;
  int64_t count_ = 0;
};

/// Sums of floating point. Subtraction is inexact: if a value leaves, the sum starts anew.
class FrameReals : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i, size_t) { Add(i); }
  void Leave(uint32_t, size_t) { left_ = true; }
  absl::Status Write(uint32_t i, const FrameWalk::Parts& frame) {
    if (std::exchange(left_, false)) {
      sum_ = {};
      count_ = 0;
      for (const FrameWalk::Places& part : frame) {
        for (uint32_t p = part.start; p < part.end; ++p) Add(p);
      }
    }
    NAM_RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
    if (count_ == 0) {
      Null(i);
      return absl::OkStatus();
    }
    const bool average = run_.call.aggregate == AggregateFunction::kAverage;
    const double value = average ? sum_.total() / static_cast<double>(count_) : sum_.total();
    Put(i, OrderedBits(run_.call.type.kind == TypeKind::kReal ? static_cast<float>(value) : value));
    return absl::OkStatus();
  }

 private:
  void Add(uint32_t i) {
    if (IsNull(i)) return;
    status_.Update(sum_.Add(FromOrderedBits(static_cast<int64_t>(Number(i)))));
    ++count_;
  }
  RealSum sum_;
  int64_t count_ = 0;
  bool left_ = false;
  absl::Status status_;
};

/// The arguments of functions of one or two.
class Pairs : public Aggregate {
 protected:
  using Aggregate::Aggregate;
  bool two() const { return run_.call.arguments.size() > 1; }
  bool Counts(uint32_t i) const { return !IsNull(i) && !(two() && IsNull(i, 1)); }
  __int128 Second(uint32_t i) const { return two() ? Number(i, 1) : 0; }
  void PutReal(uint32_t i, std::optional<double> value) {
    value.has_value() ? Put(i, OrderedBits(*value)) : Null(i);
  }
};

/// Variances, covariances and similar functions.
class FrameMoments : public Pairs {
 public:
  using Pairs::Pairs;
  void Enter(uint32_t i, size_t) {
    if (Counts(i)) moments_.Add(Number(i), Second(i));
  }
  void Leave(uint32_t i, size_t) {
    if (Counts(i)) moments_.Remove(Number(i), Second(i));
  }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    const int scale = run_.schema[slot()].type.scale;
    if (two()) {
      PutReal(i, moments_.ResultOfPairs(run_.call.aggregate, scale, run_.schema[slot(1)].type.scale));
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(const std::optional<__int128> value, moments_.Result(run_.call.aggregate, scale));
    value ? Put(i, *value) : Null(i);
    return absl::OkStatus();
  }

 private:
  Moments moments_;
};

/// The same for floating point, which starts anew as its sums do.
class FrameRealMoments : public Pairs {
 public:
  using Pairs::Pairs;
  void Enter(uint32_t i, size_t) { Add(i); }
  void Leave(uint32_t, size_t) { left_ = true; }
  absl::Status Write(uint32_t i, const FrameWalk::Parts& frame) {
    if (std::exchange(left_, false)) {
      moments_ = {};
      for (const FrameWalk::Places& part : frame) {
        for (uint32_t p = part.start; p < part.end; ++p) Add(p);
      }
    }
    NAM_RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
    PutReal(i, moments_.Result(run_.call.aggregate));
    return absl::OkStatus();
  }

 private:
  void Add(uint32_t i) {
    if (!Counts(i)) return;
    const double b = two() ? FromOrderedBits(static_cast<int64_t>(Second(i))) : 0;
    status_.Update(moments_.Add(FromOrderedBits(static_cast<int64_t>(Number(i))), b));
  }
  RealMoments moments_;
  bool left_ = false;
  absl::Status status_;
};

class Truths : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i, size_t) { Move(i, 1); }
  void Leave(uint32_t i, size_t) { Move(i, -1); }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    const bool all = run_.call.aggregate == AggregateFunction::kBoolAnd;
    const uint8_t truth = counts_[0] + counts_[1] == 0 ? kUnknown : all ? counts_[0] == 0 : counts_[1] > 0;
    run_.results.SetTruth(run_.at + i, truth);
    return absl::OkStatus();
  }

 private:
  void Move(uint32_t i, int64_t by) {
    if (!IsNull(i)) counts_[static_cast<size_t>(Number(i) != 0)] += by;
  }
  int64_t counts_[2] = {};
};

/// Counts for each bit how many of the frame's numbers have it.
class Bits : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i, size_t) { Move(i, 1); }
  void Leave(uint32_t i, size_t) { Move(i, -1); }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    if (count_ == 0) {
      Null(i);
      return absl::OkStatus();
    }
    uint64_t bits = 0;
    for (size_t b = 0; b < with_.size(); ++b) {
      const bool set = run_.call.aggregate == AggregateFunction::kBitAnd  ? with_[b] == count_
                       : run_.call.aggregate == AggregateFunction::kBitOr ? with_[b] > 0
                                                                          : with_[b] % 2 != 0;
      bits |= uint64_t{set} << b;
    }
    Put(i, static_cast<int64_t>(bits));
    return absl::OkStatus();
  }

 private:
  void Move(uint32_t i, int64_t by) {
    if (IsNull(i)) return;
    count_ += by;
    const auto bits = static_cast<uint64_t>(Number(i));
    for (size_t b = 0; b < with_.size(); ++b) with_[b] += (bits >> b & 1) != 0 ? by : 0;
  }
  std::array<int64_t, 64> with_ = {};
  int64_t count_ = 0;
};

/// The rows of a part of the frame that no later row in it beats, best first: each enters and leaves once.
class Best : public Aggregate {
 public:
  /// `queue` has as many places for each part as the partition has rows.
  Best(const WindowRun& run, BudgetArray<uint32_t>& queue)
      : Aggregate(run), order_(run.partition.window().rows.table(), Key(run)), queue_(queue) {
    for (size_t part = 0; part < parts_.size(); ++part)
      parts_[part] = {part * run.partition.size(), part * run.partition.size()};
  }
  void Enter(uint32_t i, size_t part) {
    if (IsNull(i)) return;
    auto& [head, tail] = parts_[part];
    while (head < tail && !order_.Before({0, p_.row(queue_[tail - 1])}, {0, p_.row(i)})) --tail;
    queue_[tail++] = i;
  }
  void Leave(uint32_t i, size_t part) {
    auto& [head, tail] = parts_[part];
    head += head < tail && queue_[head] == i;
  }
  absl::Status Write(uint32_t i, const FrameWalk::Parts&) {
    uint32_t best = kNullRow;
    for (const auto& [head, tail] : parts_) {
      if (head == tail) continue;
      const uint32_t row = p_.row(queue_[head]);
      if (best == kNullRow || order_.Before({0, row}, {0, best})) best = row;
    }
    run_.results.SetRow(run_.at + i, best);
    return absl::OkStatus();
  }

 private:
  struct Part {
    uint64_t head = 0, tail = 0;
  };
  static std::array<OrderSlot, 1> Key(const WindowRun& run) {
    return {OrderSlot{run.call.arguments[0], run.call.aggregate == AggregateFunction::kMax, false}};
  }
  const RowOrder order_;
  BudgetArray<uint32_t>& queue_;  // places: [head, tail) of each part
  std::array<Part, std::tuple_size_v<FrameWalk::Parts>> parts_;
};

/// All texts of the partition, each after its delimiter: a frame's result is a run of them; a frame in parts
/// is copied together.
class Texts {
 public:
  explicit Texts(const WindowRun& run)
      : run_(run),
        begins_(run.context.budget()),
        ends_(run.context.budget()),
        present_(run.context.budget()) {}

  absl::Status Run() {
    NAM_RETURN_IF_ERROR(Collect());
    FrameWalk walk(run_.partition, run_.call.frame);
    FrameWalk::Parts inside{};  // the frame's parts as places in present_
    return ForRows(run_, [&](uint32_t i) -> absl::Status {
      const FrameWalk::Parts frame = walk.At(i);
      for (size_t part = 0; part < inside.size(); ++part) {
        auto& [first, end] = inside[part];
        while (first < count_ && present_[first] < frame[part].start) ++first;
        while (end < count_ && present_[end] < frame[part].end) ++end;
      }
      return Write(i, inside);
    });
  }

 private:
  absl::Status Collect() {
    const Partition& p = run_.partition;
    const uint32_t value = run_.call.arguments[0], delimiter = run_.call.arguments[1];
    NAM_RETURN_IF_ERROR(begins_.Resize(p.size()));
    NAM_RETURN_IF_ERROR(ends_.Resize(p.size()));
    NAM_RETURN_IF_ERROR(present_.Resize(p.size()));
    return ForRows(run_, [&](uint32_t i) -> absl::Status {
      if (p.IsNull(i, value)) return absl::OkStatus();
      if (!p.IsNull(i, delimiter)) NAM_RETURN_IF_ERROR(run_.results.AddText(p.Text(i, delimiter)));
      begins_[count_] = run_.results.text_bytes();
      NAM_RETURN_IF_ERROR(run_.results.AddText(p.Text(i, value)));
      ends_[count_] = run_.results.text_bytes();
      present_[count_++] = i;
      return absl::OkStatus();
    });
  }

  absl::Status Write(uint32_t i, const FrameWalk::Parts& inside) {
    const auto used = std::count_if(inside.begin(), inside.end(),
                                    [](const FrameWalk::Places& part) { return part.start < part.end; });
    if (used == 0) {
      run_.results.SetNull(run_.at + i);
      return absl::OkStatus();
    }
    const uint64_t copied = run_.results.text_bytes();
    bool some = false;
    for (const auto& [first, end] : inside) {
      if (first >= end) continue;
      if (used == 1) {
        if (ends_[end - 1] - begins_[first] > kTextBytesMax) return plan::TextTooLong(-1);
        run_.results.SetText(run_.at + i, begins_[first], ends_[end - 1]);
        return absl::OkStatus();
      }
      // After another part the first text's delimiter counts: it begins where the text before it ends.
      NAM_RETURN_IF_ERROR(run_.results.RepeatText(some ? ends_[first - 1] : begins_[first], ends_[end - 1]));
      some = true;
      if (run_.results.text_bytes() - copied > kTextBytesMax) return plan::TextTooLong(-1);
    }
    run_.results.SetText(run_.at + i, copied, run_.results.text_bytes());
    return absl::OkStatus();
  }

  const WindowRun& run_;
  BudgetArray<uint64_t> begins_, ends_;
  BudgetArray<uint32_t> present_;  // places with a text
  uint32_t count_ = 0;
};

}  // namespace

absl::Status RunWindowAggregate(const WindowRun& run) {
  switch (run.call.aggregate) {
    case AggregateFunction::kCountRows:
      return Slide(RowCount(run));
    case AggregateFunction::kCount:
      return Slide(Count(run));
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
      if (run.schema[run.call.arguments[0]].type.real()) return Slide(FrameReals(run));
      return Slide(Sum(run));
    case AggregateFunction::kMin:
    case AggregateFunction::kMax: {
      BudgetArray<uint32_t> queue(run.context.budget());
      const bool parts = run.call.frame.exclusion != plan::WindowFrame::Exclusion::kNone;
      NAM_RETURN_IF_ERROR(
          queue.Resize(uint64_t{run.partition.size()} * (parts ? std::tuple_size_v<FrameWalk::Parts> : 1)));
      return Slide(Best(run, queue));
    }
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
      return Slide(Truths(run));
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      return Slide(Bits(run));
    case AggregateFunction::kStringAggregate:
      return Texts(run).Run();
    case AggregateFunction::kCountDistinct:
      break;
    default:
      if (run.schema[run.call.arguments[0]].type.real()) return Slide(FrameRealMoments(run));
      return Slide(FrameMoments(run));
  }
  return absl::InvalidArgumentError("not a plan: a window over distinct values");
}

}  // namespace nam::execution
