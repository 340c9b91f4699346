#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "session/session.h"

namespace nam::bench {

/// A way to run a query, forced by the session's settings.
struct Algorithm {
  std::string name;  // `rrj`
  std::vector<std::pair<std::string, std::string>> settings;
};

/// `rrj`, `rdma_ghj`, `ghj` and `ghj_bloom` over sockets, `ghj_fabric` and `ghj_bloom_fabric` over the
/// fabric, `pipelined`, `auto`. INVALID_ARGUMENT lists them.
absl::StatusOr<Algorithm> JoinAlgorithm(std::string_view name);
/// Likewise without `auto`.
absl::StatusOr<Algorithm> ForcedJoinAlgorithm(std::string_view name);
/// `rdma`, `dist`, `auto`.
absl::StatusOr<Algorithm> AggregateAlgorithm(std::string_view name);

/// Forces it from the next statement on, with one SET per setting. After an error some of them are set.
absl::Status Force(session::Session& session, const Algorithm& algorithm);

/// Why this engine cannot be forced to use it: it lacks the setting or the value, or does not support it for
/// `query`, which is planned but not run. Empty if it can. Other errors are returned as errors.
absl::StatusOr<std::optional<std::string>> RefusalOf(session::Session& session, const Algorithm& algorithm,
                                                     const std::optional<std::string>& query);

}  // namespace nam::bench
