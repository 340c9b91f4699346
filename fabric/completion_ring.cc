#include "fabric/completion_ring.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace nam::fabric {

absl::Status CompletionPlaces::CheckRoom(uint64_t places) const {
  if (places <= depth_ - reserved_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the completion queue of depth %d has room for %d more work requests, and the queue "
                      "pair needs %d (send_depth + receive_depth): create the one deeper, or the other "
                      "shallower",
                      depth_, depth_ - reserved_, places));
}

void CompletionRing::Attach(uint64_t places) {
  places_.Reserve(places);
  if (places_.reserved() < ready_.size()) return;
  const uint64_t room = std::max<uint64_t>(places_.reserved(), 2 * ready_.size());
  std::vector<Ready> larger(std::min<uint64_t>(room, places_.depth()) + 1);
  size_t kept = 0;
  for (; head_ != tail_; head_ = Next(head_)) larger[kept++] = ready_[head_];
  ready_ = std::move(larger);
  head_ = 0;
  tail_ = kept;
}

void CompletionRing::Detach(uint64_t queue_pair, uint64_t places) {
  places_.Release(places);
  size_t kept = head_;
  for (size_t at = head_; at != tail_; at = Next(at)) {
    if (ready_[at].completion.queue_pair == queue_pair) continue;
    ready_[kept] = ready_[at];
    kept = Next(kept);
  }
  tail_ = kept;
}

}  // namespace nam::fabric
