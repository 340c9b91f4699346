#include "storage/block_sink.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {

BlockSink::BlockSink(Channel& channel, fabric::Grant::Use use, uint32_t block_bytes_max)
    : channel_(channel), use_(std::move(use)), slot_bytes_((block_bytes_max + 63) / 64 * 64) {
  const uint64_t slots =
      std::min<uint64_t>(channel.buffer().bytes() / slot_bytes_, channel.options().queue_depth);
  NAM_CHECK(slots >= 1, "block larger than the channel's buffer");
  for (uint32_t slot = 0; slot < slots; ++slot) free_.push_back(slot);
}

BlockSink::~BlockSink() {
  if (!channel_.broken()) (void)Flush();
  if (channel_.broken()) channel_.Abandon(std::move(use_));
}

absl::Status BlockSink::PollCompletions() {
  std::array<fabric::Completion, 64> done;
  NAM_ASSIGN_OR_RETURN(const size_t n, channel_.WaitSome(done));
  for (size_t i = 0; i < n; ++i) {
    if (!done[i].ok()) return channel_.Error(done[i]);
    free_.push_back(static_cast<uint32_t>(done[i].id));
    --in_flight_;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> BlockSink::Acquire() {
  while (free_.empty()) NAM_RETURN_IF_ERROR(PollCompletions());
  current_ = free_.back();
  free_.pop_back();
  return channel_.buffer().data() + uint64_t{current_} * slot_bytes_;
}

absl::Status BlockSink::Write(RemotePtr<void> to, uint32_t bytes) {
  NAM_CHECK(bytes <= slot_bytes_);
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(to, bytes));
  const auto request = fabric::WorkRequest::Write(
      current_, channel_.buffer().Slice(uint64_t{current_} * slot_bytes_, bytes), target.address);
  NAM_RETURN_IF_ERROR(target.queue_pair->Post({&request, 1}));
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status BlockSink::WriteLong(RemotePtr<void> to, std::span<const std::byte> block,
                                  const std::shared_ptr<fabric::Grant>& grant) {
  NAM_RETURN_IF_ERROR(Flush());  // the channel's buffer is needed
  return channel_.Write(block, to, grant);
}

absl::Status BlockSink::Flush() {
  while (in_flight_ > 0) NAM_RETURN_IF_ERROR(PollCompletions());
  return absl::OkStatus();
}

}  // namespace nam::storage
