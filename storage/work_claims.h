#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

/// The counter that hands out a list of work: a word in a memory server that only FETCH_ADD changes. The
/// client whose FETCH_ADD returned base + i gets item i; a number beyond the list's end means no work.
/// Successive lists share a word, so a straggler of an earlier list may take a number of this list. No report
/// then contains that number, and it must be handed out again.
struct WorkCounter {
  RemotePtr<void> word;
  AllocationId allocation;  // that contains the word
  uint64_t base = 0;
  std::shared_ptr<fabric::Grant> grant;  // set in processes that claim
};

/// Claims work for one thread, over a channel that it needs exclusively meanwhile.
class WorkClaims {
 public:
  WorkClaims(Channel& channel, const WorkCounter& counter, const std::atomic<bool>& cancel)
      : channel_(channel), counter_(counter), cancel_(cancel) {}
  /// Claims `items` of the list; returns the first one's number. Numbers beyond the list's end are void.
  /// CANCELLED soon after `cancel` is set; the channel is then broken.
  absl::StatusOr<uint64_t> Claim(uint64_t items);

 private:
  absl::StatusOr<uint64_t> Fetch(uint64_t items);

  Channel& channel_;
  const WorkCounter counter_;
  const std::atomic<bool>& cancel_;
};

}  // namespace nam::storage
