#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "storage/multicast_layout.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

struct MulticastSenderOptions {
  MemoryServerId server;  // this server
  uint32_t group = 0;     // its number, from the catalog
  uint32_t members = 0;   // number of members to wait for, 1 … kMulticastMembersMax
  uint32_t send_depth = 128;
  int64_t join_timeout_us = 1'000'000;     // then the stream starts with the members present
  int64_t member_timeout_us = 250'000;     // a member that delays all others this long is left behind
  int64_t stream_timeout_us = 30'000'000;  // limit of the whole stream
};

struct MulticastSenderCounters {
  uint64_t blocks = 0;
  uint64_t datagrams = 0;
  uint64_t bytes = 0;
  uint32_t members_left_behind = 0;
  int64_t waiting_ns = 0;  // for credit
};

/// Sends one stream of blocks to one group (protocol: multicast_layout.h). Copies the blocks into datagrams
/// without reading their contents. Any thread may open and destroy it; one thread runs it. Members may use
/// the board until it is destroyed.
class MulticastSender {
 public:
  /// A block's bytes in local memory, readable as long as the sender lives; nullptr if it has none.
  using BlockSource = std::function<const std::byte*(RemotePtr<void> block, uint64_t bytes)>;

  /// FAILED_PRECONDITION says why multicast does not work here. INVALID_ARGUMENT: not a valid list of blocks.
  static absl::StatusOr<std::unique_ptr<MulticastSender>> Open(fabric::Fabric& fabric,
                                                               const BlockSource& source,
                                                               std::vector<MulticastExtent> extents,
                                                               const MulticastSenderOptions& options);
  ~MulticastSender();

  const MulticastAddress& address() const { return address_; }
  /// Sends everything. CANCELLED soon after `cancel` is set; DEADLINE_EXCEEDED after stream_timeout_us, or if
  /// no member joined. In all cases the board then says that the stream has ended.
  absl::Status Run(const std::atomic<bool>& cancel);
  /// For the running thread; afterwards for any thread.
  const MulticastSenderCounters& counters() const { return counters_; }

 private:
  struct Member {
    uint64_t credit = 0;
    int64_t changed_ns = 0;
    bool left_behind = false;
  };
  MulticastSender(fabric::Fabric& fabric, BlockSource source, std::vector<MulticastExtent> extents,
                  const MulticastSenderOptions& options);
  absl::Status Prepare();
  absl::Status CheckExtents() const;
  absl::Status SendAll(const std::atomic<bool>& cancel);
  absl::Status SendBlock(const MulticastExtent& extent, RemotePtr<void> block,
                         const std::atomic<bool>& cancel);
  absl::Status AwaitMembers(const std::atomic<bool>& cancel);
  absl::Status AwaitCredit(const std::atomic<bool>& cancel);
  absl::StatusOr<std::byte*> NextBuffer(const std::atomic<bool>& cancel);
  absl::Status AwaitCompletions(const std::atomic<bool>& cancel);
  absl::Status Flush();
  absl::Status Pause(const std::atomic<bool>& cancel, int64_t& pause_us);
  absl::Status CheckRunning(const std::atomic<bool>& cancel) const;
  void HandleCompletions(std::span<const fabric::Completion> done);
  /// Reads the members' credit; returns the number of members whose credit is not 0.
  uint32_t RefreshLimit();
  void LeaveStalledMembersBehind(int64_t blocked_since_ns);
  void Publish(bool ended);

  fabric::Fabric& fabric_;
  const BlockSource source_;
  const std::vector<MulticastExtent> extents_;
  const MulticastSenderOptions options_;
  MulticastAddress address_;
  Deadline give_up_;

  // Destroyed in reverse: the queue pair, its completion queue, the memory that they use.
  std::unique_ptr<fabric::MemoryRegion> board_region_;
  std::unique_ptr<fabric::MemoryRegion> ring_;  // of datagrams, in batches
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::DatagramQueuePair> queue_pair_;
  fabric::DatagramTarget group_;

  std::vector<Member> members_;
  uint64_t limit_ = 0;  // least credit of all members
  uint32_t block_ = 0;
  std::vector<uint32_t> lengths_;  // of the datagrams in the ring
  uint32_t prepared_ = 0;          // written into the ring
  uint32_t posted_ = 0;            // passed to the queue pair
  uint32_t completed_ = 0;
  MulticastSenderCounters counters_;
};

}  // namespace nam::storage
