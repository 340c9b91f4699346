#include "txn/check/dependency_graph.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/check.h"

namespace nam::txn {

void DependencyGraph::AddEdge(uint32_t from, uint32_t to, bool anti) {
  if (from == to) return;
  if (allocated_) {
    edges_[--ends_[from]] = to | (anti ? kAnti : 0);
    return;
  }
  ++ends_[from];
  incoming_[2 * size_t{to} + (anti ? 1 : 0)] += anti ? 1 : 2;
}

/// Afterwards ends_[t] is t's end. Placing an edge moves it down, so it is t's beginning once all are placed.
void DependencyGraph::Allocate() {
  uint64_t sum = 0;
  for (uint64_t& end : ends_) end = sum += end;
  edges_.resize(sum);
  allocated_ = true;
}

template <typename Body>
void DependencyGraph::ForEachSuccessor(uint32_t node, const Body& body) const {
  const bool after_anti = (node & 1) != 0;
  for (uint64_t i = ends_[node / 2]; i < ends_[node / 2 + 1]; ++i) {
    const bool anti = (edges_[i] & kAnti) != 0;
    if (anti && after_anti) continue;
    body(2 * (edges_[i] & ~kAnti) + (anti ? 1 : 0));
  }
}

void DependencyGraph::Peel(std::vector<uint32_t> sources) {
  while (!sources.empty()) {
    const uint32_t node = sources.back();
    sources.pop_back();
    ForEachSuccessor(node, [&](uint32_t next) {
      if (present(next) && --incoming_[next] == 0) sources.push_back(next);
    });
  }
}

void DependencyGraph::Remove(uint32_t node) {
  if (!present(node)) return;
  incoming_[node] = 0;
  Peel({node});
}

/// Searches the remaining nodes depth first, and removes dead ends on the way back.
std::vector<uint32_t> DependencyGraph::AnyCycle() {
  struct Step {
    uint32_t node;
    std::vector<uint32_t> next;
  };
  for (uint32_t start = 0; start < incoming_.size(); ++start) {
    if (!present(start)) continue;
    std::vector<Step> path;
    absl::flat_hash_map<uint32_t, size_t> place;  // on the path
    const auto enter = [&](uint32_t node) {
      place[node] = path.size();
      path.push_back({node, {}});
      ForEachSuccessor(node, [&](uint32_t next) {
        if (present(next)) path.back().next.push_back(next);
      });
    };
    enter(start);
    while (!path.empty()) {
      if (path.back().next.empty()) {
        // No remaining edge leaves this node, so it is on no cycle.
        const uint32_t node = path.back().node;
        place.erase(node);
        path.pop_back();
        incoming_[node] = 0;
        continue;
      }
      const uint32_t next = path.back().next.back();
      path.back().next.pop_back();
      if (!present(next)) continue;
      if (const auto seen = place.find(next); seen != place.end()) {
        std::vector<uint32_t> cycle;
        for (size_t i = seen->second; i < path.size(); ++i) cycle.push_back(path[i].node);
        return cycle;
      }
      enter(next);
    }
  }
  return {};
}

/// Searches breadth first from `node`, which is on a cycle, back to it.
std::vector<uint32_t> DependencyGraph::ShortestThrough(uint32_t node) const {
  absl::flat_hash_map<uint32_t, uint32_t> from;
  std::deque<uint32_t> queue = {node};
  while (!queue.empty() && !from.contains(node)) {
    const uint32_t at = queue.front();
    queue.pop_front();
    ForEachSuccessor(at, [&](uint32_t next) {
      if (present(next) && from.emplace(next, at).second) queue.push_back(next);
    });
  }
  NAM_CHECK(from.contains(node), "a cycle that is none");
  std::vector<uint32_t> cycle = {node};
  for (uint32_t at = from.at(node); at != node; at = from.at(at)) cycle.push_back(at);
  std::reverse(cycle.begin() + 1, cycle.end());
  return cycle;
}

std::vector<std::vector<DependencyGraph::Edge>> DependencyGraph::Cycles(size_t cycles_max) {
  NAM_CHECK(allocated_);
  std::vector<uint32_t> sources;
  for (uint32_t node = 0; node < incoming_.size(); ++node) {
    if (!present(node)) sources.push_back(node);
  }
  Peel(std::move(sources));
  std::vector<std::vector<Edge>> cycles;
  while (cycles.size() < cycles_max) {
    const std::vector<uint32_t> any = AnyCycle();
    if (any.empty()) break;
    std::vector<uint32_t> shortest = any;
    for (size_t i = 0; i < std::min<size_t>(any.size(), 32); ++i) {
      std::vector<uint32_t> cycle = ShortestThrough(any[i]);
      if (cycle.size() < shortest.size()) shortest = std::move(cycle);
    }
    std::vector<Edge>& edges = cycles.emplace_back();
    for (size_t i = 0; i < shortest.size(); ++i) {
      const uint32_t to = shortest[(i + 1) % shortest.size()];
      edges.push_back({shortest[i] / 2, to / 2, (to & 1) != 0});
    }
    for (const uint32_t node : shortest) {
      Remove(node & ~uint32_t{1});
      Remove(node | 1);
    }
  }
  return cycles;
}

}  // namespace nam::txn
