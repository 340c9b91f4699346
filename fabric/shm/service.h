#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/fabric.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/link.h"

namespace nam::fabric::shm {

/// The one thread of a fabric: accepts and authenticates peers, hands out descriptors of regions,
/// and notices that peers are gone. It never waits for a peer, so that none can hold it up. Peers that have
/// not proved themselves are bounded in time and number (fabric/strangers.h); other users' are not let in at
/// all. The public functions are for any thread.
class Service {
 public:
  /// `identity` outlives the service. A peer has `timeout_us` for its handshake.
  static absl::StatusOr<std::unique_ptr<Service>> Start(const Identity& identity, int64_t timeout_us);
  ~Service();

  void AddBacklog(const std::shared_ptr<Backlog>& backlog);
  /// Closes the connections that it serves or that wait in it.
  void RemoveBacklog(const Backlog& backlog);

  /// A connection that a queue pair owns from now on: one that Connect made, or Accept took.
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
  /// Forgets all others.
  std::vector<std::shared_ptr<Link>> HandshakesUnderWay();
  void Read(const std::shared_ptr<Link>& link);
  absl::Status Handle(const std::shared_ptr<Link>& link, Packet& packet);
  /// Of a peer that knows the secret, and comes to a passive listener with an Admission.
  absl::Status Judge(const std::shared_ptr<Link>& link);
  void TakeDecisions();
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
  const size_t handshakes_max_;  // of all backlogs
  const UniqueFd epoll_;
  const UniqueFd wake_;
  UniqueFd spare_;  // given up for a moment to refuse connections when descriptors run out

  std::mutex mutex_;
  bool stopping_ = false;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Source> sources_;
  struct Decided {
    std::shared_ptr<Link> link;
    Admission::Decision decision;
  };
  std::vector<Decided> decided_;

  // Service thread only. In order of their deadlines; finished ones are skipped when they come up.
  std::deque<std::weak_ptr<Link>> handshakes_;

  std::unique_ptr<Thread> thread_;
};

}  // namespace nam::fabric::shm
