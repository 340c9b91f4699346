#include "bench/turns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "bench/report.h"

namespace nam::bench {

double ContenderTimes::median_ms() const {
  return Median(times_ms);
}

double ContenderTimes::min_ms() const {
  NAM_CHECK(!times_ms.empty());
  return *std::min_element(times_ms.begin(), times_ms.end());
}

absl::StatusOr<std::vector<ContenderTimes>> TakeTurns(const std::vector<Contender>& contenders,
                                                      const Answer& expected, const TurnsOptions& options) {
  std::vector<ContenderTimes> all;
  for (const Contender& contender : contenders) all.push_back({.name = contender.name});
  for (int round = 0; round <= options.repeat; ++round) {
    const size_t turns = round == 0 ? std::min(options.warm_up, contenders.size()) : contenders.size();
    for (size_t i = 0; i < turns; ++i) {
      options.show(round == 0 ? absl::StrCat(all[i].name, ", to warm up")
                              : absl::StrFormat("%s, %d of %d", all[i].name, round, options.repeat));
      if (options.cancelled != nullptr && *options.cancelled) return absl::CancelledError("interrupted");
      if (!all[i].refusal.empty()) continue;
      const absl::StatusOr<Turn> turn = contenders[i].take();
      if (all[i].times_ms.empty() && absl::IsResourceExhausted(turn.status())) {
        all[i].refusal = std::string(turn.status().message());
        continue;
      }
      if (!turn.ok()) {
        return absl::Status(turn.status().code(), absl::StrCat(all[i].name, ": ", turn.status().message()));
      }
      all[i].equal &= turn->answer == expected;
      if (round > 0) all[i].times_ms.push_back(turn->elapsed_ms);
    }
  }
  return all;
}

}  // namespace nam::bench
