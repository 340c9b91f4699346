#pragma once

#include <vector>

#include "bench/algorithm_report.h"
#include "terminal/json_report.h"

/// Figure 8 of Binnig et al., "The End of Slow Networks: It's Time for a Redesign", from measurements. The
/// expected orders are those of the paper's sections 5.1.3 and 5.4; `paper_order_…` says whether the
/// participating algorithms keep them.
namespace nam::bench {

/// Joins by selectivity: RRJ, then the RDMA GHJ, then the classical ones. A semi-join reduction pays below a
/// selectivity of 0.7, not at 1; in between, the paper's equations and its text differ. Keys end with the
/// selectivity in percent: `paper_order_at_25`.
Json Figure8aSummary(const std::vector<CaseFigures>& figures);

/// Aggregation by the number of groups: up to 1K, RDMA AGG is at most 10 % slower; beyond, it is faster. Keys
/// end with the number: `paper_order_1m`.
Json Figure8bSummary(const std::vector<CaseFigures>& figures);

}  // namespace nam::bench
