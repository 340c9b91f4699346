#pragma once

#include "plan/join_algorithm.h"
#include "terminal/json_report.h"

/// Figure 7 of the redesign paper, "Cost Analysis of Joins on InfiniBand": the costs of distributed joins by
/// the share of rows with partners, from the equations of optimizer/join_cost.h and the paper's constants.
namespace nam::bench {

struct Figure7Network {
  const char* name;
  double byte_s;  // c_net, idealized for messages of 2 KiB, as measured in section 2 of the paper
};
inline constexpr Figure7Network kIpOverEthernet{"IPoEth", 8e-9};   // 1 Gbit/s
inline constexpr Figure7Network kIpOverInfiniBand{"IPoIB", 1e-9};  // long messages reach 3.5 GB/s
inline constexpr Figure7Network kRdma{"RDMA", 1 / 6.8e9};          // 2 KiB saturate a port

inline constexpr double kFigure7Rows = 1e6;  // of either relation
inline constexpr double kFigure7RowBytes = 8;
inline constexpr double kFigure7MemoryByteS = 1e-9;  // c_mem
inline constexpr double kFigure7BloomError = 0.1;    // a selectivity of 50 % still leaves 60 %

/// Seconds for a join of both relations.
double Figure7Cost(plan::JoinAlgorithm algorithm, const Figure7Network& network, double selectivity);

/// One row per point: figure (7a, 7b), network, algorithm, selectivity, ms.
Json Figure7Rows();
/// The selectivity below which a reduction pays, by network; and the other algorithms' times relative to
/// RRJ's if memory and network cost the same.
Json Figure7Summary();

}  // namespace nam::bench
