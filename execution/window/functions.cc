#include "execution/window/functions.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "plan/work_cost.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;
using plan::WindowFunction;

absl::Status RowNumber(const WindowRun& run) {
  return ForRows(run, [&](uint32_t i) {
    run.results.SetNumber(run.at + i, uint64_t{i} + 1);
    return absl::OkStatus();
  });
}

/// The place of the row's first peer; dense: its group's place among the groups.
absl::Status Rank(const WindowRun& run, bool dense) {
  return ForRows(run, [&](uint32_t i) {
    const uint32_t group = run.partition.group_of(i);
    run.results.SetNumber(run.at + i, uint64_t{dense ? group : run.partition.group_start(group)} + 1);
    return absl::OkStatus();
  });
}

int64_t ShareOf(uint64_t part, uint64_t whole) {
  return OrderedBits(static_cast<double>(part) / static_cast<double>(whole));
}

absl::Status PercentRank(const WindowRun& run) {
  const Partition& p = run.partition;
  return ForRows(run, [&](uint32_t i) {
    const uint32_t before = p.group_start(p.group_of(i));
    run.results.SetNumber(run.at + i, ShareOf(before, std::max(p.size(), 2u) - 1));
    return absl::OkStatus();
  });
}

absl::Status CumeDist(const WindowRun& run) {
  const Partition& p = run.partition;
  return ForRows(run, [&](uint32_t i) {
    run.results.SetNumber(run.at + i, ShareOf(p.group_end(p.group_of(i)), p.size()));
    return absl::OkStatus();
  });
}

/// The first buckets have a row more than the others.
absl::Status Ntile(const WindowRun& run) {
  const Partition& p = run.partition;
  const uint32_t slot = run.call.arguments[0];
  if (p.IsNull(0, slot)) {
    return ForRows(run, [&](uint32_t i) {
      run.results.SetNull(run.at + i);
      return absl::OkStatus();
    });
  }
  const __int128 wanted = p.Number(0, slot);
  if (wanted <= 0)
    return UserError(sqlstate::kBadNtileArgument, "argument of ntile must be greater than zero", -1);
  const auto buckets = static_cast<uint64_t>(std::min<__int128>(wanted, p.size()));
  const uint64_t rows = p.size() / buckets, larger = p.size() % buckets;
  return ForRows(run, [&](uint32_t i) {
    const uint64_t in_larger = larger * (rows + 1);
    run.results.SetNumber(run.at + i, 1 + (i < in_larger ? i / (rows + 1) : larger + (i - in_larger) / rows));
    return absl::OkStatus();
  });
}

/// Copies a value of the rows as a result.
void CopyValue(const WindowRun& run, uint32_t i, uint32_t slot, uint64_t at) {
  const Partition& p = run.partition;
  const bool truth = run.results.form() == WindowResults::Form::kTruth;
  if (p.IsNull(i, slot)) {
    truth ? run.results.SetTruth(at, kUnknown) : run.results.SetNull(at);
  } else if (run.results.form() == WindowResults::Form::kViews) {
    run.results.SetView(at, p.Text(i, slot));
  } else if (truth) {
    run.results.SetTruth(at, static_cast<uint8_t>(p.Number(i, slot)));
  } else {
    run.results.SetNumber(at, p.Number(i, slot));
  }
}

/// The row at this distance from row i; nullopt if there is none.
std::optional<uint32_t> NeighbourOf(const WindowRun& run, uint32_t i, __int128 distance) {
  const __int128 there = run.call.function == WindowFunction::kLag ? i - distance : i + distance;
  if (there < 0 || there >= run.partition.size()) return std::nullopt;
  return static_cast<uint32_t>(there);
}

absl::Status Neighbour(const WindowRun& run) {
  const Partition& p = run.partition;
  const std::vector<uint32_t>& slots = run.call.arguments;
  const bool rows = run.results.form() == WindowResults::Form::kRow;
  return ForRows(run, [&](uint32_t i) {
    const uint64_t at = run.at + i;
    if (slots.size() > 1 && p.IsNull(i, slots[1])) {
      if (rows) {
        run.results.SetRow(at, kNullRow);
      } else if (run.results.form() == WindowResults::Form::kTruth) {
        run.results.SetTruth(at, kUnknown);
      } else {
        run.results.SetNull(at);
      }
      return absl::OkStatus();
    }
    const std::optional<uint32_t> there = NeighbourOf(run, i, slots.size() > 1 ? p.Number(i, slots[1]) : 1);
    if (rows) {
      run.results.SetRow(at, there ? p.row(*there) : kNullRow);
    } else {
      CopyValue(run, there.value_or(i), there ? slots[0] : slots[2], at);
    }
    return absl::OkStatus();
  });
}

/// The n-th row of the frame, counted from 0; nullopt if it has fewer.
std::optional<uint32_t> RowOfFrame(const FrameWalk::Parts& frame, __int128 n) {
  for (const FrameWalk::Places& part : frame) {
    if (n < part.size()) return part.start + static_cast<uint32_t>(n);
    n -= part.size();
  }
  return std::nullopt;
}

uint64_t SizeOf(const FrameWalk::Parts& frame) {
  return uint64_t{frame[0].size()} + frame[1].size() + frame[2].size();
}

absl::Status FrameValue(const WindowRun& run) {
  const Partition& p = run.partition;
  FrameWalk walk(p, run.call.frame);
  return ForRows(run, [&](uint32_t i) -> absl::Status {
    const FrameWalk::Parts frame = walk.At(i);
    std::optional<uint32_t> place;
    if (run.call.function == WindowFunction::kNthValue) {
      const uint32_t slot = run.call.arguments[1];
      if (!p.IsNull(i, slot)) {
        const __int128 n = p.Number(i, slot);
        if (n <= 0)
          return UserError(sqlstate::kBadNthValueArgument, "argument of nth_value must be greater than zero",
                           -1);
        place = RowOfFrame(frame, n - 1);
      }
    } else if (const uint64_t size = SizeOf(frame); size > 0) {
      place = RowOfFrame(frame, run.call.function == WindowFunction::kFirstValue ? 0 : size - 1);
    }
    run.results.SetRow(run.at + i, place ? p.row(*place) : kNullRow);
    return absl::OkStatus();
  });
}

WindowResults::Form FormOfValues(const Type& type) {
  switch (PhysicalOf(type)) {
    case Physical::kTruth:
      return WindowResults::Form::kTruth;
    case Physical::kText:
      return WindowResults::Form::kViews;
    default:
      return WindowResults::Form::kWide;
  }
}

WindowResults::Form FormOfAggregate(const plan::WindowCall& call) {
  switch (call.aggregate) {
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return WindowResults::Form::kRow;
    case AggregateFunction::kStringAggregate:
      return WindowResults::Form::kText;
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      return WindowResults::Form::kNarrow;
    default:
      return FormOfValues(call.type);
  }
}

}  // namespace

WindowResults::Form FormOf(const plan::WindowCall& call) {
  switch (call.function) {
    case WindowFunction::kAggregate:
      return FormOfAggregate(call);
    case WindowFunction::kLag:
    case WindowFunction::kLead:
      return call.arguments.size() > 2 ? FormOfValues(call.type) : WindowResults::Form::kRow;
    case WindowFunction::kFirstValue:
    case WindowFunction::kLastValue:
    case WindowFunction::kNthValue:
      return WindowResults::Form::kRow;
    case WindowFunction::kPercentRank:
    case WindowFunction::kCumeDist:
      return WindowResults::Form::kWide;
    default:
      return WindowResults::Form::kNarrow;
  }
}

absl::Status RunCall(const WindowRun& run) {
  run.context.Charge(run.partition.size(), plan::work_cost::kSinkRowPs);
  switch (run.call.function) {
    case WindowFunction::kAggregate:
      return RunWindowAggregate(run);
    case WindowFunction::kRowNumber:
      return RowNumber(run);
    case WindowFunction::kRank:
      return Rank(run, false);
    case WindowFunction::kDenseRank:
      return Rank(run, true);
    case WindowFunction::kPercentRank:
      return PercentRank(run);
    case WindowFunction::kCumeDist:
      return CumeDist(run);
    case WindowFunction::kNtile:
      return Ntile(run);
    case WindowFunction::kLag:
    case WindowFunction::kLead:
      return Neighbour(run);
    case WindowFunction::kFirstValue:
    case WindowFunction::kLastValue:
    case WindowFunction::kNthValue:
      return FrameValue(run);
  }
  NAM_CHECK(false, "a call that was checked");
  return absl::OkStatus();
}

}  // namespace nam::execution
