#include "txn/index/numbered_blocks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {

NumberedBlocks::NumberedBlocks(storage::VerbBatch& batch, ExtentSpace space, uint64_t block_bytes,
                               uint64_t fixed)
    : batch_(batch),
      space_(std::move(space)),
      block_bytes_(block_bytes),
      fixed_(fixed),
      per_extent_((space_.extent_bytes() - kExtentHeaderBytes) / block_bytes),
      inverse_(((static_cast<unsigned __int128>(1) << 64) + per_extent_ - 1) /
               std::max<uint64_t>(per_extent_, 1)) {
  NAM_CHECK(per_extent_ > 0, "an extent holds a block at least");
}

absl::Status NumberedBlocks::Create() {
  return Provide(fixed_ - 1);
}

absl::Status NumberedBlocks::Provide(uint64_t number) {
  while (number / per_extent_ >= space_.extents()) NAM_RETURN_IF_ERROR(space_.Grow());
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> NumberedBlocks::Take(uint64_t count) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target cursor, space_.Resolve(0));
  const size_t kept = batch_.scratch_used();
  auto* const old = batch_.Word();
  batch_.FetchAdd(cursor, count, old);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const uint64_t first = fixed_ + *old;
  batch_.Reset(kept);
  return first;
}

// Only if no other client has taken a number since, so that none of the next extent is skipped.
absl::Status NumberedBlocks::SkipFrom(uint64_t number, uint64_t count) {
  const uint64_t next_extent = (number / per_extent_ + 1) * per_extent_;
  if (number + count >= next_extent) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target cursor, space_.Resolve(0));
  const size_t kept = batch_.scratch_used();
  batch_.CompareAndSwap(cursor, number + count - fixed_, next_extent - fixed_, batch_.Word());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset(kept);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> NumberedBlocks::Allocate(uint64_t count) {
  // Every round but the last takes numbers that do not exist, of which there are few.
  while (true) {
    if (spare_.empty()) {
      NAM_ASSIGN_OR_RETURN(const uint64_t taken, Take(count));
      spare_.push_back(taken);
    }
    const uint64_t first = spare_.back(), last = first + count - 1;
    // Without memory the numbers stay with this client until there is some.
    NAM_RETURN_IF_ERROR(Provide(last));
    spare_.pop_back();
    bool all = true;
    for (uint64_t number = first; number <= last; ++number) all = all && Exists(number);
    if (all) return first;
    NAM_RETURN_IF_ERROR(SkipFrom(first, count));
  }
}

}  // namespace nam::txn
