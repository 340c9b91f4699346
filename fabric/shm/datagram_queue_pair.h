#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/receive_ring.h"
#include "fabric/shm/completion_queue.h"
#include "fabric/shm/datagram_directory.h"
#include "fabric/shm/datagram_ring.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/link.h"

namespace nam::fabric::shm {

class Service;

/// A send copies into the target's ring inside Post and completes at once. When the doorbell was rung, or
/// receives are posted for waiting datagrams, the thread copies datagrams out of the incoming rings. A
/// datagram that finds no posted receive when the thread polls is dropped. All of this runs on the completion
/// queue's thread; the service thread adds rings and members (datagram_directory.h).
class ShmDatagramQueuePair final : public DatagramQueuePair {
 public:
  /// The parts of its fabric that it uses; must outlive it.
  struct Environment {
    const Identity* identity = nullptr;
    Service* service = nullptr;
    int64_t peer_timeout_us = 0;
    std::atomic<int>* live_objects = nullptr;
    std::string socket;  // the fabric's, for datagrams
  };

  /// Requires valid options that fit `completions`.
  ShmDatagramQueuePair(const Environment& environment, ShmCompletionQueue* completions,
                       const DatagramOptions& options);
  ~ShmDatagramQueuePair() override;

  uint64_t id() const override { return id_; }
  uint32_t bytes_max() const override { return kMaxDatagramBytes; }
  std::string address() const override;
  absl::StatusOr<DatagramTarget> Resolve(const std::string& address) override;
  absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number) override;
  absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const override;
  absl::Status Join(const std::string& group_address) override;
  absl::Status Leave(const std::string& group_address) override;
  absl::Status Post(std::span<const DatagramRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;

  // -- For the completion queue --
  void Progress();

 private:
  /// The ring to one receiver.
  struct Outgoing {
    DatagramRingWriter ring;
    std::shared_ptr<Link> link;
    std::shared_ptr<PeerProcess> peer;
    Doorbell* bell = nullptr;  // in `peer`
  };
  struct Target {
    std::string address;
    uint64_t group_id = 0;
    std::shared_ptr<DatagramGroup> group;  // set for a group of this process; else `single` is
    std::optional<Outgoing> single;
    bool written = false;  // readers must still be rung
  };
  struct Membership {
    std::string address;
    std::shared_ptr<Link> link;
    DatagramRingReader reader;
  };
  struct Connection {
    std::shared_ptr<Link> link;
    std::shared_ptr<PeerProcess> peer;
    Packet reply;
  };

  /// Makes the single request of a new connection to `address`, then watches the connection.
  absl::StatusOr<Connection> Request(const DatagramAddress& address, const Message& request,
                                     std::span<const int> descriptors);
  absl::StatusOr<Connection> TryRequest(const DatagramAddress& address, const Message& request,
                                        std::span<const int> descriptors);
  void Close(const Link& link);
  static absl::StatusOr<DatagramTarget> HandleOf(size_t index) {
    return DatagramTarget{static_cast<uint32_t>(index + 1)};
  }

  void Write(Target& target, const LocalBuffer& from);
  void RingReaders(Target& target);
  void Finish(const DatagramRequest& request, CompletionStatus status);

  void ReceiveAll();
  void Receive(DatagramRingReader& reader, bool drop, DatagramDrops& drops);
  /// The oldest receive that can take a datagram; older unusable ones complete with an error. nullptr if
  /// none.
  const ReceiveRequest* UsableReceive();
  void FinishReceive(CompletionStatus status, uint32_t bytes);

  const uint64_t id_;
  const Environment environment_;
  ShmCompletionQueue& completions_;
  const DatagramOptions options_;
  const uint64_t inbox_id_;
  const std::shared_ptr<DatagramInbox> inbox_;

  std::vector<Target> targets_;  // handle - 1 is the index
  std::vector<Membership> memberships_;
  std::vector<std::shared_ptr<IncomingRing>> incoming_;
  size_t next_reader_ = 0;  // ring to read first; rotates for fairness

  uint32_t sends_used_ = 0;
  uint32_t unsignaled_ =
      0;  // completed since the last completion, which did not free them; the next one will
  uint32_t receives_used_ = 0;
  bool waiting_ = false;  // rings hold datagrams that found no receive
  ReceiveRing receives_;
};

}  // namespace nam::fabric::shm
