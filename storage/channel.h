#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"
#include "fabric/immediate.h"
#include "fabric/region_directory.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

struct ChannelOptions {
  uint32_t queue_depth = 512;  // work requests in flight to one server
  uint32_t servers_max = 64;
  uint32_t datagram_depth = 512;     // receives of a multicast stream
  uint64_t buffer_bytes = 4u << 20;  // registered scratch memory
  int64_t connect_timeout_us = 3'000'000;
  int64_t operation_timeout_us = 4'000'000;  // without progress
};

/// Interval between checks of the cancel flag during a wait.
inline constexpr int64_t kCancelCheckUs = 20'000;

/// PERMISSION_DENIED: the grant is over.
absl::StatusOr<fabric::Grant::Use> UseOf(const std::shared_ptr<fabric::Grant>& grant);

/// One thread's access to all memory servers: a completion queue, a queue pair per server contacted, and a
/// registered buffer. A channel belongs to the member that the process was when the channel was opened;
/// memory servers end its connections when that member is fenced. Used by one thread at a time.
///
/// After a failed operation the channel is broken and must be dropped, since requests may still be in flight
/// into its buffer. If it is dropped with requests in flight, the process's Grants keep the rest until memory
/// servers have confirmed the end of the connections.
class Channel {
 public:
  ~Channel();
  static absl::StatusOr<std::unique_ptr<Channel>> Open(fabric::Fabric& fabric,
                                                       fabric::RegionDirectory& directory,
                                                       const ChannelOptions& options);

  /// The target of a remote pointer: a connected queue pair and an address for work requests.
  struct Target {
    fabric::QueuePair* queue_pair = nullptr;
    fabric::RemoteAddress address;
    fabric::ImmediateOperations* now = nullptr;  // the queue pair's, if available
    const fabric::Grant* grant = nullptr;        // the memory's grant, if VerbBatch must check it
  };
  /// Resolves [pointer, pointer + bytes), which must lie in one region. Connects if needed. Errors name the
  /// server. Requests that change memory need a Use of its grant, or a VerbBatch that knows the grant.
  absl::StatusOr<Target> Resolve(RemotePtr<void> pointer, uint64_t bytes);
  /// The connection to a memory server.
  absl::StatusOr<fabric::QueuePair*> QueuePairOf(MemoryServerId server);
  /// Resolves memory that a server has registered outside its address space.
  absl::StatusOr<Target> TargetOf(MemoryServerId server, fabric::RemoteAddress address);

  fabric::Fabric& fabric() { return fabric_; }
  /// The member that the connections belong to. 0: none, so they only READ.
  MemberId member() const { return self_.id; }
  fabric::CompletionQueue& completions() { return *completions_; }
  /// Registered scratch memory. The first buffer has ChannelOptions::buffer_bytes.
  fabric::MemoryRegion& buffer(size_t number = 0) { return *buffers_[number]; }
  size_t buffers() const { return buffers_.size(); }
  /// RESOURCE_EXHAUSTED if this much memory cannot be registered.
  absl::Status AddBuffer(size_t bytes);
  /// Drops all buffers but the first. No request in flight may use them.
  void DropAddedBuffers() { buffers_.resize(1); }
  /// The key of the buffer that contains `data`.
  fabric::LocalKey KeyOf(const std::byte* data) const {
    if (static_cast<size_t>(data - buffers_[0]->data()) < buffers_[0]->bytes()) [[likely]]
      return buffers_[0]->lkey();
    return KeyOfAdded(data);
  }
  /// True if queue pairs can View.
  bool in_place() const { return in_place_; }
  const ChannelOptions& options() const { return options_; }
  /// The error of a failed completion, naming the memory server.
  absl::Status Error(const fabric::Completion& completion);
  absl::Status TimedOut(const char* waiting_for);
  /// An error of a queue pair itself; names the memory server, too.
  absl::Status Error(MemoryServerId server, const absl::Status& status);
  bool broken() const { return broken_.load(std::memory_order_relaxed); }
  /// UNAVAILABLE, and the channel is broken, once a connected memory server is buried.
  absl::Status CheckBurials() {
    if (directory_.burials() == burials_seen_) [[likely]]
      return absl::OkStatus();
    return LookForBurials();
  }
  /// Marks the channel broken. Required before abandoning requests in flight, whose completions would reach
  /// the next user.
  void Break() { broken_ = true; }
  /// Keeps a use whose requests may be in flight until the connections have ended. Breaks the channel.
  void Abandon(fabric::Grant::Use use);
  /// Ends all connections of a broken channel. OK: no posted request changes live memory any more (a buried
  /// server's memory is void). UNAVAILABLE: a memory server has not confirmed that by the deadline; call
  /// again.
  absl::Status Disconnect(Deadline deadline);

  /// The sections in which a VerbBatch has requests in flight.
  fabric::Gate& gate() { return *gate_; }
  /// Leaves a section after an error: requests may be in flight until the connections have ended.
  void ParkBroken();
  /// Disconnect without waiting. For the thread that drains the gate.
  bool EndNow();

  /// Waits for at least one completion, at most operation_timeout_us; never returns 0. CANCELLED soon after
  /// `cancel` is set: requests in flight must then still be completed, or the channel broken. Without
  /// `cancel`, the thread's Interruption counts and breaks the channel.
  absl::StatusOr<size_t> WaitSome(std::span<fabric::Completion> completions,
                                  const std::atomic<bool>* cancel = nullptr);

  /// Moves `bytes` between remote and the caller's memory through the channel's buffer, with many requests in
  /// flight. Must not run while a stream uses the channel. A cancelled READ leaves the channel broken.
  absl::Status Read(RemotePtr<void> from, std::span<std::byte> to, const std::atomic<bool>* cancel = nullptr);
  /// PERMISSION_DENIED if the grant is over.
  absl::Status Write(std::span<const std::byte> from, RemotePtr<void> to,
                     const std::shared_ptr<fabric::Grant>& grant);

 private:
  struct Endpoint {
    std::shared_ptr<const fabric::ServerRegions> regions;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    fabric::ImmediateOperations* now = nullptr;  // of queue_pair
  };
  /// The rest of a channel that was dropped with requests in flight.
  class Remains;

  Channel(fabric::Fabric& fabric, fabric::RegionDirectory& directory, const ChannelOptions& options)
      : fabric_(fabric),
        directory_(directory),
        options_(options),
        self_(directory.Self()),
        in_place_(fabric.capabilities().in_place),
        burials_seen_(directory.burials()),
        gate_(directory.grants().MakeGate(fabric.clock())) {}
  fabric::LocalKey KeyOfAdded(const std::byte* data) const;
  absl::StatusOr<Endpoint*> EndpointOf(MemoryServerId server);
  absl::Status LookForBurials();
  absl::Status Named(MemoryServerId server, const absl::Status& status) const;
  absl::Status Transfer(fabric::Opcode opcode, RemotePtr<void> remote, std::byte* local, size_t bytes,
                        const std::atomic<bool>* cancel);
  absl::Status EndConnections(Deadline deadline);

  fabric::Fabric& fabric_;
  fabric::RegionDirectory& directory_;
  const ChannelOptions options_;
  const fabric::MemberProof self_;
  const bool in_place_;
  // Destroyed in reverse: queue pairs, then their completion queue, then the memory they write to.
  std::vector<std::unique_ptr<fabric::MemoryRegion>> buffers_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::map<MemoryServerId, std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<bool> broken_ = false;
  uint64_t burials_seen_;  // the directory's count when last checked
  std::shared_ptr<fabric::Gate> gate_;
  std::vector<fabric::Grant::Use> abandoned_;
};

}  // namespace nam::storage
