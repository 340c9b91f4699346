#include "bench/algorithm.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::bench {

const std::vector<Algorithm>& JoinAlgorithms() {
  static constexpr char kJoin[] = "nam.\"join\"";  // quoted, because JOIN is a keyword
  static constexpr char kExchange[] = "nam.exchange";
  static const std::vector<Algorithm> algorithms = {
      {"rrj", {{kJoin, "rrj"}}},
      {"rdma_ghj", {{kJoin, "rdma_ghj"}}},
      {"ghj", {{kJoin, "ghj"}, {kExchange, "sockets"}}},
      {"ghj_bloom", {{kJoin, "ghj_bloom"}, {kExchange, "sockets"}}},
      {"ghj_fabric", {{kJoin, "ghj"}, {kExchange, "fabric"}}},
      {"ghj_bloom_fabric", {{kJoin, "ghj_bloom"}, {kExchange, "fabric"}}},
      {"pipelined", {{kJoin, "pipelined"}}},
      {"auto", {{kJoin, "auto"}}},
  };
  return algorithms;
}

const std::vector<Algorithm>& AggregateAlgorithms() {
  static constexpr char kAggregate[] = "nam.aggregate";
  static const std::vector<Algorithm> algorithms = {
      {"rdma", {{kAggregate, "rdma"}}},
      {"dist", {{kAggregate, "dist"}}},
      {"auto", {{kAggregate, "auto"}}},
  };
  return algorithms;
}

std::vector<std::string> NamesOf(const std::vector<Algorithm>& algorithms) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.push_back(algorithm.name);
  return names;
}

std::vector<Algorithm> Named(const std::vector<Algorithm>& algorithms,
                             const std::vector<std::string>& names) {
  std::vector<Algorithm> named;
  for (const std::string& name : names) {
    const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                    [&](const Algorithm& algorithm) { return algorithm.name == name; });
    NAM_CHECK(found != algorithms.end());
    named.push_back(*found);
  }
  return named;
}

absl::Status Force(session::Session& session, const Algorithm& algorithm) {
  for (const auto& [setting, value] : algorithm.settings)
    NAM_RETURN_IF_ERROR(session.Execute(absl::StrCat("SET ", setting, " = '", value, "'")).status());
  return absl::OkStatus();
}

}  // namespace nam::bench
