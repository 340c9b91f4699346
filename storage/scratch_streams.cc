#include "storage/scratch_streams.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {

ScratchStreams::ScratchStreams(Channel& channel, uint32_t page_bytes,
                               std::vector<std::vector<ScratchPage>> lists, const std::atomic<bool>& cancel,
                               uint32_t pages_of_a_list)
    : channel_(channel),
      slot_bytes_(page_bytes),
      pages_of_a_list_(pages_of_a_list),
      cancel_(cancel),
      slots_(size_t{pages_of_a_list} * lists.size()) {
  NAM_CHECK(page_bytes % 64 == 0 && channel.buffer().bytes() >= uint64_t{page_bytes} * slots_.size(),
            "pages that the channel's buffer cannot hold");
  for (std::vector<ScratchPage>& pages : lists) lists_.push_back({.pages = std::move(pages)});
}

ScratchStreams::~ScratchStreams() {
  // A source that is no longer wanted ends in the middle.
  while (in_flight_ > 0 && !channel_.broken() && PollCompletions().ok()) {
  }
  if (in_flight_ > 0) channel_.Break();
}

std::span<std::byte> ScratchStreams::Slot(uint32_t slot) {
  return {MemoryOf(slot), slot_bytes_};
}

absl::Status ScratchStreams::PostOne(uint32_t number) {
  List& list = lists_[number];
  const ScratchPage& page = list.pages[list.posted];
  if (page.bytes == 0 || page.bytes > slot_bytes_)
    return absl::DataLossError("a page in scratch memory has an impossible size");
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(page.at, page.bytes));
  const uint32_t slot = SlotOf(number, list.posted);
  ++list.posted;
  slots_[slot] = {.bytes = page.bytes};
  if (target.now != nullptr) {
    slots_[slot].at_once = target;
    return absl::OkStatus();
  }
  const auto request = fabric::WorkRequest::Read(
      slot, channel_.buffer().Slice(uint64_t{slot} * slot_bytes_, page.bytes), target.address);
  NAM_RETURN_IF_ERROR(target.queue_pair->Post({&request, 1}));
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status ScratchStreams::Post(uint32_t number) {
  const List& list = lists_[number];
  while (list.posted < list.pages.size() && list.posted < list.released + pages_of_a_list_ &&
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
  NAM_RETURN_IF_ERROR(Post(number));
  // Other lists may have filled the queue pairs.
  while (list.posted == list.given) {
    NAM_RETURN_IF_ERROR(PollCompletions());
    NAM_RETURN_IF_ERROR(Post(number));
  }
  const uint32_t slot = SlotOf(number, list.given);
  if (slots_[slot].at_once.now != nullptr) NAM_RETURN_IF_ERROR(Copy(slot));
  while (!slots_[slot].here) NAM_RETURN_IF_ERROR(PollCompletions());
  ++list.given;
  return slot;
}

absl::Status ScratchStreams::Release(uint32_t number) {
  List& list = lists_[number];
  NAM_CHECK(list.released < list.given, "a page that was not given");
  ++list.released;
  return Post(number);
}

absl::Status ScratchStreams::Copy(uint32_t slot) {
  SlotState& state = slots_[slot];
  const Channel::Target from = std::exchange(state.at_once, {});
  const fabric::CompletionStatus status = from.now->ReadNow(from.address, MemoryOf(slot), state.bytes);
  if (status != fabric::CompletionStatus::kOk) {
    return channel_.Error(
        {.queue_pair = from.queue_pair->id(), .status = status, .opcode = fabric::Opcode::kRead});
  }
  state.here = true;
  return absl::OkStatus();
}

absl::Status ScratchStreams::PollCompletions() {
  std::array<fabric::Completion, 64> done;
  NAM_ASSIGN_OR_RETURN(const size_t n, channel_.WaitSome(done, &cancel_));
  for (size_t i = 0; i < n; ++i) {
    if (!done[i].ok()) return channel_.Error(done[i]);
    slots_[done[i].id].here = true;
    --in_flight_;
  }
  return absl::OkStatus();
}

ScratchReader::ScratchReader(Channel& channel, uint32_t page_bytes_max, uint32_t window,
                             const std::atomic<bool>& cancel)
    : channel_(channel),
      page_bytes_max_(page_bytes_max),
      // One more than are in flight: the page that the caller uses.
      slots_(static_cast<uint32_t>(std::min<uint64_t>(
          {channel.buffer().bytes() / page_bytes_max, channel.options().queue_depth, uint64_t{window} + 1}))),
      cancel_(cancel) {
  NAM_CHECK(slots_ >= 2, "pages that the channel's buffer cannot hold");
}

void ScratchReader::Start(std::vector<ScratchPage> pages) {
  NAM_CHECK(!list_.has_value() || list_->pages_left(0) == 0, "pages were left");
  sizes_.clear();
  for (const ScratchPage& page : pages) {
    if (page.continues && !sizes_.empty()) {
      sizes_.back() += page.bytes;
    } else {
      sizes_.push_back(page.bytes);
    }
  }
  left_of_page_ = given_bytes_ = 0;
  std::vector<std::vector<ScratchPage>> one;
  one.push_back(std::move(pages));
  list_.emplace(channel_, page_bytes_max_, std::move(one), cancel_, slots_);
  given_ = false;
}

absl::StatusOr<std::span<std::byte>> ScratchReader::Next() {
  if (!list_.has_value()) return std::span<std::byte>();
  if (std::exchange(given_, false)) NAM_RETURN_IF_ERROR(list_->Release(0));
  if (list_->pages_left(0) == 0) return std::span<std::byte>();
  NAM_ASSIGN_OR_RETURN(const uint32_t slot, list_->Next(0));
  given_ = true;
  const std::span<std::byte> page = list_->Slot(slot).first(list_->bytes(slot));
  left_of_page_ -= given_bytes_;
  if (left_of_page_ == 0) {
    left_of_page_ = sizes_.front();
    sizes_.pop_front();
  }
  given_bytes_ = static_cast<uint32_t>(page.size());
  ++pages_;
  bytes_ += page.size();
  return page;
}

}  // namespace nam::storage
