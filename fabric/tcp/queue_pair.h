#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/net/sealed_stream.h"
#include "fabric/tcp/completion_queue.h"
#include "fabric/tcp/core.h"
#include "fabric/tcp/receive_queue.h"
#include "fabric/tcp/wire.h"

namespace nam::fabric::tcp {

/// The initiator's side: one socket that carries requests out and replies back, and a second one that the NIC
/// thread serves for the peer, unless the peer is a passive listener.
///
/// Work requests live in a ring of send_depth places from Post until a completion at or after them is taken.
/// Four counters, which only grow, track the steps:
///
///     freed ≤ taken ≤ answered ≤ sent ≤ posted          posted - freed ≤ send_depth
///
/// Bytes go from and to their final places: headers in the ring, payloads in the caller's buffers. Replies
/// come in order and an error is the last of them, so one recvmsg scatters many replies without inspecting
/// the first.
class TcpQueuePair final : public QueuePair {
 public:
  /// `served` is the socket of the peer's requests; none if the peer is passive.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(std::shared_ptr<Core> core,
                                                           TcpCompletionQueue& queue,
                                                           const QueuePairOptions& options,
                                                           net::Stream requests, net::Stream served,
                                                           std::string peer);
  ~TcpQueuePair() override;

  uint64_t id() const override { return id_; }
  QueuePairState state() const override { return state_; }
  std::string peer() const override;
  absl::Status Post(std::span<const WorkRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;
  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  absl::Status Disconnect(Deadline deadline) override;

  // -- For the completion queue --------------------------------------------------
  const QueuePairOptions& options() const { return options_; }
  int fd() const { return requests_.fd(); }
  size_t Pop(std::span<Completion> completions);
  void Progress();
  /// The socket is readable, perhaps only because the peer closed.
  void OnSocketEvent();
  bool HasNews() const { return receives_->HasNews() || (receives_->peer_lost() && !receives_ended_); }
  bool wants_output() const { return sent_ < sendable_ && !output_lost_; }
  /// The deadline of the peer's next sign of life while requests are pending.
  int64_t check_at_ns() const {
    return answered_ < posted_ ? check_at_ns_ : std::numeric_limits<int64_t>::max();
  }

 private:
  struct Place {
    uint64_t id = 0;
    Signal signal = Signal::kSignaled;
    CompletionStatus status = CompletionStatus::kOk;
    LocalBuffer local;
    const std::byte* payload = nullptr;  // caller's buffer, or the place's inline bytes
    RequestHeader request;
    ReplyHeader reply;
    /// Request bytes on the wire, and reply bytes of a success.
    size_t request_bytes() const {
      return sizeof(request) + (CarriesPayload(request.opcode) ? request.bytes : 0);
    }
    size_t reply_bytes() const {
      return sizeof(reply) + (request.opcode == Opcode::kRead ? request.bytes : 0);
    }
  };

  TcpQueuePair(std::shared_ptr<Core> core, TcpCompletionQueue& queue, const QueuePairOptions& options,
               net::Stream requests, std::string peer);

  Place& PlaceOf(uint64_t position) { return places_[position % places_.size()]; }
  void Enqueue(const WorkRequest& request);
  void SendPending();
  /// Requests of which the peer may have seen a part.
  uint64_t answerable() const { return sent_ + (sent_bytes_ > 0); }
  void ReceiveReplies();
  bool ConsumeReplies(size_t bytes);
  void EndReceivesIfPeerLost();
  void CheckPeer();
  /// Fails the unsendable request once everything before it is done.
  void FailAtUnsendable();
  void Fail(CompletionStatus status);
  void StayAlive();

  const std::shared_ptr<Core> core_;
  TcpCompletionQueue& queue_;
  const QueuePairOptions options_;
  const uint64_t id_;
  const std::string peer_;
  net::Stream requests_;
  NicThread* nic_ = nullptr;  // serves the peer's requests, if it may post any
  const std::shared_ptr<ReceiveQueue> receives_;

  QueuePairState state_ = QueuePairState::kReady;
  std::vector<Place> places_;
  const std::unique_ptr<std::byte[]> inline_bytes_;  // options_.inline_bytes_max per place
  uint64_t freed_ = 0;
  uint64_t taken_ = 0;
  uint64_t answered_ = 0;
  uint64_t sent_ = 0;
  uint64_t posted_ = 0;
  uint64_t sendable_ = 0;      // posted_, or the first request that must not be sent
  size_t sent_bytes_ = 0;      // of the request at sent_
  size_t answered_bytes_ = 0;  // of the reply at answered_
  bool output_lost_ = false;
  bool receives_ended_ = false;
  bool ended_by_peer_ = false;  // the peer executes nothing more
  bool end_unclear_ = false;    // the connection is over, and the peer may not know it
  int64_t check_at_ns_ = std::numeric_limits<int64_t>::max();
};

}  // namespace nam::fabric::tcp
