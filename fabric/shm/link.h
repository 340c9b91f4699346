#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/served_channel.h"
#include "fabric/shm/socket.h"
#include "fabric/shm/wire.h"

namespace nam::fabric::shm {

/// The UNIX socket of one queue pair: hands out region descriptors, and tells when the peer is gone.
/// Shared by the service thread, which reads the socket, and the queue pair.
class Link {
 public:
  explicit Link(UniqueFd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }

  // -- Queue pair's side --
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// Rung when the link is lost. The doorbell lives as long as the fabric.
  void set_bell(Doorbell* bell);
  /// Asks the peer for a region and waits for the answer. PERMISSION_DENIED: there is none;
  /// UNAVAILABLE or DEADLINE_EXCEEDED: the peer is lost.
  absl::StatusOr<Packet> RequestRegion(uint32_t rkey, Deadline deadline);
  /// The peer then sees the end of the connection.
  void Shutdown();

  // -- Service thread's side --
  void MarkLost();
  void DeliverReply(Packet reply);
  uint64_t id = 0;           // in the service
  uint64_t listener_id = 0;  // of the backlog it came through; 0 once a queue pair owns it (service's lock)
  bool handshaking = false;
  uint64_t source = 0;  // the peer's process
  Deadline handshake_deadline;
  /// Belongs to whoever pops the link from the backlog once it is done.
  std::unique_ptr<AcceptHandshake> handshake;
  /// Who came to this fabric's socket for datagrams; nobody on other connections.
  std::shared_ptr<PeerProcess> datagram_peer;
  /// Of a passive listener's connection: the most that the peer may do, and what a fence of its member stops.
  Access rights = Access::kAll;
  std::shared_ptr<ServedChannel> served;
  MemberConnections::Place place;

 private:
  const UniqueFd socket_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Packet> reply_;
  Doorbell* bell_ = nullptr;
};

/// What becomes of a connection: served for regions, handed to Accept, or served for datagrams.
enum class Purpose : uint8_t { kPassive, kAccept, kDatagrams };

/// A listener's socket and the connections that wait for Accept. Shared by the service thread and
/// the listener.
class Backlog {
 public:
  /// `admission`: null, or who says whom a passive listener serves.
  Backlog(ListeningSocket socket, Purpose purpose, std::shared_ptr<Admission> admission = nullptr)
      : socket_(std::move(socket)), purpose_(purpose), admission_(std::move(admission)) {}

  const ListeningSocket& socket() const { return socket_; }
  Purpose purpose() const { return purpose_; }
  bool passive() const { return purpose_ == Purpose::kPassive; }
  Admission* admission() const { return admission_.get(); }
  /// False when it is full or closed.
  bool Push(std::shared_ptr<Link> link);
  /// nullptr when the deadline passed first.
  std::shared_ptr<Link> Pop(Deadline deadline);
  void Close();
  uint64_t id = 0;  // in the service

 private:
  ListeningSocket socket_;
  const Purpose purpose_;
  const std::shared_ptr<Admission> admission_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Link>> links_;
  bool closed_ = false;
};

}  // namespace nam::fabric::shm
