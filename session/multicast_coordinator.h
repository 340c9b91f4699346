#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "optimizer/assignment.h"
#include "optimizer/plan.h"
#include "proto/compute.pb.h"
#include "session/settings.h"
#include "storage/channel.h"
#include "storage/multicast_blocks.h"

namespace nam::session {

/// The coordinator's part in multicast: which build sides several compute servers need alike, and the streams
/// of one query at a time. A build side that cannot be multicast is READ; why is kept for EXPLAIN ANALYZE.
///
///     catalog: a group for each memory server, kept for the session
///     Start:   blocks' pointers (the head's, and by READ) ─▶ StartMulticast on all memory servers at once
///     then     AttemptRequest.multicast tells the compute servers what to join
///     End:     EndMulticast on each, while the caller goes on
///
/// Used by one thread; those that it starts end before the next streams begin.
class MulticastCoordinator {
 public:
  explicit MulticastCoordinator(catalog::Attachment& attachment) : attachment_(attachment) {}
  ~MulticastCoordinator();

  struct Query {
    const optimizer::Plan& plan;
    const optimizer::TableRefs& tables;
    std::vector<uint32_t> pipelines;                // of the physical plan: that builds each of plan.joins
    std::vector<std::vector<uint32_t>> partitions;  // of the driving table, for each compute server
    int threads = 1;                                // of the compute server that has fewest
    bool in_place = false;                          // blocks are taken where they lie, if the fabric can
  };
  /// For each join empty if its build side is multicast, else why it is READ. Fails only if a memory server
  /// does not answer that has some of the blocks: READ would but wait for it once more.
  absl::StatusOr<std::vector<std::string>> Start(const Query& query, Choice mode);
  /// What the compute server with number `member` in Query::partitions must know.
  proto::MulticastStreams StreamsFor(uint32_t member) const;
  /// Untold, memory servers end a stream by themselves: nobody waits for one that may be out of reach.
  void End(bool tell = true);

 private:
  std::string WhyRead(const Query& query, size_t join, Choice mode) const;
  /// Of build sides that could all be multicast; empty if that is estimated to pay.
  std::string WhyNotCheaper(const Query& query, const std::vector<size_t>& joins) const;
  absl::Status StartStreams(const Query& query, const std::vector<size_t>& joins);
  absl::Status StartSenders(const std::vector<MemoryServerId>& servers,
                            const std::vector<proto::StartMulticastRequest>& requests);
  absl::StatusOr<storage::MulticastTable> Describe(const Query& query, size_t join);
  absl::StatusOr<const std::vector<uint64_t>*> Pointers(const proto::Table& table, uint32_t partition);
  absl::Status FindGroups(const std::vector<MemoryServerId>& servers);

  catalog::Attachment& attachment_;
  std::map<MemoryServerId, uint32_t> groups_;
  std::unique_ptr<storage::Channel>
      channel_;  // made for the first chain whose pointers are not all in its head
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint64_t>> pointers_;  // by allocation and partition
  proto::MulticastStreams streams_;                                          // under way
  std::vector<std::unique_ptr<fabric::Thread>> ending_;                      // those before
};

}  // namespace nam::session
