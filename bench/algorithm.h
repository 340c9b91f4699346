#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "session/session.h"

namespace nam::bench {

/// A way to run a query, forced by the session's settings.
struct Algorithm {
  std::string name;  // `rrj`
  std::vector<std::pair<std::string, std::string>> settings;
};

/// `rrj`, `rdma_ghj`, `ghj` and `ghj_bloom` over sockets, `ghj_fabric` and `ghj_bloom_fabric` over the
/// fabric, `pipelined`, and at last `auto`.
const std::vector<Algorithm>& JoinAlgorithms();
/// `rdma`, `dist`, `auto`.
const std::vector<Algorithm>& AggregateAlgorithms();
std::vector<std::string> NamesOf(const std::vector<Algorithm>& algorithms);
/// Those with the names, which must be among them.
std::vector<Algorithm> Named(const std::vector<Algorithm>& algorithms, const std::vector<std::string>& names);

/// Forces it from the next statement on, with one SET per setting. After an error some of them are set.
absl::Status Force(session::Session& session, const Algorithm& algorithm);

}  // namespace nam::bench
