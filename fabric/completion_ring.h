#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "fabric/completion_places.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// The completions of a queue that keeps them until they are taken, in order: shm's and sim's. A work request
/// holds its place in its queue pair until then, so there is a place here for every completion. It grows with
/// the attached queue pairs, because depths are a caller's upper bounds. Used by one thread.
class CompletionRing {
 public:
  explicit CompletionRing(uint32_t depth) : places_(depth), ready_(1) {}

  absl::Status CheckRoom(uint64_t places) const { return places_.CheckRoom(places); }
  /// Requires room.
  void Attach(uint64_t places);
  /// Discards the queue pair's completions.
  void Detach(uint64_t queue_pair, uint64_t places);

  bool empty() const { return head_ == tail_; }
  /// When the completion is taken, `places` are subtracted from the queue pair's `used`.
  void Push(const Completion& completion, uint32_t* used, uint32_t places) {
    ready_[tail_] = {completion, used, places};
    tail_ = Next(tail_);
  }
  size_t Pop(std::span<Completion> completions) {
    size_t taken = 0;
    for (; taken < completions.size() && head_ != tail_; head_ = Next(head_)) {
      const Ready& ready = ready_[head_];
      completions[taken++] = ready.completion;
      *ready.used -= ready.places;
    }
    return taken;
  }

 private:
  struct Ready {
    Completion completion;
    uint32_t* used = nullptr;
    uint32_t places = 0;
  };
  size_t Next(size_t at) const { return at + 1 == ready_.size() ? 0 : at + 1; }

  CompletionPlaces places_;
  std::vector<Ready> ready_;  // one more than the reserved places, to tell full from empty
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace nam::fabric
