#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "fabric/completion_places.h"
#include "fabric/fabric.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/handles.h"

namespace nam::fabric::verbs {

/// Packs and unpacks a wr_id, which names the queue pair of either kind that a NIC completion belongs to:
///
///     id of the queue pair:32 | receive:1 | position in its send or receive queue, mod 2^31
struct WorkId {
  static constexpr uint32_t kReceiveBit = 1u << 31;
  static constexpr uint32_t kPositionMask = kReceiveBit - 1;

  static uint64_t Make(uint32_t owner, bool receive, uint64_t position) {
    return uint64_t{owner} << 32 | (receive ? kReceiveBit : 0) | (position & kPositionMask);
  }
  static uint32_t Owner(uint64_t id) { return static_cast<uint32_t>(id >> 32); }
  static bool IsReceive(uint64_t id) { return (id & kReceiveBit) != 0; }
  /// The first matching position at or after `from`; positions in flight span far less than 2^31.
  static uint64_t Position(uint64_t id, uint64_t from) { return from + ((id - from) & kPositionMask); }
};

class CompletionSource {
 public:
  virtual ~CompletionSource() = default;
  /// Nothing if the application must not see the completion.
  virtual std::optional<Completion> Translate(const ibv_wc& completion) = 0;
};

/// A completion queue of the NIC. It grows with the attached queue pairs, because depths are a caller's upper
/// bounds and NICs are limited. Waiting polls for a moment, then arms the NIC's event, polls once more and
/// sleeps on the event and on Wake()'s.
class VerbsCompletionQueue final : public CompletionQueue {
 public:
  static absl::StatusOr<std::unique_ptr<VerbsCompletionQueue>> Create(std::shared_ptr<Core> core,
                                                                      uint32_t depth);
  ~VerbsCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  ibv_cq* handle() const { return handle_.get(); }
  absl::Status CheckRoom(uint64_t places) const { return places_.CheckRoom(places); }
  /// RESOURCE_EXHAUSTED if the NIC has no room.
  absl::Status Attach(uint32_t id, CompletionSource& source, uint64_t places);
  /// Call after the queue pair was destroyed: its completions are gone with it.
  void Detach(uint32_t id, uint64_t places);

 private:
  VerbsCompletionQueue(std::shared_ptr<Core> core, uint32_t depth);
  absl::Status Grow(uint64_t requests);
  /// Translates up to `limit` completions of the NIC; drops those of destroyed queue pairs.
  template <typename Sink>
  size_t PollNic(size_t limit, Sink&& sink);
  /// Sleeps until the NIC or Wake() signals, or the deadline.
  void Sleep(Deadline deadline);

  const std::shared_ptr<Core> core_;
  CompletionPlaces places_;
  uint64_t room_ = 0;  // requests that the NIC has room for
  CompletionChannelHandle channel_;
  CompletionQueueHandle handle_;  // destroyed before its channel
  UniqueFd wake_;
  std::atomic<bool> woken_{false};
  std::unordered_map<uint32_t, CompletionSource*> sources_;
  std::deque<Completion> kept_;  // taken from the NIC when a queue pair was destroyed; at most its depth
};

}  // namespace nam::fabric::verbs
