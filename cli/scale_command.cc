#include "cli/scale_command.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/scale_requests.h"
#include "localcluster/connect.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

/// As long as servers may take to start or stop, after another such request.
constexpr int64_t kScaleTimeoutMs = 300'000;

/// `compute server 5`, `compute servers 5, 6 and 7`.
std::string Named(const std::vector<std::string>& ids) {
  if (ids.size() == 1) return absl::StrCat("compute server ", ids[0]);
  return absl::StrCat("compute servers ", absl::StrJoin(ids.begin(), ids.end() - 1, ", "), " and ",
                      ids.back());
}

std::string Counted(int servers, const char* kind) {
  return absl::StrFormat("%d %s server%s", servers, kind, servers == 1 ? "" : "s");
}

int RequestScale(const ScaleOptions& options, bool out) {
  if (!options.catalog.empty()) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat(
        "nam scale starts and stops processes of a local cluster, which --catalog does not name; in another "
        "one start `nam compute --catalog=",
        options.catalog, " …` on any host, and end one by SIGTERM: it finishes what it has begun")));
  }
  if (options.compute_servers < 1)
    return Refuse(absl::InvalidArgumentError("--compute is how many servers come or go, at least 1"));
  const std::string path = options.state_dir.empty() ? DefaultStateDirectory() : options.state_dir;
  if (const auto found = FindCluster({.state_dir = path}); !found.ok())
    return ReportNoConnection(found.status());
  const auto directory = StateDirectory::Open(path);
  if (!directory.ok()) return ReportNoConnection(directory.status());
  const StopSignals stop;
  const auto reply = AskForScale(*directory, {.out = out, .compute_servers = options.compute_servers},
                                 kScaleTimeoutMs, stop.fd());
  if (absl::IsUnavailable(reply.status())) {
    return ReportNoConnection(absl::UnavailableError(absl::StrCat(
        std::string(reply.status().message()), "; `nam down` cleans up after it, `nam up` starts another")));
  }
  if (!reply.ok()) return ReportFailure(reply.status());
  const std::string named = Named(reply->changed);
  const std::string now = absl::StrCat(Counted(reply->memory_servers, "memory"), " and ",
                                       Counted(reply->compute_servers, "compute"));
  if (out) {
    std::printf("Started %s. Now %s run.\n", named.c_str(), now.c_str());
  } else {
    std::printf("Stopped %s. Now %s run.\n", named.c_str(), now.c_str());
  }
  return kExitOk;
}

}  // namespace

int RunScaleOut(const ScaleOptions& options) {
  return RequestScale(options, true);
}

int RunScaleIn(const ScaleOptions& options) {
  return RequestScale(options, false);
}

}  // namespace nam::cli
