#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/scratch.h"

namespace nam::storage {

/// READs several lists of pages in scratch memory, each in its order, whichever list is asked for next. Of
/// each list some pages are in the channel's buffer, two for instance: while one is looked at, the next is on
/// its way.
///
///     buffer   │ list 0: page 4 │ page 5 │ list 1: page 9 │ page 8 │ list 2 …        slot 2·list + page % 2
///
/// Pages are copies also where the fabric shows the memory itself: one that was checked stays as it is,
/// whatever becomes of a session whose lease ends meanwhile. One thread; has the channel to itself as long as
/// it lives.
class ScratchStreams {
 public:
  static constexpr uint32_t kPagesOfAList = 2;

  /// Pages have at most `page_bytes`, a multiple of 64. The channel's buffer has room for `pages_of_a_list`
  /// pages of that size for each list. What is referred to outlives this. What waits ends with CANCELLED soon
  /// after `cancel` is set.
  ScratchStreams(Channel& channel, uint32_t page_bytes, std::vector<std::vector<ScratchPage>> lists,
                 const std::atomic<bool>& cancel, uint32_t pages_of_a_list = kPagesOfAList);
  /// Waits for READs in flight; those that do not come break the channel.
  ~ScratchStreams();
  ScratchStreams(const ScratchStreams&) = delete;
  ScratchStreams& operator=(const ScratchStreams&) = delete;

  /// Asks for the first pages of all lists at once.
  absl::Status Prefetch();
  /// Whether Next may be called: a list has at most so many pages that were not released.
  bool HasRoom(uint32_t list) const { return lists_[list].given - lists_[list].released < pages_of_a_list_; }
  /// The number of the slot that has the list's next page. There is one, and room for it. DATA_LOSS for a
  /// page of a size that no page has, OUT_OF_RANGE if there is no such memory; after an error the streams are
  /// of no more use.
  absl::StatusOr<uint32_t> Next(uint32_t list);
  /// The list's oldest page that was given is not looked at any more.
  absl::Status Release(uint32_t list);

  size_t pages_left(uint32_t list) const { return lists_[list].pages.size() - lists_[list].given; }
  /// All of a slot, the caller's to change until its page is released. Behind the page's own bytes are any.
  std::span<std::byte> Slot(uint32_t slot);
  /// Of the page that Next has given.
  uint32_t bytes(uint32_t slot) const { return slots_[slot].bytes; }

 private:
  struct List {
    std::vector<ScratchPage> pages;
    size_t posted = 0, given = 0, released = 0;  // so many from the first on
  };
  struct SlotState {
    bool here = false;  // its page has arrived
    uint32_t bytes = 0;
    /// Where the page can be copied from at once, which is done when somebody wants it: then it is in the
    /// cache. Nowhere: it is READ.
    Channel::Target at_once;
  };
  uint32_t SlotOf(uint32_t list, size_t page) const {
    return pages_of_a_list_ * list + static_cast<uint32_t>(page % pages_of_a_list_);
  }
  std::byte* MemoryOf(uint32_t slot) const { return channel_.buffer().data() + size_t{slot} * slot_bytes_; }
  /// As many READs as there are slots for, if the queue pairs have room.
  absl::Status Post(uint32_t list);
  absl::Status PostOne(uint32_t list);
  absl::Status Copy(uint32_t slot);
  absl::Status TakeCompletions();

  Channel& channel_;
  const uint32_t slot_bytes_;
  const uint32_t pages_of_a_list_;
  const std::atomic<bool>& cancel_;
  std::vector<List> lists_;
  std::vector<SlotState> slots_;
  size_t in_flight_ = 0;
};

/// READs pages of one list after the other, and yields them in order, each until the next.
class ScratchReader {
 public:
  /// Pages have at most `page_bytes_max`, a multiple of 64. `window` READs are in flight. What is referred to
  /// outlives the reader, which has the channel to itself between Start and the last page.
  ScratchReader(Channel& channel, uint32_t page_bytes_max, uint32_t window, const std::atomic<bool>& cancel);

  /// These pages come next. All of the former ones have been taken.
  void Start(std::vector<ScratchPage> pages);
  /// The next page, the caller's to change until the next call; empty: there is none. The memory behind it up
  /// to page_bytes_max is the caller's, too, and holds any bytes. Errors as of ScratchStreams::Next.
  absl::StatusOr<std::span<std::byte>> Next();

  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Channel& channel_;
  const uint32_t page_bytes_max_;
  const uint32_t slots_;
  const std::atomic<bool>& cancel_;
  std::optional<ScratchStreams> list_;
  bool given_ = false;  // a page of it, which is not released
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::storage
