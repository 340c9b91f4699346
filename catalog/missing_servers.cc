#include "catalog/missing_servers.h"

#include <algorithm>

namespace nam::catalog {

std::string StateOf(const proto::Member& member) {
  return !member.alive() ? "buried" : member.suspect() ? "suspect" : "alive";
}

std::vector<MissingServer> MissingServersOf(const proto::Table& table, const proto::Cluster& cluster) {
  std::vector<MissingServer> missing;
  for (const proto::ServerUsage& usage : table.usage()) {
    if (usage.blocks() == 0 && usage.bytes() == 0) continue;
    const auto& members = cluster.members();
    const auto member = std::find_if(members.begin(), members.end(),
                                     [&](const proto::Member& one) { return one.id() == usage.server(); });
    const bool listed = member != members.end();
    if (listed && member->alive() && !member->suspect()) continue;
    MissingServer& server =
        missing.emplace_back(MissingServer{.blocks = usage.blocks(), .bytes = usage.bytes()});
    if (listed) server.member = *member;
    server.member.set_id(usage.server());
  }
  return missing;
}

}  // namespace nam::catalog
