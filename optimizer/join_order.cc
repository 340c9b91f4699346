#include "optimizer/join_order.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/status_macros.h"
#include "optimizer/selectivity.h"
#include "plan/work_cost.h"

namespace nam::optimizer {
namespace {

namespace work_cost = plan::work_cost;

using plan::ColumnRef;

constexpr size_t kMostCompared = 8;  // build sides, with 2^8 sets to compare
constexpr double kLeastOfLargest = 0.25;
constexpr double kWorthIt = 0.8;
/// Costs that differ by less are equal: the same numbers, multiplied in another order.
constexpr double kSame = 1 - 1e-9;

class Orders {
 public:
  Orders(const StarQuery& query, const std::vector<Plan::Table>& tables, double workers)
      : query_(query), tables_(tables), workers_(std::max(1.0, workers)) {}

  absl::StatusOr<JoinOrder> Best() const {
    const int largest = Largest();
    NAM_ASSIGN_OR_RETURN(JoinOrder best, Streaming(largest));
    const double to_beat = best.cost_ns * kWorthIt;
    for (int t = 0; t < static_cast<int>(tables_.size()); ++t) {
      if (t == largest || Rows(t) < Rows(largest) * kLeastOfLargest) continue;
      NAM_ASSIGN_OR_RETURN(JoinOrder other, Streaming(t));
      if (other.cost_ns < std::min(to_beat, best.cost_ns * kSame)) best = std::move(other);
    }
    return best;
  }

 private:
  double Rows(int t) const { return tables_[static_cast<size_t>(t)].rows; }
  double RowsLeft(int t) const { return Rows(t) * tables_[static_cast<size_t>(t)].selectivity; }

  int Largest() const {
    int largest = 0;
    for (int t = 1; t < static_cast<int>(tables_.size()); ++t) {
      if (Rows(t) > Rows(largest)) largest = t;
    }
    return largest;
  }

  double Distinct(ColumnRef key) const {
    return static_cast<double>(std::max<uint64_t>(ColumnOf(query_, key).distinct(), 1));
  }

  /// The output rows of the step's probe for each input row. Several keys have as many values as their
  /// columns have together, but no more than there are rows.
  double Fanout(const JoinStep& step) const {
    double values = 1;
    for (const JoinKey& key : step.keys) values *= Distinct(key.build);
    if (step.keys.size() > 1) values = std::min(values, std::max(Rows(step.table), 1.0));
    return RowsLeft(step.table) / values;
  }

  /// The step to table `t` from those in `joined`, if an edge leads there.
  std::optional<JoinStep> StepTo(int t, const std::vector<bool>& joined) const {
    JoinStep step{.table = t};
    for (size_t e = 0; e < query_.joins.size(); ++e) {
      ColumnRef build = query_.joins[e].left, probe = query_.joins[e].right;
      if (build.table != t) std::swap(build, probe);
      if (build.table != t || !joined[static_cast<size_t>(probe.table)]) continue;
      step.keys.push_back({.build = build, .probe = probe, .edge = e});
    }
    if (step.keys.empty()) return std::nullopt;
    const auto unique = std::find_if(step.keys.begin(), step.keys.end(), [&](const JoinKey& key) {
      return ColumnOf(query_, key.build).unique();
    });
    if (unique != step.keys.end()) step.keys = {*unique};
    return step;
  }

  absl::StatusOr<JoinOrder> Streaming(int driving) const {
    JoinOrder order = tables_.size() - 1 <= kMostCompared ? Compared(driving) : Greedy(driving);
    if (order.steps.size() + 1 != tables_.size())
      return absl::InternalError("the binder let a cartesian product pass");
    order.cost_ns = CostNs(order);
    return order;
  }

  JoinOrder Greedy(int driving) const {
    JoinOrder order{.driving = driving};
    std::vector<bool> joined(tables_.size());
    joined[static_cast<size_t>(driving)] = true;
    double rows = RowsLeft(driving);
    while (true) {
      std::optional<JoinStep> best;
      for (int t = 0; t < static_cast<int>(tables_.size()); ++t) {
        if (joined[static_cast<size_t>(t)]) continue;
        const std::optional<JoinStep> step = StepTo(t, joined);
        if (step && (!best || Fanout(*step) < Fanout(*best))) best = step;
      }
      if (!best) return order;
      joined[static_cast<size_t>(best->table)] = true;
      rows *= Fanout(*best);
      best->rows_after = rows;
      order.steps.push_back(*best);
    }
  }

  /// The least sum of rows between the joins, over all left-deep orders: best[set] is the best way to have
  /// joined a set of build sides.
  JoinOrder Compared(int driving) const {
    struct Way {
      double sum = std::numeric_limits<double>::infinity();
      double rows = 0;
      JoinStep last;
    };
    std::vector<int> builds;
    for (int t = 0; t < static_cast<int>(tables_.size()); ++t) {
      if (t != driving) builds.push_back(t);
    }
    std::vector<Way> best(size_t{1} << builds.size());
    best[0] = {.sum = 0, .rows = RowsLeft(driving)};
    std::vector<bool> joined(tables_.size());
    for (size_t set = 1; set < best.size(); ++set) {
      // The last one first: among equal orders this keeps that of FROM.
      for (size_t b = builds.size(); b-- > 0;) {
        if ((set >> b & 1) == 0) continue;
        const Way& before = best[set ^ size_t{1} << b];
        if (before.sum == std::numeric_limits<double>::infinity()) continue;
        joined.assign(tables_.size(), false);
        joined[static_cast<size_t>(driving)] = true;
        for (size_t other = 0; other < builds.size(); ++other)
          if (other != b && (set >> other & 1) != 0) joined[static_cast<size_t>(builds[other])] = true;
        std::optional<JoinStep> step = StepTo(builds[b], joined);
        if (!step) continue;
        step->rows_after = before.rows * Fanout(*step);
        if (before.sum + step->rows_after < best[set].sum * kSame)
          best[set] = {before.sum + step->rows_after, step->rows_after, *step};
      }
    }
    JoinOrder order{.driving = driving};
    for (size_t set = best.size() - 1; set != 0 && best[set].last.table >= 0;) {
      order.steps.push_back(best[set].last);
      const auto b = std::find(builds.begin(), builds.end(), best[set].last.table) - builds.begin();
      set ^= size_t{1} << b;
    }
    std::reverse(order.steps.begin(), order.steps.end());
    return order;
  }

  /// Workers claim a table's partitions: fewer partitions leave some idle.
  double Threads(int t) const {
    const auto& table = *query_.tables[static_cast<size_t>(t)];
    return std::clamp(static_cast<double>(table.partitions_size()), 1.0, workers_);
  }

  double CostNs(const JoinOrder& order) const {
    const auto ns = [](double rows, int64_t ps) { return rows * static_cast<double>(ps) / 1e3; };
    double streamed = ns(Rows(order.driving), work_cost::kFirstFilterRowPs);
    double rows = RowsLeft(order.driving), built = 0;
    for (const JoinStep& step : order.steps) {
      streamed += ns(rows, work_cost::kProbeRowPs);
      built += (ns(Rows(step.table), work_cost::kFirstFilterRowPs) +
                ns(RowsLeft(step.table), work_cost::kInsertRowPs)) /
               Threads(step.table);
      rows = step.rows_after;
    }
    return built + (streamed + ns(rows, work_cost::kSinkRowPs)) / Threads(order.driving);
  }

  const StarQuery& query_;
  const std::vector<Plan::Table>& tables_;
  const double workers_;
};

}  // namespace

absl::StatusOr<JoinOrder> ChooseJoinOrder(const StarQuery& query, const std::vector<Plan::Table>& tables,
                                          double workers) {
  return Orders(query, tables, workers).Best();
}

}  // namespace nam::optimizer
