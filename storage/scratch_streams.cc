#include "storage/scratch_streams.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {

ScratchStreams::ScratchStreams(Channel& channel, uint32_t page_bytes,
                               std::vector<std::vector<ScratchPage>> lists, const std::atomic<bool>& cancel)
    : channel_(channel), slot_bytes_(page_bytes), cancel_(cancel), here_(kPagesOfAList * lists.size()) {
  NAM_CHECK(page_bytes % 64 == 0 && channel.buffer().bytes() >= uint64_t{page_bytes} * here_.size(),
            "pages that the channel's buffer cannot hold");
  for (std::vector<ScratchPage>& pages : lists) lists_.push_back({.pages = std::move(pages)});
}

ScratchStreams::~ScratchStreams() {
  while (in_flight_ > 0 && !channel_.broken() && TakeCompletions().ok()) {
  }
  if (in_flight_ > 0) channel_.Break();
}

std::span<const std::byte> ScratchStreams::Slot(uint32_t slot) const {
  return {channel_.buffer().data() + size_t{slot} * slot_bytes_, slot_bytes_};
}

absl::Status ScratchStreams::PostOne(uint32_t number) {
  List& list = lists_[number];
  const ScratchPage& page = list.pages[list.posted];
  if (page.bytes == 0 || page.bytes > slot_bytes_)
    return absl::DataLossError("a page in scratch memory has a size that no page has");
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(page.at, page.bytes));
  const uint32_t slot = SlotOf(number, list.posted);
  const fabric::LocalBuffer local = channel_.buffer().Slice(uint64_t{slot} * slot_bytes_, page.bytes);
  ++list.posted;
  if (target.now != nullptr) {
    const fabric::CompletionStatus status = target.now->ReadNow(target.address, local.data, page.bytes);
    if (status != fabric::CompletionStatus::kOk) {
      return channel_.Error(
          {.queue_pair = target.queue_pair->id(), .status = status, .opcode = fabric::Opcode::kRead});
    }
    here_[slot] = 1;
    return absl::OkStatus();
  }
  here_[slot] = 0;
  const auto request = fabric::WorkRequest::Read(slot, local, target.address);
  NAM_RETURN_IF_ERROR(target.queue_pair->Post({&request, 1}));
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status ScratchStreams::Post(uint32_t number) {
  const List& list = lists_[number];
  while (list.posted < list.pages.size() && list.posted < list.released + kPagesOfAList &&
         in_flight_ < channel_.options().queue_depth) {
    NAM_RETURN_IF_ERROR(PostOne(number));
  }
  return absl::OkStatus();
}

absl::Status ScratchStreams::Prefetch() {
  for (uint32_t list = 0; list < lists_.size(); ++list) NAM_RETURN_IF_ERROR(Post(list));
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ScratchStreams::Next(uint32_t number) {
  List& list = lists_[number];
  NAM_CHECK(pages_left(number) > 0 && HasRoom(number), "a page that there is not, or no room for it");
  NAM_RETURN_IF_ERROR(channel_.CheckBurials());
  // Others may have filled the queue pairs.
  while (list.posted == list.given) {
    NAM_RETURN_IF_ERROR(Post(number));
    if (list.posted == list.given) NAM_RETURN_IF_ERROR(TakeCompletions());
  }
  const uint32_t slot = SlotOf(number, list.given);
  while (here_[slot] == 0) NAM_RETURN_IF_ERROR(TakeCompletions());
  ++list.given;
  NAM_RETURN_IF_ERROR(Post(number));
  return slot;
}

absl::Status ScratchStreams::Release(uint32_t number) {
  List& list = lists_[number];
  NAM_CHECK(list.released < list.given, "a page that was not given");
  here_[SlotOf(number, list.released++)] = 0;
  return Post(number);
}

absl::Status ScratchStreams::TakeCompletions() {
  std::array<fabric::Completion, 64> done;
  NAM_ASSIGN_OR_RETURN(const size_t n, channel_.WaitSome(done, &cancel_));
  for (size_t i = 0; i < n; ++i) {
    if (!done[i].ok()) return channel_.Error(done[i]);
    here_[done[i].id] = 1;
    --in_flight_;
  }
  return absl::OkStatus();
}

}  // namespace nam::storage
