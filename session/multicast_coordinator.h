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
#include "optimizer/stage_tables.h"
#include "proto/compute.pb.h"
#include "session/settings.h"
#include "storage/channel.h"
#include "storage/multicast_blocks.h"

namespace nam::session {

/// The coordinator's part in multicast: chooses the build sides that several compute servers need alike, and
/// runs the streams of one query at a time. A build side that cannot be multicast is READ; EXPLAIN ANALYZE
/// reports why.
///
///     catalog: a group for each memory server, kept for the session
///     Start:   blocks' pointers (the head's, and by READ) ─▶ StartMulticast on all memory servers at once
///     then     AttemptRequest.multicast tells the compute servers what to join
///     End:     EndMulticast on each, while the caller goes on
///
/// Used by one thread; threads that it starts end before the next streams begin.
class MulticastCoordinator {
 public:
  explicit MulticastCoordinator(catalog::Attachment& attachment) : attachment_(attachment) {}
  ~MulticastCoordinator();

  struct Query {
    const optimizer::StageTables& stage;            // claims a table
    std::vector<std::vector<uint32_t>> partitions;  // of the claimed table, for each compute server
    int threads = 1;                                // the fewest of a compute server
    bool in_place = false;                          // blocks are used in place, if the fabric can
  };
  /// Starts the streams of a query. Returns for each build side the reason why it is READ, or an empty text
  /// if it is multicast. Fails only if a memory server with some of the blocks does not answer: a READ would
  /// only wait for it again.
  absl::StatusOr<std::vector<std::string>> Start(const Query& query, Choice mode);
  /// The streams for the compute server with number `member` in Query::partitions.
  proto::MulticastStreams StreamsFor(uint32_t member) const;
  /// Without `tell`, memory servers end a stream by themselves: no call waits for an unreachable one.
  void End(bool tell = true);

 private:
  std::string WhyRead(const Query& query, size_t build, Choice mode) const;
  /// The reason not to multicast these build sides; empty if multicast is estimated to pay.
  std::string WhyNotCheaper(const Query& query, const std::vector<size_t>& builds) const;
  absl::Status StartStreams(const Query& query, const std::vector<size_t>& builds);
  absl::Status StartSenders(const std::vector<MemoryServerId>& servers,
                            const std::vector<proto::StartMulticastRequest>& requests);
  absl::StatusOr<storage::MulticastTable> Describe(const Query& query, size_t build);
  absl::StatusOr<const std::vector<uint64_t>*> Pointers(const proto::Table& table, uint32_t partition);
  absl::Status FindGroups(const std::vector<MemoryServerId>& servers);

  catalog::Attachment& attachment_;
  std::map<MemoryServerId, uint32_t> groups_;
  std::unique_ptr<storage::Channel>
      channel_;  // made for the first chain whose pointers are not all in its head
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint64_t>> pointers_;  // by allocation and partition
  proto::MulticastStreams streams_;                                          // under way
  std::vector<std::unique_ptr<fabric::Thread>> ending_;                      // earlier ones
};

}  // namespace nam::session
