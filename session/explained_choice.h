#pragma once

#include <optional>
#include <string>

#include "optimizer/join_choice.h"

/// Texts of EXPLAIN about a plan's distributed algorithms.
namespace nam::session {

/// `rrj, the cheapest: estimated 12.3 ms, actual 14.0 ms; pipelined 40.1 ms, rdma_ghj 15.0 ms`. `actual_ms`
/// is that of its stages.
std::string Describe(const optimizer::JoinChoice& join, std::optional<double> actual_ms);
std::string Describe(const optimizer::GroupChoice& groups, std::optional<double> actual_ms);
/// `the cheapest`, `forced by nam.join`, `the cheapest, as ghj joins columnar tables alone`, …
std::string WhyText(const optimizer::JoinChoice& join);
const char* WhyText(const optimizer::GroupChoice& groups);

}  // namespace nam::session
