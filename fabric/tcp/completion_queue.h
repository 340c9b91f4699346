#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "fabric/completion_places.h"
#include "fabric/fabric.h"
#include "fabric/tcp/doorbell.h"

namespace nam::fabric::tcp {

class TcpDatagramQueuePair;
class TcpQueuePair;

/// Leaves completions in their queue pairs until taken, so it has no storage and cannot overflow. Poll and
/// Wait also move the bytes: the polling thread sends what the sockets did not take before, and receives
/// replies and datagrams.
class TcpCompletionQueue final : public CompletionQueue {
 public:
  static absl::StatusOr<std::unique_ptr<TcpCompletionQueue>> Create(uint32_t depth);
  ~TcpCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  absl::Status CheckRoom(uint64_t places) const { return places_.CheckRoom(places); }
  absl::Status Attach(TcpQueuePair& queue_pair);
  void Detach(TcpQueuePair& queue_pair);
  absl::Status Attach(TcpDatagramQueuePair& queue_pair);
  void Detach(TcpDatagramQueuePair& queue_pair);
  /// The queue pair has failed: stops watching its socket.
  void Unwatch(TcpQueuePair& queue_pair);
  const std::shared_ptr<Doorbell>& doorbell() const { return doorbell_; }

 private:
  explicit TcpCompletionQueue(uint32_t depth);
  size_t Pop(std::span<Completion> completions);
  void Progress();
  /// Sleeps until a socket or the doorbell is ready, or `until_ns`.
  void Sleep(int64_t until_ns);
  void UpdateInterest();

  struct Attached {
    TcpQueuePair* queue_pair = nullptr;
    uint32_t interest = 0;  // 0: not watched
  };

  CompletionPlaces places_;
  UniqueFd epoll_;
  const std::shared_ptr<Doorbell> doorbell_;
  std::atomic<bool> woken_{false};
  std::vector<Attached> attached_;
  std::vector<TcpDatagramQueuePair*> datagrams_;
  size_t next_ = 0;  // first queue pair to take from; rotates for fairness
};

}  // namespace nam::fabric::tcp
