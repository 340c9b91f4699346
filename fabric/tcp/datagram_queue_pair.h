#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/receive_ring.h"
#include "fabric/tcp/completion_queue.h"
#include "fabric/tcp/core.h"
#include "fabric/tcp/datagram_key.h"
#include "fabric/tcp/datagram_socket.h"
#include "fabric/tcp/datagram_wire.h"

namespace nam::fabric::tcp {

/// Owns one UDP socket for sending and for datagrams to this queue pair, and one socket per joined group. The
/// polling thread of the completion queue drains them:
///
///     sockets ──▶ epoll_ (watched by the completion queue) ──▶ Progress: recvmmsg into posted receives,
///                                                              verify, complete or reuse the receive
///
/// So a datagram is placed once, in its final buffer; one that does not verify is overwritten by the next.
/// Until the thread polls, datagrams wait in the sockets' buffers; the poll drops those that find no receive.
///
/// Post signs and sends datagrams, many per sendmmsg. They live in a ring of send_depth places:
///
///     freed ≤ taken ≤ sent ≤ posted          posted - freed ≤ send_depth
class TcpDatagramQueuePair final : public DatagramQueuePair {
 public:
  static absl::StatusOr<std::unique_ptr<DatagramQueuePair>> Create(std::shared_ptr<Core> core,
                                                                   TcpCompletionQueue& queue,
                                                                   const DatagramOptions& options);
  ~TcpDatagramQueuePair() override;

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

  // -- For the completion queue --------------------------------------------------
  const DatagramOptions& options() const { return options_; }
  /// Readable when Progress has work.
  int fd() const { return epoll_.get(); }
  size_t Pop(std::span<Completion> completions);
  void Progress();

 private:
  /// A receiving socket. Its datagrams carry the target of `address`.
  struct Source {
    UniqueFd socket;
    DatagramAddress address;
  };
  struct Place {
    uint64_t id = 0;
    Signal signal = Signal::kSignaled;
    CompletionStatus status = CompletionStatus::kOk;
    std::byte* payload = nullptr;
    sockaddr_in to{};
    DatagramHeader header;
  };
  static constexpr size_t kBatch = 64;  // datagrams per system call

  TcpDatagramQueuePair(std::shared_ptr<Core> core, TcpCompletionQueue& queue, const DatagramOptions& options,
                       DatagramInterface interface, uint64_t identity);
  absl::Status Watch(Source& source);
  void Unwatch(Source& source);
  absl::StatusOr<DatagramTarget> AddTarget(const DatagramAddress& address);

  Place& PlaceOf(uint64_t position) { return places_[position % places_.size()]; }
  void Enqueue(const DatagramRequest& request);
  void SendPending();
  /// Sends up to kBatch datagrams from sent_ on. False if the socket takes no more for now.
  bool SendBatch();
  void WatchOutput(bool wanted);

  void Receive(Source& source);
  /// The number of leading receives that can take a datagram; unusable ones complete with an error.
  size_t UsableReceives();
  void DropWaiting(Source& source);
  enum class Verdict { kGood, kNoReceive, kRefused };
  Verdict Judge(const Source& source, const mmsghdr& message, const LocalBuffer& into,
                const DatagramHeader& header);
  void FinishReceive(const ReceiveRequest& receive, CompletionStatus status, uint32_t bytes);

  const std::shared_ptr<Core> core_;
  TcpCompletionQueue& queue_;
  const DatagramOptions options_;
  const DatagramInterface interface_;
  const uint64_t id_;
  const uint64_t identity_;  // in headers: sender of its datagrams, target of those to it
  UniqueFd epoll_;
  Source own_;
  std::vector<std::unique_ptr<Source>> groups_;  // joined
  std::vector<DatagramAddress> targets_;         // handle - 1 is the index

  DatagramKey key_;
  DatagramVerifier verifier_;
  const std::unique_ptr<std::byte[]> sealed_;  // encrypted payloads, one per place; only if encrypting
  uint64_t sequence_ = 0;
  std::vector<Place> places_;
  uint64_t freed_ = 0;
  uint64_t taken_ = 0;
  uint64_t sent_ = 0;
  uint64_t posted_ = 0;
  bool output_watched_ = false;

  ReceiveRing receives_;
  std::deque<Completion> received_;             // not yet taken
  std::array<DatagramHeader, kBatch> headers_;  // of the datagrams being received
};

}  // namespace nam::fabric::tcp
