#include "localcluster/buried_servers.h"

#include <signal.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam {
namespace {

constexpr int64_t kPauseUs = 1'500'000;
constexpr int64_t kTimeoutUs = 1'000'000;

}  // namespace

BuriedServers::BuriedServers(LocalCluster& cluster, Ask ask)
    : cluster_(cluster), ask_(std::move(ask)), next_(RealClock().After(kPauseUs)) {}

std::vector<std::string> BuriedServers::Look() {
  // Before the catalog is asked: these have joined.
  std::vector<Process*> running;
  for (Process* process : cluster_.processes()) {
    const bool member = process->ready().has_value() && process->ready()->values.contains("id");
    if (member && process->running()) running.push_back(process);
  }
  const absl::StatusOr<proto::Cluster> cluster = ask_();
  next_ = RealClock().After(kPauseUs);
  std::vector<std::string> killed;
  if (!cluster.ok()) return killed;
  std::set<std::string> alive, gone;
  for (const proto::Member& member : cluster->members()) {
    if (member.alive()) alive.insert(absl::StrCat(member.id()));
  }
  for (Process* const process : running) {
    const std::string id = IdOf(*process);
    if (alive.contains(id)) continue;
    gone.insert(id);
    if (!gone_.contains(id)) continue;  // it may be ending
    process->Signal(SIGKILL);
    killed.push_back(
        absl::StrCat(process->name(), " (member ", id,
                     ") is a member no more, but its process is stopped or hangs: it is killed"));
  }
  gone_ = std::move(gone);
  return killed;
}

BuriedServers::Ask AskCatalog(catalog::ClientOptions options) {
  options.timeout_us = kTimeoutUs;
  return [options, client = std::shared_ptr<catalog::Client>()]() mutable -> absl::StatusOr<proto::Cluster> {
    if (client == nullptr) {
      NAM_ASSIGN_OR_RETURN(client, catalog::Client::Connect(options));
    }
    return client->GetCluster();
  };
}

}  // namespace nam
