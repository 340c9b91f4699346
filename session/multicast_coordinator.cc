#include "session/multicast_coordinator.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "catalog/control_plane.h"
#include "optimizer/replication_cost.h"
#include "partitioner/pieces.h"
#include "partitioner/table_metadata.h"
#include "storage/block.h"
#include "storage/chain_pointers.h"

namespace nam::session {
namespace {

/// A datagram's cost to its sender and receivers grows little with its bytes. So blocks of few datagrams pay
/// from two compute servers on, others only where READs share a link among many. Over `tcp` on one host,
/// multicast beat READ with blocks of 2 KiB from the start, with blocks of 64 KiB not even with 8 servers.
constexpr uint64_t kDatagramsPerServer = 2;
/// Pointers travel in control messages, which must stay small.
constexpr uint64_t kBlocksMax = 1u << 16;
constexpr uint64_t kPointersKeptMax = 1u << 20;
constexpr uint32_t kStreamTimeoutMs = 30'000;
constexpr uint64_t kChannelBytes = 256u << 10;

uint64_t BlocksOf(const proto::Table& table) {
  uint64_t blocks = 0;
  for (const proto::Chain& chain : table.partitions()) blocks += chain.blocks();
  return blocks;
}

/// The datagrams of its largest block, if it is sent as a whole.
uint64_t DatagramsOf(const proto::Table& table) {
  uint64_t bytes = 0;
  for (int p = 0; p < table.partitions_size(); ++p)
    bytes = std::max<uint64_t>(bytes, partitioner::BlockBytesOf(table, static_cast<uint32_t>(p)));
  return (bytes + fabric::kMaxDatagramBytes - 1) / fabric::kMaxDatagramBytes;
}

bool HasLongBlocks(const proto::Table& table) {
  for (int p = 0; p < table.partitions_size(); ++p) {
    if (partitioner::BlockBytesOf(table, static_cast<uint32_t>(p)) > storage::kMaxBlockBytes) return true;
  }
  return false;
}

uint64_t ColumnBytes(const proto::Table& table, const std::vector<uint32_t>& columns) {
  uint64_t row_bytes = 0;
  for (uint32_t column : columns)
    row_bytes += partitioner::StoredBytesOf(table.columns(static_cast<int>(column)));
  return row_bytes * table.rows();
}

}  // namespace

MulticastCoordinator::~MulticastCoordinator() {
  End();
  ending_.clear();
  if (groups_.empty()) return;
  std::vector<uint32_t> groups;
  for (const auto& [server, group] : groups_) groups.push_back(group);
  // Without this message the catalog takes them back when the lease of this client ends.
  attachment_.catalog().ReleaseGroups(attachment_.member(), groups).IgnoreError();
}

std::string MulticastCoordinator::WhyRead(const Query& query, size_t build, Choice mode) const {
  const bool in_place = query.in_place && attachment_.fabric().capabilities().in_place;
  const optimizer::StageTables::Build& side = query.stage.builds[build];
  const proto::Table& table = *side.table;
  if (mode == Choice::kOff) return "nam.multicast is off";
  if (table.has_record()) return "its rows are records";
  if (side.probes) return "it is built late";
  if (catalog::GroupCount(table) > 1) return "it was appended to";
  if (mode == Choice::kAuto && in_place) return "blocks are looked at in place";
  if (query.partitions.size() < 2) return "one compute server needs it";
  const std::vector<uint32_t> first = query.stage.NeededOf(side, query.partitions[0]);
  for (const std::vector<uint32_t>& partitions : query.partitions) {
    if (query.stage.NeededOf(side, partitions) != first) return "each compute server needs a part of it";
  }
  const uint64_t bytes = ColumnBytes(table, side.columns);
  if (bytes == 0) return "it is empty";
  const uint64_t datagrams = DatagramsOf(table);
  if (mode == Choice::kAuto && datagrams > kDatagramsPerServer * query.partitions.size()) {
    return absl::StrFormat("blocks of %d datagrams pay with %d compute servers or more", datagrams,
                           (datagrams + kDatagramsPerServer - 1) / kDatagramsPerServer);
  }
  if (HasLongBlocks(table)) return "its texts are too long for multicast";
  if (BlocksOf(table) > kBlocksMax) return "it has too many blocks for multicast; load it with larger ones";
  return "";
}

std::string MulticastCoordinator::WhyNotCheaper(const Query& query, const std::vector<size_t>& builds) const {
  optimizer::ReplicatedSides sides{.servers = static_cast<int>(query.partitions.size()),
                                   .threads = query.threads};
  std::set<MemoryServerId> homes;
  for (const size_t build : builds) {
    const optimizer::StageTables::Build& side = query.stage.builds[build];
    const proto::Table& table = *side.table;
    const auto bytes = static_cast<double>(ColumnBytes(table, side.columns));
    sides.rows += static_cast<double>(table.rows());
    sides.bytes += bytes;
    sides.datagrams += std::max(bytes / fabric::kMaxDatagramBytes, static_cast<double>(BlocksOf(table)));
    for (const proto::Chain& chain : table.partitions()) {
      for (const uint64_t pointer : chain.head())
        homes.insert(storage::RemotePtr<void>::FromRaw(pointer).server());
    }
  }
  sides.senders = std::max(1, static_cast<int>(homes.size()));
  const optimizer::ReplicationCosts costs = optimizer::CostsOf(sides);
  if (costs.multicast_ms < costs.read_ms) return "";
  return absl::StrFormat("estimated at %.2f ms, multicast at %.2f", costs.read_ms, costs.multicast_ms);
}

absl::StatusOr<std::vector<std::string>> MulticastCoordinator::Start(const Query& query, Choice mode) {
  End();
  std::vector<std::string> why_read;
  std::vector<size_t> builds;
  for (size_t build = 0; build < query.stage.builds.size(); ++build) {
    why_read.push_back(WhyRead(query, build, mode));
    if (why_read.back().empty()) builds.push_back(build);
  }
  if (builds.empty()) return why_read;
  if (mode == Choice::kAuto) {
    const std::string why = WhyNotCheaper(query, builds);
    for (const size_t build : builds) why_read[build] = why;
    if (!why.empty()) return why_read;
  }
  const absl::Status status = StartStreams(query, builds);
  if (status.ok()) return why_read;
  const bool unread = channel_ != nullptr && channel_->broken();
  const bool lost = unread || catalog::Unanswered(status);
  if (unread) channel_.reset();
  End(/*tell=*/!lost);
  if (lost) return status;
  for (size_t build : builds) {
    why_read[build] = absl::StrFormat("multicast not available: %s", std::string(status.message()));
  }
  return why_read;
}

absl::Status MulticastCoordinator::StartStreams(const Query& query, const std::vector<size_t>& builds) {
  ending_.clear();
  std::vector<storage::MulticastTable> tables;
  std::set<MemoryServerId> homes;
  for (size_t build : builds) {
    NAM_ASSIGN_OR_RETURN(storage::MulticastTable table, Describe(query, build));
    for (const storage::MulticastTable::Chain& chain : table.chains) {
      proto::MulticastChain& out = *streams_.add_chains();
      out.set_pipeline(query.stage.builds[build].pipeline);
      out.set_partition(chain.partition);
      out.mutable_pointers()->Add(chain.pointers.begin(), chain.pointers.end());
      for (uint64_t pointer : chain.pointers)
        homes.insert(storage::RemotePtr<void>::FromRaw(pointer).server());
    }
    tables.push_back(std::move(table));
  }
  const std::vector<MemoryServerId> servers(homes.begin(), homes.end());
  NAM_ASSIGN_OR_RETURN(const auto blocks, storage::MulticastBlocks::Number(tables, servers));
  NAM_RETURN_IF_ERROR(FindGroups(servers));
  std::vector<proto::StartMulticastRequest> requests;
  for (size_t s = 0; s < servers.size(); ++s) {
    proto::StartMulticastRequest& request = requests.emplace_back();
    request.set_group(groups_[servers[s]]);
    request.set_members(static_cast<uint32_t>(query.partitions.size()));
    request.set_timeout_ms(kStreamTimeoutMs);
    for (const storage::MulticastExtent& extent : blocks.ExtentsOf(s)) {
      proto::MulticastExtent& out = *request.add_extents();
      for (const storage::ByteRange& run : extent.runs) {
        out.add_run_offsets(run.offset);
        out.add_run_bytes(run.bytes);
      }
      for (const storage::RemotePtr<void> block : extent.blocks) out.add_blocks(block.raw());
    }
  }
  return StartSenders(servers, requests);
}

/// Starts all at once: the query waits for the slowest answer, not for their sum. streams_ has the started
/// ones, even if others have failed.
absl::Status MulticastCoordinator::StartSenders(const std::vector<MemoryServerId>& servers,
                                                const std::vector<proto::StartMulticastRequest>& requests) {
  std::vector<absl::StatusOr<proto::StartMulticastReply>> replies(servers.size(),
                                                                  absl::UnknownError("not asked"));
  {
    std::vector<std::unique_ptr<fabric::Thread>> calls;
    for (size_t s = 0; s < servers.size(); ++s) {
      const auto call = [&, s, cancel = Interruption::flag()] {
        const Interruption interruption(cancel);
        replies[s] = attachment_.StartMulticast(servers[s], requests[s]);
      };
      auto started = attachment_.fabric().TryStartThread("nam-multicast", call);
      if (started.ok()) {
        calls.push_back(*std::move(started));
      } else {
        call();
      }
    }
  }
  absl::Status failed;
  for (size_t s = 0; s < servers.size(); ++s) {
    if (!replies[s].ok()) {
      failed.Update(replies[s].status());
      continue;
    }
    proto::MulticastSender& sender = *streams_.add_senders();
    sender.set_server(servers[s].value());
    sender.set_stream(replies[s]->stream());
    sender.set_group_address(replies[s]->group_address());
    sender.set_board_rkey(replies[s]->board_rkey());
    sender.set_fragment_bytes(replies[s]->fragment_bytes());
  }
  return failed;
}

absl::StatusOr<storage::MulticastTable> MulticastCoordinator::Describe(const Query& query, size_t build) {
  const optimizer::StageTables::Build& side = query.stage.builds[build];
  const proto::Table& table = *side.table;
  storage::MulticastTable out{partitioner::StreamTableOf(table, side.columns), {}};
  for (uint32_t partition : query.stage.NeededOf(side, query.partitions[0])) {
    const proto::Chain& chain = table.partitions(static_cast<int>(partition));
    if (chain.blocks() == 0) continue;
    NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t>* pointers, Pointers(table, partition));
    out.chains.push_back({.partition = partition,
                          .block_rows = chain.block_rows(),
                          .pointers = *pointers,
                          .text_bytes = {chain.text_bytes().begin(), chain.text_bytes().end()}});
  }
  return out;
}

/// A table's blocks stay in place during its allocation's lifetime, so they are looked up once.
absl::StatusOr<const std::vector<uint64_t>*> MulticastCoordinator::Pointers(const proto::Table& table,
                                                                            uint32_t partition) {
  const auto key = std::make_pair(table.allocation(), partition);
  const auto known = pointers_.find(key);
  if (known != pointers_.end()) return &known->second;
  const storage::ChainStart chain = partitioner::ChainStartOf(table, partition);
  if (chain.head.size() < chain.blocks && (channel_ == nullptr || channel_->broken())) {
    NAM_ASSIGN_OR_RETURN(channel_,
                         storage::Channel::Open(attachment_.fabric(), attachment_,
                                                {.queue_depth = 64, .buffer_bytes = kChannelBytes}));
  }
  std::vector<uint64_t> pointers = chain.head;
  if (pointers.size() < chain.blocks) {
    NAM_ASSIGN_OR_RETURN(pointers,
                         storage::PointersOf(*channel_, partitioner::StreamTableOf(table, {}), chain));
  }
  uint64_t kept = pointers.size();
  for (const auto& [other, list] : pointers_) kept += list.size();
  if (kept > kPointersKeptMax) pointers_.clear();
  return &pointers_.emplace(key, std::move(pointers)).first->second;
}

absl::Status MulticastCoordinator::FindGroups(const std::vector<MemoryServerId>& servers) {
  std::vector<MemoryServerId> without;
  for (const MemoryServerId server : servers) {
    if (!groups_.contains(server)) without.push_back(server);
  }
  if (without.empty()) return absl::OkStatus();
  const auto groups =
      attachment_.catalog().AllocateGroups(attachment_.member(), static_cast<uint32_t>(without.size()));
  // Replaces the code: a query can run without the catalog, unlike a memory server.
  if (!groups.ok()) return absl::FailedPreconditionError(groups.status().message());
  if (groups->size() != without.size())
    return absl::InternalError("the catalog gave too few multicast groups");
  for (size_t i = 0; i < without.size(); ++i) groups_[without[i]] = (*groups)[i];
  return absl::OkStatus();
}

proto::MulticastStreams MulticastCoordinator::StreamsFor(uint32_t member) const {
  proto::MulticastStreams streams = streams_;
  streams.set_member(member);
  return streams;
}

void MulticastCoordinator::End(bool tell) {
  for (const proto::MulticastSender& sender : streams_.senders()) {
    if (!tell) break;
    const MemoryServerId server(static_cast<uint16_t>(sender.server()));
    // Without this message the memory server ends it at its deadline.
    auto started = attachment_.fabric().TryStartThread("nam-multicast", [this, server, id = sender.stream()] {
      attachment_.EndMulticast(server, id).IgnoreError();
    });
    if (started.ok()) ending_.push_back(*std::move(started));
  }
  streams_.Clear();
}

}  // namespace nam::session
