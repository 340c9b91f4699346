#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The distributed algorithms for joins and aggregations on compute servers.
namespace nam::plan {

/// The algorithm that brings the sides of a join together. All but kPipelined partition both sides by the
/// hash of their keys.
enum class JoinAlgorithm : uint8_t {
  kAuto,       // the cheapest by the cost model
  kPipelined,  // every server reads the whole build side; otherwise the session joins
  kRrj,        // RDMA radix join: parts in scratch memory, each with a table that fits a processor's cache
  kRdmaGhj,    // RDMA grace hash join: as few parts in scratch memory as keep all workers busy
  kGhj,        // grace hash join: rows are sent to the server that owns their part
  kGhjBloom,   // as kGhj, but rows of the probe side without a partner are dropped by a Bloom filter first
};
/// The false-positive rate of kGhjBloom's filters.
inline constexpr double kBloomError = 0.1;
/// By JoinAlgorithm: the values of the setting nam.join.
inline constexpr std::array<const char*, 6> kJoinAlgorithms = {"auto",     "pipelined", "rrj",
                                                               "rdma_ghj", "ghj",       "ghj_bloom"};
constexpr const char* NameOf(JoinAlgorithm algorithm) {
  return kJoinAlgorithms[static_cast<size_t>(algorithm)];
}

/// Whether rows go directly from server to server, without scratch memory.
constexpr bool IsStreamed(JoinAlgorithm algorithm) {
  return algorithm == JoinAlgorithm::kGhj || algorithm == JoinAlgorithm::kGhjBloom;
}

/// The algorithm that merges the groups of several servers.
enum class AggregateAlgorithm : uint8_t {
  kAuto,  // the cheaper one by the cost model
  kRdma,  // servers write states by parts into scratch memory; a further stage of servers merges each part
  kDist,  // hierarchical: each server aggregates its rows, the session merges the results
};
/// By AggregateAlgorithm: the values of the setting nam.aggregate.
inline constexpr std::array<const char*, 3> kAggregateAlgorithms = {"auto", "rdma", "dist"};
constexpr const char* NameOf(AggregateAlgorithm algorithm) {
  return kAggregateAlgorithms[static_cast<size_t>(algorithm)];
}

}  // namespace nam::plan
