#include "computeserver/multicast_build.h"

#include <algorithm>

#include "base/status_macros.h"
#include "partitioner/table_metadata.h"

namespace nam::computeserver {
namespace {

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(std::string("not the multicast streams of this query: ") + what);
}

/// The partitions of the join's build side that have blocks at all.
std::vector<uint32_t> PartitionsWithBlocks(const QueryShape& shape, size_t join) {
  const proto::Table& table = *shape.tables[static_cast<size_t>(shape.plan.joins[join].table)];
  std::vector<uint32_t> partitions;
  for (uint32_t p : shape.joins[join].partitions) {
    if (table.partitions(static_cast<int>(p)).blocks() > 0) partitions.push_back(p);
  }
  return partitions;
}

}  // namespace

absl::StatusOr<MulticastBuild> MulticastBuild::From(const proto::MulticastStreams& streams,
                                                    const QueryShape& shape) {
  MulticastBuild build;
  build.member = streams.member();
  for (const proto::MulticastSender& sender : streams.senders()) {
    if (sender.server() == 0 || sender.server() > UINT16_MAX) return Bad("a sender without an id");
    build.senders.push_back({MemoryServerId(static_cast<uint16_t>(sender.server())), sender.stream(),
                             sender.group_address(), fabric::RemoteKey{sender.board_rkey()},
                             sender.fragment_bytes()});
  }
  for (const proto::MulticastChain& chain : streams.chains()) {
    const size_t join = chain.join();
    if (join >= shape.joins.size()) return Bad("no such join");
    const int table = shape.plan.joins[join].table;
    const proto::Table& meta = *shape.tables[static_cast<size_t>(table)];
    if (build.joins.empty() || build.joins.back() != join) {
      if (build.Covers(join)) return Bad("its chains are not in order");
      build.joins.push_back(join);
      build.tables.push_back(
          {partitioner::StreamTableOf(meta, shape.plan.tables[static_cast<size_t>(table)].columns), {}});
    }
    if (chain.partition() >= static_cast<uint32_t>(meta.partitions_size())) return Bad("no such partition");
    const proto::Chain& known = meta.partitions(static_cast<int>(chain.partition()));
    if (chain.pointers_size() == 0 || static_cast<uint32_t>(chain.pointers_size()) != known.blocks())
      return Bad("not as many blocks as the chain has");
    build.tables.back().chains.push_back(
        {chain.partition(), known.block_rows(), {chain.pointers().begin(), chain.pointers().end()}});
  }
  for (size_t t = 0; t < build.tables.size(); ++t) {
    std::vector<uint32_t> given;
    for (const auto& chain : build.tables[t].chains) given.push_back(chain.partition);
    if (given != PartitionsWithBlocks(shape, build.joins[t]))
      return Bad("not the partitions that are needed");
  }
  if (build.senders.empty() != build.tables.empty()) return Bad("senders without blocks");
  return build;
}

bool MulticastBuild::Covers(size_t join) const {
  return std::find(joins.begin(), joins.end(), join) != joins.end();
}

}  // namespace nam::computeserver
