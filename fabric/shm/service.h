#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/fabric.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/link.h"

namespace nam::fabric::shm {

/// The single service thread of a fabric: accepts and authenticates peers, hands out region descriptors, and
/// detects that peers are gone. It never waits for a peer, so no peer can block it. Unauthenticated peers are
/// bounded in time and number (fabric/strangers.h); other users' processes are refused. Public functions are
/// for any thread.
class Service {
 public:
  /// `identity` must outlive the service. A peer has `timeout_us` for its handshake.
  static absl::StatusOr<std::unique_ptr<Service>> Start(const Identity& identity, int64_t timeout_us);
  ~Service();

  void AddBacklog(const std::shared_ptr<Backlog>& backlog);
  /// Closes the backlog's served and waiting connections.
  void RemoveBacklog(const Backlog& backlog);

  /// Takes over a connection that a queue pair now owns, made by Connect or taken by Accept.
  void AddLink(const std::shared_ptr<Link>& link);
  void HandOver(Link& link);
  void RemoveLink(const Link& link);

 private:
  /// Exactly one is set.
  struct Source {
    std::shared_ptr<Link> link;
    std::shared_ptr<Backlog> backlog;
  };

  Service(const Identity& identity, int64_t timeout_us, UniqueFd epoll, UniqueFd wake, UniqueFd spare);
  void Run();
  Source Find(uint64_t id);
  uint64_t Watch(int descriptor, Source source);
  void Unwatch(uint64_t id, int descriptor);

  void AcceptAll(const std::shared_ptr<Backlog>& backlog);
  void ShedConnection(int listening_socket);
  void LimitHandshakes();
  bool MakeRoom();
  /// Drops finished handshakes from handshakes_.
  std::vector<std::shared_ptr<Link>> HandshakesUnderWay();
  void Read(const std::shared_ptr<Link>& link);
  absl::Status Handle(const std::shared_ptr<Link>& link, Packet& packet);
  /// The peer has proved the secret to a passive listener with an Admission.
  absl::Status Judge(const std::shared_ptr<Link>& link);
  void ApplyDecisions();
  absl::Status Welcome(const std::shared_ptr<Link>& link, Admission::Decision decision);
  absl::Status FinishHandshake(const std::shared_ptr<Link>& link);
  absl::Status AnswerRegionRequest(Link& link, uint32_t rkey);
  void Refuse(Link& link, const absl::Status& why);
  std::shared_ptr<Backlog> BacklogOf(const Link& link);
  void Drop(Link& link);
  void DropOverdue();
  int NextTimeoutMs() const;

  const Identity& identity_;
  const int64_t timeout_us_;
  const size_t handshakes_max_;  // over all backlogs
  const UniqueFd epoll_;
  const UniqueFd wake_;
  UniqueFd spare_;  // closed briefly to refuse connections when descriptors run out

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unordered_map<uint64_t, Source> sources_ ABSL_GUARDED_BY(mutex_);
  struct Decided {
    std::shared_ptr<Link> link;
    Admission::Decision decision;
  };
  std::vector<Decided> decided_;

  // Service thread only. In deadline order; finished handshakes are skipped when they come up.
  std::deque<std::weak_ptr<Link>> handshakes_;

  std::unique_ptr<Thread> thread_;
};

}  // namespace nam::fabric::shm
