#include "optimizer/assignment.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>

#include "base/check.h"

namespace nam::optimizer {
namespace {

uint64_t RowBytes(const proto::Table& table, const std::vector<uint32_t>& columns) {
  uint64_t bytes = 0;
  for (uint32_t c : columns) bytes += table.columns(static_cast<int>(c)).encoding().width();
  return bytes;
}

/// The partition key (if it is the only one with that column) that `expr`, a bare column, is of its table.
std::optional<int> KeyOf(const sql::Expr& expr, const proto::Table& table) {
  if (expr.op != sql::Op::kColumn) return std::nullopt;
  for (int k = 0; k < table.partitioning_size(); ++k) {
    if (table.partitioning(k).column() == table.columns(expr.column.column).name()) return k;
  }
  return std::nullopt;
}

Assignment Evaluate(const Plan& plan, const TableRefs& tables, const std::vector<int>& server_of,
                    int servers) {
  const proto::Table& driving = *tables[static_cast<size_t>(plan.driving)];
  const uint64_t row_bytes = RowBytes(driving, plan.tables[static_cast<size_t>(plan.driving)].columns);
  Assignment assignment;
  assignment.servers.resize(static_cast<size_t>(servers));
  for (uint32_t p = 0; p < server_of.size(); ++p) {
    const uint64_t rows = driving.partitions(static_cast<int>(p)).rows();
    if (rows == 0) continue;
    Assignment::Share& share = assignment.servers[static_cast<size_t>(server_of[p])];
    share.partitions.push_back(p);
    share.rows += rows;
    share.driving_bytes += rows * row_bytes;
  }
  for (Assignment::Share& share : assignment.servers) {
    if (share.partitions.empty()) continue;
    for (const Plan::Join& join : plan.joins) {
      const proto::Table& build = *tables[static_cast<size_t>(join.table)];
      const uint64_t bytes = RowBytes(build, plan.tables[static_cast<size_t>(join.table)].columns);
      for (uint32_t p : NeededPartitions(plan, join, tables, share.partitions)) {
        share.build_bytes += bytes * build.partitions(static_cast<int>(p)).rows();
      }
    }
  }
  return assignment;
}

/// Cuts the partitions, in order, into runs of about equal cost.
std::vector<int> CutRuns(const std::vector<uint64_t>& costs, int servers) {
  const uint64_t total = std::max<uint64_t>(std::accumulate(costs.begin(), costs.end(), uint64_t{0}), 1);
  std::vector<int> server_of(costs.size());
  uint64_t before = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const double middle = static_cast<double>(before) + static_cast<double>(costs[i]) / 2;
    server_of[i] = std::min(servers - 1, static_cast<int>(middle / static_cast<double>(total) * servers));
    before += costs[i];
  }
  return server_of;
}

}  // namespace

uint64_t Assignment::LargestBytes() const {
  uint64_t largest = 0;
  for (const Share& share : servers) largest = std::max(largest, share.driving_bytes + share.build_bytes);
  return largest;
}

std::optional<int> MatchingKey(const Plan& plan, const Plan::Join& join, const TableRefs& tables) {
  if (join.probe_key.op != sql::Op::kColumn || join.probe_key.column.table != plan.driving)
    return std::nullopt;
  const proto::Table& build = *tables[static_cast<size_t>(join.table)];
  const proto::Table& driving = *tables[static_cast<size_t>(plan.driving)];
  const std::optional<int> build_key = KeyOf(join.build_key, build),
                           probe_key = KeyOf(join.probe_key, driving);
  if (!build_key || !probe_key || build.partitioning_size() != 1) return std::nullopt;
  const proto::PartitionKey& b = build.partitioning(*build_key);
  const proto::PartitionKey& d = driving.partitioning(*probe_key);
  const bool same = b.parts() == d.parts() && b.function() == d.function() &&
                    join.build_key.type.kind == join.probe_key.type.kind &&
                    join.build_key.type.scale == join.probe_key.type.scale;
  return same ? probe_key : std::nullopt;
}

uint32_t PartOf(const proto::Table& table, uint32_t partition, int key) {
  for (int k = table.partitioning_size() - 1; k > key; --k) partition /= table.partitioning(k).parts();
  return partition % table.partitioning(key).parts();
}

std::vector<uint32_t> NeededPartitions(const Plan& plan, const Plan::Join& join, const TableRefs& tables,
                                       const std::vector<uint32_t>& partitions) {
  const proto::Table& build = *tables[static_cast<size_t>(join.table)];
  const proto::Table& driving = *tables[static_cast<size_t>(plan.driving)];
  const std::optional<int> key = MatchingKey(plan, join, tables);
  std::set<uint32_t> needed;
  if (key) {
    for (uint32_t p : partitions) needed.insert(PartOf(driving, p, *key));
  } else if (!partitions.empty()) {
    for (int p = 0; p < build.partitions_size(); ++p) needed.insert(static_cast<uint32_t>(p));
  }
  return {needed.begin(), needed.end()};
}

std::vector<int> LargestDifferencing(const std::vector<uint64_t>& costs, int parts) {
  NAM_CHECK(parts >= 1);
  // A candidate is a partial solution: its parts, the largest sum first. Repeatedly the two candidates
  // that differ most are joined, the largest part of one with the smallest of the other.
  struct Part {
    uint64_t sum = 0;
    std::vector<uint32_t> items;
  };
  struct Candidate {
    std::vector<Part> parts;
    uint64_t difference() const { return parts.front().sum - parts.back().sum; }
    bool operator<(const Candidate& other) const {
      if (difference() != other.difference()) return difference() < other.difference();
      return !parts.front().items.empty() && !other.parts.front().items.empty() &&
             parts.front().items[0] > other.parts.front().items[0];
    }
  };
  std::priority_queue<Candidate> candidates;
  for (uint32_t i = 0; i < costs.size(); ++i) {
    Candidate candidate;
    candidate.parts.resize(static_cast<size_t>(parts));
    candidate.parts[0] = {costs[i], {i}};
    candidates.push(std::move(candidate));
  }
  std::vector<int> part_of(costs.size());
  if (costs.empty()) return part_of;
  while (candidates.size() > 1) {
    Candidate a = candidates.top();
    candidates.pop();
    const Candidate b = candidates.top();
    candidates.pop();
    for (size_t k = 0; k < a.parts.size(); ++k) {
      Part& into = a.parts[k];
      const Part& from = b.parts[b.parts.size() - 1 - k];
      into.sum += from.sum;
      into.items.insert(into.items.end(), from.items.begin(), from.items.end());
    }
    std::stable_sort(a.parts.begin(), a.parts.end(),
                     [](const Part& x, const Part& y) { return x.sum > y.sum; });
    candidates.push(std::move(a));
  }
  const Candidate& best = candidates.top();
  for (size_t k = 0; k < best.parts.size(); ++k) {
    for (uint32_t item : best.parts[k].items) part_of[item] = static_cast<int>(k);
  }
  return part_of;
}

Assignment Assign(const Plan& plan, const TableRefs& tables, int servers) {
  const proto::Table& driving = *tables[static_cast<size_t>(plan.driving)];
  const uint64_t row_bytes =
      std::max<uint64_t>(1, RowBytes(driving, plan.tables[static_cast<size_t>(plan.driving)].columns));
  std::vector<uint64_t> costs;
  for (const proto::Chain& chain : driving.partitions()) costs.push_back(chain.rows() * row_bytes);
  Assignment runs = Evaluate(plan, tables, CutRuns(costs, servers), servers);
  if (servers == 1) return runs;
  Assignment even = Evaluate(plan, tables, LargestDifferencing(costs, servers), servers);
  return even.LargestBytes() < runs.LargestBytes() ? even : runs;
}

}  // namespace nam::optimizer
