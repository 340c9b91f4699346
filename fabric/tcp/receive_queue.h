#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/tcp/doorbell.h"

namespace nam::fabric::tcp {

/// The receives of one queue pair, shared by its two threads:
///
///     thread of the queue pair ── Post ──▶ posted ── Match ──▶ NIC thread (places the message)
///                              ◀─ Pop ───  done  ◀─ Complete ──
///
/// At most `depth` receives are posted, being filled, or done and not yet taken. Owned jointly by the queue
/// pair and the connection that serves it.
class ReceiveQueue {
 public:
  struct Entry {
    uint64_t id = 0;
    LocalBuffer into;
  };

  ReceiveQueue(uint64_t queue_pair, uint32_t depth, std::shared_ptr<Doorbell> doorbell);

  // -- The queue pair's thread ------------------------------------------------
  /// Rings the NIC thread (`resume`) if a message waits for a receive.
  absl::Status Post(std::span<const ReceiveRequest> batch);
  size_t Pop(std::span<Completion> completions);
  /// Called once, before the NIC thread serves the connection.
  void SetResume(std::function<void()> resume) { resume_ = std::move(resume); }
  /// Completes all posted receives, and later ones, with errors. The NIC thread must have let go.
  void Fail(CompletionStatus pending);
  /// True once the serving connection has ended: the peer is lost.
  bool peer_lost() const { return peer_lost_.load(std::memory_order_acquire); }
  /// True if there is something to Pop, or the peer was lost since the last call.
  bool HasNews() const { return news_.load(std::memory_order_seq_cst); }

  // -- The NIC thread -----------------------------------------------------------
  /// Nothing if no receive is posted; then Post resumes the NIC thread.
  std::optional<Entry> Match();
  void Complete(const Completion& completion);
  void OnPeerLost();

 private:
  const uint64_t queue_pair_;
  const uint32_t depth_;
  const std::shared_ptr<Doorbell> doorbell_;
  std::function<void()> resume_;

  Mutex mutex_;
  std::deque<Entry> posted_ ABSL_GUARDED_BY(mutex_);
  std::deque<Completion> done_ ABSL_GUARDED_BY(mutex_);
  uint32_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // posted, being filled, done
  bool starving_ ABSL_GUARDED_BY(mutex_) = false;     // a message waits for a receive
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> news_{false};
  std::atomic<bool> peer_lost_{false};
};

}  // namespace nam::fabric::tcp
