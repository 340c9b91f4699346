#include "optimizer/join_order.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/check.h"
#include "plan/work_cost.h"

namespace nam::optimizer {
namespace {

namespace work_cost = plan::work_cost;

constexpr size_t kMostCompared = 8;  // build sides, with 2^8 sets to compare
constexpr double kLeastOfLargest = 0.25;
constexpr double kWorthIt = 0.8;
/// Costs that differ by less are equal: the same numbers, multiplied in another order.
constexpr double kSame = 1 - 1e-9;

class Orders {
 public:
  Orders(const std::vector<JoinInput>& inputs, const std::vector<JoinEdge>& edges, double workers)
      : inputs_(inputs), edges_(edges), workers_(std::max(1.0, workers)) {}

  JoinOrder Best() const {
    const size_t largest = Largest();
    JoinOrder best = Streaming(largest);
    const double to_beat = best.cost_ns * kWorthIt;
    for (size_t t = 0; t < inputs_.size(); ++t) {
      if (t == largest || !inputs_[t].may_stream || inputs_[t].read < inputs_[largest].read * kLeastOfLargest)
        continue;
      JoinOrder other = Streaming(t);
      if (other.cost_ns < std::min(to_beat, best.cost_ns * kSame)) best = std::move(other);
    }
    return best;
  }

 private:
  size_t Largest() const {
    std::optional<size_t> largest;
    for (size_t t = 0; t < inputs_.size(); ++t) {
      if (inputs_[t].may_stream && (!largest || inputs_[t].read > inputs_[*largest].read)) largest = t;
    }
    NAM_CHECK(largest.has_value(), "an input that streams");
    return *largest;
  }

  /// The output rows of the step's probe for each input row.
  double Fanout(const JoinStep& step) const { return inputs_[step.input].rows / step.values; }

  /// The step to input `t` from those in `joined`. Several keys have as many values as their columns have
  /// together, but no more than there are rows.
  std::optional<JoinStep> StepTo(size_t t, const std::vector<bool>& joined) const {
    JoinStep step{.input = t};
    size_t keys = 0;
    for (const JoinEdge& edge : edges_) {
      const bool left = edge.left.input == t;
      const JoinEdge::End &build = left ? edge.left : edge.right, &probe = left ? edge.right : edge.left;
      if (build.input != t || !joined[probe.input] || step.unique) continue;
      step.unique = build.unique;
      step.values = build.unique ? build.values : step.values * build.values;
      keys = build.unique ? 1 : keys + 1;
    }
    if (keys == 0) return std::nullopt;
    if (keys > 1) step.values = std::min(step.values, std::max(inputs_[t].read, 1.0));
    return step;
  }

  /// Whether an edge leads from the inputs in `joined` to one that is not.
  bool IsOpen(const std::vector<bool>& joined) const {
    return std::any_of(edges_.begin(), edges_.end(), [&](const JoinEdge& edge) {
      return joined[edge.left.input] != joined[edge.right.input];
    });
  }

  JoinOrder Streaming(size_t driving) const {
    JoinOrder order = inputs_.size() - 1 <= kMostCompared ? Compared(driving) : Greedy(driving);
    NAM_CHECK(order.steps.size() + 1 == inputs_.size(), "every input has a step");
    order.cost_ns = CostNs(order);
    return order;
  }

  /// The step to `t`; crosses it only if no other input is connected.
  std::optional<JoinStep> StepOrCross(size_t t, const std::vector<bool>& joined) const {
    std::optional<JoinStep> step = StepTo(t, joined);
    if (!step && !IsOpen(joined)) step = JoinStep{.input = t};
    return step;
  }

  JoinOrder Greedy(size_t driving) const {
    JoinOrder order{.driving = driving};
    std::vector<bool> joined(inputs_.size());
    joined[driving] = true;
    double rows = inputs_[driving].rows;
    while (true) {
      std::optional<JoinStep> best;
      for (size_t t = 0; t < inputs_.size(); ++t) {
        if (joined[t]) continue;
        const std::optional<JoinStep> step = StepOrCross(t, joined);
        if (step && (!best || Fanout(*step) < Fanout(*best))) best = step;
      }
      if (!best) return order;
      joined[best->input] = true;
      rows *= Fanout(*best);
      best->rows_after = rows;
      order.steps.push_back(*best);
    }
  }

  /// The least sum of rows between the joins, over all left-deep orders: best[set] is the best way to have
  /// joined a set of build sides.
  JoinOrder Compared(size_t driving) const {
    struct Way {
      double sum = std::numeric_limits<double>::infinity();
      double rows = 0;
      JoinStep last;
    };
    std::vector<size_t> builds;
    for (size_t t = 0; t < inputs_.size(); ++t) {
      if (t != driving) builds.push_back(t);
    }
    std::vector<Way> best(size_t{1} << builds.size());
    best[0] = {.sum = 0, .rows = inputs_[driving].rows};
    std::vector<bool> joined(inputs_.size());
    for (size_t set = 1; set < best.size(); ++set) {
      // The last one first: among equal orders this keeps that of FROM.
      for (size_t b = builds.size(); b-- > 0;) {
        if ((set >> b & 1) == 0) continue;
        const Way& before = best[set ^ size_t{1} << b];
        if (before.sum == std::numeric_limits<double>::infinity()) continue;
        joined.assign(inputs_.size(), false);
        joined[driving] = true;
        for (size_t other = 0; other < builds.size(); ++other)
          if (other != b && (set >> other & 1) != 0) joined[builds[other]] = true;
        std::optional<JoinStep> step = StepOrCross(builds[b], joined);
        if (!step) continue;
        step->rows_after = before.rows * Fanout(*step);
        if (before.sum + step->rows_after < best[set].sum * kSame)
          best[set] = {before.sum + step->rows_after, step->rows_after, *step};
      }
    }
    JoinOrder order{.driving = driving};
    for (size_t set = best.size() - 1; set != 0;) {
      order.steps.push_back(best[set].last);
      const auto b = std::find(builds.begin(), builds.end(), best[set].last.input) - builds.begin();
      set ^= size_t{1} << b;
    }
    std::reverse(order.steps.begin(), order.steps.end());
    return order;
  }

  /// Workers claim a table's partitions: fewer partitions leave some idle.
  double Threads(size_t t) const { return std::clamp(inputs_[t].partitions, 1.0, workers_); }

  double CostNs(const JoinOrder& order) const {
    const auto ns = [](double rows, int64_t ps) { return rows * static_cast<double>(ps) / 1e3; };
    double streamed = ns(inputs_[order.driving].read, work_cost::kFirstFilterRowPs);
    double rows = inputs_[order.driving].rows, built = 0;
    for (const JoinStep& step : order.steps) {
      const JoinInput& input = inputs_[step.input];
      streamed += ns(rows, work_cost::kProbeRowPs);
      built += (ns(input.read, work_cost::kFirstFilterRowPs) + ns(input.rows, work_cost::kInsertRowPs)) /
               Threads(step.input);
      rows = step.rows_after;
    }
    return built + (streamed + ns(rows, work_cost::kSinkRowPs)) / Threads(order.driving);
  }

  const std::vector<JoinInput>& inputs_;
  const std::vector<JoinEdge>& edges_;
  const double workers_;
};

}  // namespace

JoinOrder ChooseJoinOrder(const std::vector<JoinInput>& inputs, const std::vector<JoinEdge>& edges,
                          double workers) {
  return Orders(inputs, edges, workers).Best();
}

}  // namespace nam::optimizer
