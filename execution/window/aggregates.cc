// Aggregates over frames. Both ends of frames only move forward: values enter at one and leave at the other.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/aggregate_state.h"
#include "execution/aggregate/moments.h"
#include "execution/aggregate/real_moments.h"
#include "execution/window/functions.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

/// Sums of numbers of 128 bits, exact whatever enters and leaves in between: halves are summed apart.
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
  /// Nothing if it does not fit.
  std::optional<__int128> sum() const {
    const __int128 upper = upper_ + (lower_ >> 64);
    if (upper < INT64_MIN || upper > INT64_MAX) return std::nullopt;
    return static_cast<__int128>(static_cast<unsigned __int128>(upper) << 64 | static_cast<uint64_t>(lower_));
  }

 private:
  __int128 upper_ = 0, lower_ = 0;
};

/// What enters and leaves a frame, and what is said of it. Each aggregate's Write gets the frame.
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

template <typename OfFrames>
absl::Status Slide(OfFrames&& aggregate) {
  const WindowRun& run = aggregate.run();
  FrameWalk walk(run.partition, run.call.frame);
  uint32_t first = 0, end = 0;  // that have entered and not left
  return ForRows(run, [&](uint32_t i) -> absl::Status {
    const FrameWalk::Places frame = walk.At(i);
    NAM_CHECK(frame.start >= first && frame.end >= end, "frames move forward");
    for (; end < frame.end; ++end) aggregate.Enter(end);
    for (; first < frame.start; ++first) aggregate.Leave(first);
    return aggregate.Write(i, frame);
  });
}

class RowCount : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t) {}
  void Leave(uint32_t) {}
  absl::Status Write(uint32_t i, const FrameWalk::Places& frame) {
    Put(i, frame.end - frame.start);
    return absl::OkStatus();
  }
};

class Count : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i) { count_ += !IsNull(i); }
  void Leave(uint32_t i) { count_ -= !IsNull(i); }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
    Put(i, count_);
    return absl::OkStatus();
  }

 private:
  int64_t count_ = 0;
};

class Sum : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i) {
    if (IsNull(i)) return;
    sum_.Add(Number(i));
    ++count_;
  }
  void Leave(uint32_t i) {
    if (IsNull(i)) return;
    sum_.Remove(Number(i));
    --count_;
  }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
    if (count_ == 0) {
      Null(i);
      return absl::OkStatus();
    }
    const std::optional<__int128> sum = sum_.sum();
    if (!sum) return SumOutOfRange();
    if (run_.call.aggregate == AggregateFunction::kAverage) {
      NAM_ASSIGN_OR_RETURN(const __int128 average,
                           AverageOf(*sum, count_, run_.schema[slot()].type.scale, run_.call.type));
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

/// Floating point. What left a frame cannot be taken off again: the sum starts anew.
class FrameReals : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i) { Add(i); }
  void Leave(uint32_t) { left_ = true; }
  absl::Status Write(uint32_t i, const FrameWalk::Places& frame) {
    if (std::exchange(left_, false)) {
      sum_ = {};
      count_ = 0;
      for (uint32_t p = frame.start; p < frame.end; ++p) Add(p);
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

/// What functions of one or two arguments are over.
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

/// Variances, covariances and what is like them.
class FrameMoments : public Pairs {
 public:
  using Pairs::Pairs;
  void Enter(uint32_t i) {
    if (Counts(i)) moments_.Add(Number(i), Second(i));
  }
  void Leave(uint32_t i) {
    if (Counts(i)) moments_.Remove(Number(i), Second(i));
  }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
    const int scale = run_.schema[slot()].type.scale;
    if (two()) {
      PutReal(i, moments_.ResultOfPairs(run_.call.aggregate, scale, run_.schema[slot(1)].type.scale));
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(const std::optional<__int128> value,
                         moments_.Result(run_.call.aggregate, scale, run_.call.type.scale));
    value ? Put(i, *value) : Null(i);
    return absl::OkStatus();
  }

 private:
  Moments moments_;
};

/// The same of floating point, which starts anew as sums of it do.
class FrameRealMoments : public Pairs {
 public:
  using Pairs::Pairs;
  void Enter(uint32_t i) { Add(i); }
  void Leave(uint32_t) { left_ = true; }
  absl::Status Write(uint32_t i, const FrameWalk::Places& frame) {
    if (std::exchange(left_, false)) {
      moments_ = {};
      for (uint32_t p = frame.start; p < frame.end; ++p) Add(p);
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
  void Enter(uint32_t i) { Move(i, 1); }
  void Leave(uint32_t i) { Move(i, -1); }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
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

/// How many of the frame's numbers have each bit.
class Bits : public Aggregate {
 public:
  using Aggregate::Aggregate;
  void Enter(uint32_t i) { Move(i, 1); }
  void Leave(uint32_t i) { Move(i, -1); }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
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

/// The rows of the frame that none behind them in it is better than, best first: each enters and leaves once.
class Best : public Aggregate {
 public:
  Best(const WindowRun& run, BudgetArray<uint32_t>& queue)
      : Aggregate(run), order_(run.partition.window().rows.table(), Key(run)), queue_(queue) {}
  void Enter(uint32_t i) {
    if (IsNull(i)) return;
    while (head_ < tail_ && !order_.Before({0, p_.row(queue_[tail_ - 1])}, {0, p_.row(i)})) --tail_;
    queue_[tail_++] = i;
  }
  void Leave(uint32_t i) { head_ += head_ < tail_ && queue_[head_] == i; }
  absl::Status Write(uint32_t i, const FrameWalk::Places&) {
    run_.results.SetRow(run_.at + i, head_ < tail_ ? p_.row(queue_[head_]) : kNullRow);
    return absl::OkStatus();
  }

 private:
  static std::array<OrderSlot, 1> Key(const WindowRun& run) {
    return {OrderSlot{run.call.arguments[0], run.call.aggregate == AggregateFunction::kMax, false}};
  }
  const RowOrder order_;
  BudgetArray<uint32_t>& queue_;  // places: [head_, tail_)
  uint32_t head_ = 0, tail_ = 0;
};

/// All texts of the partition one behind the other, each behind its delimiter: that of a frame is a run of
/// them.
absl::Status Texts(const WindowRun& run) {
  const Partition& p = run.partition;
  MemoryBudget& budget = run.context.budget();
  const uint32_t value = run.call.arguments[0], delimiter = run.call.arguments[1];
  BudgetArray<uint64_t> begins(budget), ends(budget);
  BudgetArray<uint32_t> present(budget);  // places with a text
  NAM_RETURN_IF_ERROR(begins.Resize(p.size()));
  NAM_RETURN_IF_ERROR(ends.Resize(p.size()));
  NAM_RETURN_IF_ERROR(present.Resize(p.size()));
  uint32_t count = 0;
  NAM_RETURN_IF_ERROR(ForRows(run, [&](uint32_t i) -> absl::Status {
    if (p.IsNull(i, value)) return absl::OkStatus();
    if (!p.IsNull(i, delimiter)) NAM_RETURN_IF_ERROR(run.results.AddText(p.Text(i, delimiter)));
    begins[count] = run.results.text_bytes();
    NAM_RETURN_IF_ERROR(run.results.AddText(p.Text(i, value)));
    ends[count] = run.results.text_bytes();
    present[count++] = i;
    return absl::OkStatus();
  }));
  FrameWalk walk(p, run.call.frame);
  uint32_t first = 0, end = 0;  // of the present: those of the frame
  return ForRows(run, [&](uint32_t i) {
    const FrameWalk::Places frame = walk.At(i);
    while (first < count && present[first] < frame.start) ++first;
    while (end < count && present[end] < frame.end) ++end;
    if (first < end) {
      run.results.SetText(run.at + i, begins[first], ends[end - 1]);
    } else {
      run.results.SetNull(run.at + i);
    }
    return absl::OkStatus();
  });
}

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
      NAM_RETURN_IF_ERROR(queue.Resize(run.partition.size()));
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
      return Texts(run);
    case AggregateFunction::kCountDistinct:
      break;
    default:
      if (run.schema[run.call.arguments[0]].type.real()) return Slide(FrameRealMoments(run));
      return Slide(FrameMoments(run));
  }
  return absl::InvalidArgumentError("not a plan: a window over distinct values");
}

}  // namespace nam::execution
