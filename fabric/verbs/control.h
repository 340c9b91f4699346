#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/verbs/handles.h"
#include "fabric/verbs/registry.h"
#include "fabric/verbs/wire.h"

/// The TCP connections beside the queue pairs (wire.h): they resolve regions and detect lost peers.
namespace nam::fabric::verbs {

/// One connection. Shared by its queue pair and the control thread. For a passive listener the channel owns
/// the queue pair, which lives as long as the peer is connected.
class ControlChannel {
 public:
  ControlChannel(UniqueFd fd, const Registry& registry, ibv_qp* queue_pair);
  /// `held` is kept until Release.
  ControlChannel(UniqueFd fd, const Registry& registry, QueuePairHandle served, std::shared_ptr<void> held);
  ~ControlChannel();

  // -- The queue pair's thread: one question at a time ------------------------
  struct RemoteRegion {
    uint32_t nic_key = 0;
    uint64_t base = 0;
    uint64_t bytes = 0;
    Access access = Access::kNone;
  };
  /// NOT_FOUND: the peer knows no such region. UNAVAILABLE: the peer is gone or does not answer in time.
  absl::StatusOr<RemoteRegion> AskRegion(uint32_t key, Deadline deadline);
  /// Asks whether the peer's end still works, when its NIC does not answer. UNAVAILABLE like AskRegion.
  absl::StatusOr<bool> AskWhetherReady(Deadline deadline);
  void TellEnded(CompletionStatus status);
  /// Closes the connection, which tells the peer. The channel no longer touches the queue pair.
  void Close();
  /// For a passive end: destroys the queue pair, so nothing of the peer takes effect any more. The peer
  /// learns this from its own NIC and may still ask here. Any thread.
  void Fence();

  /// True once the queue pair was moved to the error state, because the peer is gone or its end has failed.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// The reason for lost().
  CompletionStatus reason() const { return reason_.load(std::memory_order_acquire); }

  // -- The control thread -------------------------------------------------------
  int fd() const { return fd_.get(); }
  /// False: the connection is over.
  bool OnInput();
  void OnLost(CompletionStatus reason);
  /// The connection is over: a passive end destroys its queue pair and releases `held`.
  void Release();

 private:
  bool Handle(const Frame& frame);
  /// For a passive end: destroys the queue pair once the peer's has failed.
  void EndServed();
  /// Under the mutex, because frames of two threads must not mix.
  bool Send(const Frame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Frame> Ask(const Frame& question, FrameKind answer, Deadline deadline);
  Frame DescribeRegion(uint32_t key) const;
  Frame DescribeState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<void>
      held_;  // used by the releasing thread: the control thread, or before that the listener
  const UniqueFd fd_;
  const Registry& registry_;
  std::atomic<bool> lost_{false};
  std::atomic<CompletionStatus> reason_{CompletionStatus::kPeerLost};

  Mutex mutex_;
  ConditionVariable answered_;
  ibv_qp* queue_pair_ ABSL_GUARDED_BY(mutex_);      // null: closed
  QueuePairHandle served_ ABSL_GUARDED_BY(mutex_);  // passive: owns queue_pair_
  std::optional<Frame> answer_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // no answer will come

  // Control thread only.
  std::array<std::byte, sizeof(Frame)> input_;
  size_t input_bytes_ = 0;
};

/// Serves all control channels of a fabric on one thread. Never blocks on a peer.
class ControlThread {
 public:
  ControlThread();
  ~ControlThread();
  /// RESOURCE_EXHAUSTED if descriptors run out.
  absl::Status Add(std::shared_ptr<ControlChannel> channel);
  void Remove(const ControlChannel& channel);
  /// Ends the thread and releases all channels: peers see them closed. Idempotent.
  void Stop();

 private:
  void Run();
  void OnEvent(int fd);

  UniqueFd epoll_;
  UniqueFd stop_;
  Mutex mutex_;
  // By descriptor.
  std::unordered_map<int, std::shared_ptr<ControlChannel>> channels_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

/// Moves the queue pair to the error state, which flushes everything pending. Repeat it to flush later posts.
void MoveToError(ibv_qp* queue_pair);

}  // namespace nam::fabric::verbs
