#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nam::txn {

/// Who depends on whom: dependencies (it read or replaced what the other wrote) and anti-dependencies (the
/// other replaced what it read). Finds cycles in which no two anti-dependencies follow each other, by peeling
/// off whatever nothing leads to. So that two in a row are not walked, each transaction is two nodes:
///
///     dependency        a ─▶ a, b ─▶ a
///     anti-dependency   a ─▶ b             none leaves b
///
/// Edges are counted first and placed second, so that they take 4 bytes each and no more: call AddEdge for
/// all of them, Allocate, and AddEdge for the same ones again. One thread.
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
  /// Of those that share no transaction, up to `cycles_max`, none much longer than it must be.
  std::vector<std::vector<Edge>> Cycles(size_t cycles_max);

 private:
  static constexpr uint32_t kAnti = uint32_t{1} << 31;

  size_t transactions() const { return ends_.size() - 1; }
  // Nodes: 2 · transaction, and 1 more for b.
  template <typename Body>
  void ForEachSuccessor(uint32_t node, const Body& body) const;
  void Peel(std::vector<uint32_t> sources);
  void Remove(uint32_t node);
  std::vector<uint32_t> AnyCycle();
  std::vector<uint32_t> ShortestThrough(uint32_t node) const;
  bool present(uint32_t node) const { return incoming_[node] != 0; }

  // Edges of t: [ends_[t - 1], ends_[t]), once they are placed.
  std::vector<uint64_t> ends_;
  std::vector<uint32_t> edges_;     // to whom; kAnti
  std::vector<uint32_t> incoming_;  // of each node: how many that are not peeled off lead to it
  bool allocated_ = false;
};

}  // namespace nam::txn
