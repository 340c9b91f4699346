#include "catalog/missing_servers.h"

#include "catalog/server_ids.h"

namespace nam::catalog {
namespace {

std::string WhyLost(const proto::Member& member, const proto::Table& table) {
  for (const proto::LostAllocation& lost : member.lost()) {
    bool of_table = lost.allocation() == table.allocation();
    for (const proto::ChainGroup& group : table.groups()) of_table |= lost.allocation() == group.allocation();
    if (of_table) return lost.why();
  }
  return "";
}

}  // namespace

std::string StateOf(const proto::Member& member) {
  return !member.alive() ? "buried" : member.suspect() ? "suspect" : "alive";
}

std::vector<MissingServer> MissingServersOf(const proto::Table& table, const proto::Cluster& cluster) {
  std::vector<MissingServer> missing;
  for (const proto::ServerUsage& usage : table.usage()) {
    if (usage.blocks() == 0 && usage.bytes() == 0) continue;
    const proto::Member* const member = FindServer(cluster, usage.server());
    const auto lost = member == nullptr ? std::string() : WhyLost(*member, table);
    if (member != nullptr && member->alive() && !member->suspect() && lost.empty()) continue;
    MissingServer& server = missing.emplace_back(MissingServer{.member = {},
                                                               .blocks = usage.blocks(),
                                                               .bytes = usage.bytes(),
                                                               .server = usage.server(),
                                                               .lost = lost});
    if (member != nullptr) {
      server.member = *member;
    } else {
      server.member.set_id(usage.server());
    }
  }
  return missing;
}

}  // namespace nam::catalog
