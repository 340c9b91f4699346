#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

/// Where a list of work is claimed: a word in a memory server that FETCH_ADD counts up and nothing else
/// changes. Item i is whose FETCH_ADD returned base + i; who gets a number beyond the list's end gets
/// nothing. A word is used by one list after the other; a straggler of an earlier one may take a number of
/// this list, which then is missing from everybody's report and has to be handed out again.
struct WorkCounter {
  RemotePtr<void> word;
  AllocationId allocation;  // that it lies in
  uint64_t base = 0;
  std::shared_ptr<fabric::Grant> grant;  // of a process that claims
};

/// One thread's way to claim work, over a channel that it has to itself meanwhile.
class WorkClaims {
 public:
  WorkClaims(Channel& channel, const WorkCounter& counter, const std::atomic<bool>& cancel)
      : channel_(channel), counter_(counter), cancel_(cancel) {}
  /// Claims `items` of the list: the first one's number; those behind its end are nobody's. CANCELLED soon
  /// after `cancel` is set; the channel is broken then.
  absl::StatusOr<uint64_t> Claim(uint64_t items);

 private:
  absl::StatusOr<uint64_t> Fetch(uint64_t items);

  Channel& channel_;
  const WorkCounter counter_;
  const std::atomic<bool>& cancel_;
};

}  // namespace nam::storage
