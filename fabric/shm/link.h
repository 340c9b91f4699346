#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/served_channel.h"
#include "fabric/shm/socket.h"
#include "fabric/shm/wire.h"

namespace nam::fabric::shm {

/// The UNIX socket of one queue pair: passes region descriptors, and shows when the peer is gone. Shared by
/// the service thread, which reads the socket, and the queue pair.
class Link {
 public:
  explicit Link(UniqueFd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }

  // -- Queue pair's side --
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// Sets the doorbell to ring when the link is lost. The doorbell lives as long as the fabric.
  void set_bell(Doorbell* bell);
  /// Asks the peer for a region and waits for the answer. PERMISSION_DENIED: no such region. UNAVAILABLE or
  /// DEADLINE_EXCEEDED: the peer is lost.
  absl::StatusOr<Packet> RequestRegion(uint32_t rkey, Deadline deadline);
  /// Lets the peer see the end of the connection.
  void Shutdown();

  // -- Service thread's side --
  void MarkLost();
  void DeliverReply(Packet reply);
  uint64_t id = 0;           // in the service
  uint64_t listener_id = 0;  // id of its listener's backlog; 0 once a queue pair owns it (service's lock)
  bool handshaking = false;
  uint64_t source = 0;  // the peer's process
  Deadline handshake_deadline;
  /// Owned by the thread that pops the link from the backlog, once it is done.
  std::unique_ptr<AcceptHandshake> handshake;
  /// The peer process of a datagram connection; null on other connections.
  std::shared_ptr<PeerProcess> datagram_peer;
  /// For a passive listener's connection: the most that the peer may do, and the end that a fence stops.
  Access rights = Access::kAll;
  std::shared_ptr<ServedChannel> served;
  MemberConnections::Place place;

 private:
  const UniqueFd socket_;
  std::atomic<bool> lost_{false};
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<Packet> reply_ ABSL_GUARDED_BY(mutex_);
  Doorbell* bell_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

/// Where a connection goes: served for regions, handed to Accept, or served for datagrams.
enum class Purpose : uint8_t { kPassive, kAccept, kDatagrams };

/// A listener's socket and the connections that wait for Accept. Shared by the service thread and the
/// listener.
class Backlog {
 public:
  /// `admission` decides which members a passive listener serves; null: all peers.
  Backlog(ListeningSocket socket, Purpose purpose, std::shared_ptr<Admission> admission = nullptr)
      : socket_(std::move(socket)), purpose_(purpose), admission_(std::move(admission)) {}

  const ListeningSocket& socket() const { return socket_; }
  Purpose purpose() const { return purpose_; }
  bool passive() const { return purpose_ == Purpose::kPassive; }
  Admission* admission() const { return admission_.get(); }
  /// False if full or closed.
  bool Push(std::shared_ptr<Link> link);
  /// nullptr on timeout.
  std::shared_ptr<Link> Pop(Deadline deadline);
  void Close();
  uint64_t id = 0;  // in the service

 private:
  ListeningSocket socket_;
  const Purpose purpose_;
  const std::shared_ptr<Admission> admission_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace nam::fabric::shm
