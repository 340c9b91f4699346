#include "bench/algorithm.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::bench {
namespace {

// Quoted, because JOIN is a keyword.
constexpr char kJoin[] = "nam.\"join\"";
constexpr char kExchange[] = "nam.exchange";
constexpr char kAggregate[] = "nam.aggregate";

absl::StatusOr<Algorithm> Find(std::span<const Algorithm> algorithms, std::string_view name) {
  for (const Algorithm& algorithm : algorithms) {
    if (algorithm.name == name) return algorithm;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no algorithm \"", std::string(name), "\"; --algorithms are of ",
      absl::StrJoin(algorithms, ", ",
                    [](std::string* out, const Algorithm& each) { absl::StrAppend(out, each.name); })));
}

/// `auto` comes last.
std::span<const Algorithm> JoinAlgorithms() {
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

}  // namespace

absl::StatusOr<Algorithm> JoinAlgorithm(std::string_view name) {
  return Find(JoinAlgorithms(), name);
}

absl::StatusOr<Algorithm> ForcedJoinAlgorithm(std::string_view name) {
  const std::span<const Algorithm> all = JoinAlgorithms();
  return Find(all.first(all.size() - 1), name);
}

absl::StatusOr<Algorithm> AggregateAlgorithm(std::string_view name) {
  static const std::vector<Algorithm> algorithms = {
      {"rdma", {{kAggregate, "rdma"}}},
      {"dist", {{kAggregate, "dist"}}},
      {"auto", {{kAggregate, "auto"}}},
  };
  return Find(algorithms, name);
}

absl::Status Force(session::Session& session, const Algorithm& algorithm) {
  for (const auto& [setting, value] : algorithm.settings)
    NAM_RETURN_IF_ERROR(session.Execute(absl::StrCat("SET ", setting, " = '", value, "'")).status());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> RefusalOf(session::Session& session, const Algorithm& algorithm,
                                                     const std::optional<std::string>& query) {
  absl::Status status = Force(session, algorithm);
  if (status.ok() && query.has_value()) status = session.Execute(absl::StrCat("EXPLAIN ", *query)).status();
  if (status.ok()) return std::nullopt;
  const std::optional<SqlError> error = SqlErrorOf(status);
  const auto is = [&](const char* state) { return error.has_value() && error->sqlstate == state; };
  if (!is(sqlstate::kUndefinedObject) && !is(sqlstate::kBadParameter) && !is(sqlstate::kNotSupported))
    return status;
  return error->message;
}

}  // namespace nam::bench
