#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nam::txn {

/// The graph of dependencies (a transaction read or replaced what another wrote) and anti-dependencies
/// (another transaction replaced what it read). Finds cycles without two consecutive anti-dependencies, by
/// peeling off nodes that no edge leads to. Each transaction is two nodes, so that no walk takes two
/// anti-dependencies in a row:
///
///     dependency        a ─▶ a, b ─▶ a
///     anti-dependency   a ─▶ b             none leaves b
///
/// Edges are counted first and placed second, so that each takes 4 bytes: call AddEdge for all of them,
/// Allocate, and AddEdge for the same ones again. One thread.
class DependencyGraph {
 public:
  struct Edge {
    uint32_t from;
    uint32_t to;
    bool anti;
  };

  explicit DependencyGraph(size_t transactions) : ends_(transactions + 1), incoming_(2 * transactions) {}

  void AddEdge(uint32_t from, uint32_t to, bool anti);
  void Allocate();
  /// Returns up to `cycles_max` cycles that share no transaction. None is much longer than necessary.
  std::vector<std::vector<Edge>> Cycles(size_t cycles_max);

 private:
  static constexpr uint32_t kAnti = uint32_t{1} << 31;

  size_t transactions() const { return ends_.size() - 1; }
  // Nodes: 2 · transaction for a, and 1 more for b.
  template <typename Body>
  void ForEachSuccessor(uint32_t node, const Body& body) const;
  void Peel(std::vector<uint32_t> sources);
  void Remove(uint32_t node);
  std::vector<uint32_t> AnyCycle();
  std::vector<uint32_t> ShortestThrough(uint32_t node) const;
  bool present(uint32_t node) const { return incoming_[node] != 0; }

  // The edges of node t are [ends_[t - 1], ends_[t]) once they are placed.
  std::vector<uint64_t> ends_;
  std::vector<uint32_t> edges_;     // target node; kAnti
  std::vector<uint32_t> incoming_;  // by node: edges into it from nodes that are not peeled off
  bool allocated_ = false;
};

}  // namespace nam::txn
