#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/shm/datagram_ring.h"
#include "fabric/shm/peer_process.h"
#include "fabric/shm/wire.h"

/// Passes the rings of datagram_ring.h from writers to readers, over connections to the one socket that a
/// fabric opens for its datagrams (wire.h). A connection stands for one membership or one sender's ring,
/// which ends with the connection, whether closed or dead.
namespace nam::fabric::shm {

/// A queue pair is `@socket/q0123456789abcdef`, a group is `@socket/g…`. The number is random.
struct DatagramAddress {
  std::string socket;
  bool is_group = false;
  uint64_t id = 0;
};
std::string FormatDatagramAddress(const DatagramAddress& address);
std::optional<DatagramAddress> ParseDatagramAddress(const std::string& text);

/// The ring of one sender to one queue pair.
struct IncomingRing {
  explicit IncomingRing(DatagramRingReader r) : reader(std::move(r)) {}
  DatagramRingReader reader;       // used by the queue pair's thread
  std::atomic<bool> ended{false};  // no more writes will come
};

/// The incoming rings of one queue pair. Shared by its thread and the service thread.
class DatagramInbox {
 public:
  DatagramInbox(Doorbell* bell, uint32_t bell_index) : bell_(*bell), bell_index_(bell_index) {}
  uint32_t bell_index() const { return bell_index_; }

  // -- Service thread --
  /// RESOURCE_EXHAUSTED if the queue pair has too many.
  absl::Status Add(std::shared_ptr<IncomingRing> ring);
  void End(IncomingRing& ring);
  // -- Queue pair's thread --
  /// The rings added since the last call; usually none.
  std::vector<std::shared_ptr<IncomingRing>> TakeAdded();
  void OnErased(uint32_t count) { count_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  Doorbell& bell_;
  const uint32_t bell_index_;
  std::atomic<uint32_t> count_{0};
  std::atomic<bool> has_added_{false};
  Mutex mutex_;
  std::vector<std::shared_ptr<IncomingRing>> added_ ABSL_GUARDED_BY(mutex_);
};

/// A group opened by this process. Its queue pair writes the ring; the service thread adds members.
class DatagramGroup {
 public:
  explicit DatagramGroup(DatagramRingWriter ring) : ring_(std::move(ring)) {}

  // -- Service thread --
  absl::Status Add(uint64_t link, std::shared_ptr<PeerProcess> peer, uint32_t bell_index);
  void Remove(uint64_t link);
  absl::StatusOr<UniqueFd> Descriptor() const { return ring_.Descriptor(); }
  uint32_t slots() const { return ring_.slots(); }
  // -- Queue pair's thread --
  void Write(const std::byte* payload, uint32_t bytes) { ring_.Write(payload, bytes); }
  void RingMembers();

 private:
  struct Member {
    uint64_t link = 0;
    std::shared_ptr<PeerProcess> peer;
    Doorbell* bell = nullptr;
  };
  DatagramRingWriter ring_;
  Mutex mutex_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
};

/// All queue pairs and groups of this fabric that peers can send to or join. Any thread.
class DatagramDirectory {
 public:
  void AddInbox(uint64_t id, std::shared_ptr<DatagramInbox> inbox);
  void RemoveInbox(uint64_t id);
  void AddGroup(uint64_t id, std::shared_ptr<DatagramGroup> group);
  void RemoveGroup(uint64_t id);

  // -- Service thread --
  /// Answers the one request of a connection. An error ends the connection.
  absl::Status Answer(int socket, uint64_t link, const std::shared_ptr<PeerProcess>& peer,
                      const Packet& packet);
  /// The connection has ended.
  void Forget(uint64_t link);

  // -- Dropped datagrams --
  void Count(const DatagramDrops& drops);
  DatagramDrops drops() const;

 private:
  /// The object that a connection stands for. Exactly one is set.
  struct Served {
    std::shared_ptr<DatagramGroup> group;
    std::shared_ptr<DatagramInbox> inbox;
    std::shared_ptr<IncomingRing> ring;
  };
  absl::Status Join(int socket, uint64_t link, const std::shared_ptr<PeerProcess>& peer,
                    const Message& request);
  absl::Status Accept(int socket, uint64_t link, const Packet& packet);

  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<DatagramInbox>> inboxes_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<DatagramGroup>> groups_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Served> served_;  // by link; service thread only
  std::atomic<uint64_t> no_receive_{0};
  std::atomic<uint64_t> overrun_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace nam::fabric::shm
