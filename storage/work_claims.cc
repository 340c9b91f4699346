#include "storage/work_claims.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace nam::storage {

absl::StatusOr<uint64_t> WorkClaims::Claim(uint64_t items) {
  NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, UseOf(counter_.grant));
  absl::StatusOr<uint64_t> claimed = Fetch(items);
  if (channel_.broken()) channel_.Abandon(std::move(use));
  return claimed;
}

absl::StatusOr<uint64_t> WorkClaims::Fetch(uint64_t items) {
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(counter_.word, sizeof(uint64_t)));
  const fabric::LocalBuffer old = channel_.buffer().Slice(0, sizeof(uint64_t));
  const auto request = fabric::WorkRequest::FetchAdd(0, old, target.address, items);
  if (const absl::Status posted = target.queue_pair->Post({&request, 1}); !posted.ok())
    return channel_.Error(counter_.word.server(), posted);
  std::array<fabric::Completion, 1> done;
  if (const auto waited = channel_.WaitSome(done, &cancel_); !waited.ok()) {
    channel_.Break();
    return waited.status();
  }
  if (!done[0].ok()) return channel_.Error(done[0]);
  uint64_t value;
  std::memcpy(&value, old.data, sizeof(value));
  return value - counter_.base;
}

}  // namespace nam::storage
