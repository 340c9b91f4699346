#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/scratch.h"

namespace nam::storage {

/// READs several lists of pages in scratch memory, each in its order, whichever list is asked for next. Two
/// pages of each list are in the channel's buffer: while one is looked at, the next is on its way.
///
///     buffer   │ list 0: page 4 │ page 5 │ list 1: page 9 │ page 8 │ list 2 …        slot 2·list + page % 2
///
/// Pages are copies, as ScratchReader's are. One thread; has the channel to itself as long as it lives.
class ScratchStreams {
 public:
  static constexpr uint32_t kPagesOfAList = 2;

  /// Pages have at most `page_bytes`, a multiple of 64. The channel's buffer has room for kPagesOfAList pages
  /// of that size for each list. What is referred to outlives this. What waits ends with CANCELLED soon after
  /// `cancel` is set.
  ScratchStreams(Channel& channel, uint32_t page_bytes, std::vector<std::vector<ScratchPage>> lists,
                 const std::atomic<bool>& cancel);
  /// Waits for READs in flight; those that do not come break the channel.
  ~ScratchStreams();

  /// Asks for the first pages of all lists at once.
  absl::Status Prefetch();
  /// Whether Next may be called: a list has at most kPagesOfAList pages that were not released.
  bool HasRoom(uint32_t list) const { return lists_[list].given - lists_[list].released < kPagesOfAList; }
  /// The number of the slot that has the list's next page. There is one, and room for it. OUT_OF_RANGE if
  /// there is no such memory; after an error the streams are of no more use.
  absl::StatusOr<uint32_t> Next(uint32_t list);
  /// The list's oldest page that was given is not looked at any more.
  absl::Status Release(uint32_t list);

  size_t pages_left(uint32_t list) const { return lists_[list].pages.size() - lists_[list].given; }
  /// All of a slot. Behind the page's own bytes are any.
  std::span<const std::byte> Slot(uint32_t slot) const;

 private:
  struct List {
    std::vector<ScratchPage> pages;
    size_t posted = 0, given = 0, released = 0;  // so many from the first on
  };
  static uint32_t SlotOf(uint32_t list, size_t page) {
    return kPagesOfAList * list + static_cast<uint32_t>(page % kPagesOfAList);
  }
  /// As many READs as there are slots for, if the queue pairs have room.
  absl::Status Post(uint32_t list);
  absl::Status PostOne(uint32_t list);
  absl::Status TakeCompletions();

  Channel& channel_;
  const uint32_t slot_bytes_;
  const std::atomic<bool>& cancel_;
  std::vector<List> lists_;
  std::vector<uint8_t> here_;  // by slot: its page has arrived
  size_t in_flight_ = 0;
};

}  // namespace nam::storage
