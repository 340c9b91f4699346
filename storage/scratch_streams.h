#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/scratch.h"

namespace nam::storage {

/// READs several lists of pages in scratch memory, each in order, with the caller choosing the next list. The
/// channel's buffer holds some pages of each list, two by default: while one is in use, the next is in
/// flight.
///
///     buffer   │ list 0: page 4 │ page 5 │ list 1: page 9 │ page 8 │ list 2 …        slot 2·list + page % 2
///
/// Pages are copies even where the fabric shows memory in place: a checked page stays valid even if the lease
/// of the owning session ends meanwhile. Has exclusive use of the channel while it lives. One thread.
class ScratchStreams {
 public:
  static constexpr uint32_t kPagesOfAList = 2;

  /// Pages have at most `page_bytes` bytes, a multiple of 64. The channel's buffer has room for
  /// `pages_of_a_list` such pages per list. All referenced objects must outlive this one. Waits end with
  /// CANCELLED soon after `cancel` is set.
  ScratchStreams(Channel& channel, uint32_t page_bytes, std::vector<std::vector<ScratchPage>> lists,
                 const std::atomic<bool>& cancel, uint32_t pages_of_a_list = kPagesOfAList);
  /// Waits for READs in flight; those that do not complete break the channel.
  ~ScratchStreams();
  ScratchStreams(const ScratchStreams&) = delete;
  ScratchStreams& operator=(const ScratchStreams&) = delete;

  /// Posts READs for the first pages of all lists at once.
  absl::Status Prefetch();
  /// True if Next may be called: it bounds the list's unreleased pages.
  bool HasRoom(uint32_t list) const { return lists_[list].given - lists_[list].released < pages_of_a_list_; }
  /// The slot of the list's next page. Requires that there is one, and room for it. DATA_LOSS for an invalid
  /// page size, OUT_OF_RANGE for a nonexistent address. Unusable after an error.
  absl::StatusOr<uint32_t> Next(uint32_t list);
  /// Releases the list's oldest page in use.
  absl::Status Release(uint32_t list);

  size_t pages_left(uint32_t list) const { return lists_[list].pages.size() - lists_[list].given; }
  /// The bytes of a slot; the caller may change them until the page is released. Bytes beyond the page are
  /// arbitrary.
  std::span<std::byte> Slot(uint32_t slot);
  /// Bytes of the page in the slot.
  uint32_t bytes(uint32_t slot) const { return slots_[slot].bytes; }

 private:
  struct List {
    std::vector<ScratchPage> pages;
    size_t posted = 0, given = 0, released = 0;  // counts from the first page on
  };
  struct SlotState {
    bool here = false;  // the page has arrived
    uint32_t bytes = 0;
    /// If set, the page is copied when it is needed, so that it is then in the cache. Otherwise it is READ.
    Channel::Target at_once;
  };
  uint32_t SlotOf(uint32_t list, size_t page) const {
    return pages_of_a_list_ * list + static_cast<uint32_t>(page % pages_of_a_list_);
  }
  std::byte* MemoryOf(uint32_t slot) const { return channel_.buffer().data() + size_t{slot} * slot_bytes_; }
  /// Posts as many READs as there are slots, if the queue pairs have room.
  absl::Status Post(uint32_t list);
  absl::Status PostOne(uint32_t list);
  absl::Status Copy(uint32_t slot);
  absl::Status PollCompletions();

  Channel& channel_;
  const uint32_t slot_bytes_;
  const uint32_t pages_of_a_list_;
  const std::atomic<bool>& cancel_;
  std::vector<List> lists_;
  std::vector<SlotState> slots_;
  size_t in_flight_ = 0;
};

/// READs the pages of successive lists, and yields them in order, each valid until the next.
class ScratchReader {
 public:
  /// Pages and pieces have at most `page_bytes_max` bytes, a multiple of 64. Keeps `window` READs in flight.
  /// All referenced objects must outlive the reader, which has exclusive use of the channel between Start and
  /// the last page.
  ScratchReader(Channel& channel, uint32_t page_bytes_max, uint32_t window, const std::atomic<bool>& cancel);

  /// Starts the next list. All pages of the previous one must have been taken.
  void Start(std::vector<ScratchPage> pages);
  /// The next page, or piece; empty at the end. The caller may change it, and the arbitrary bytes after it up
  /// to page_bytes_max, until the next call. Errors as in ScratchStreams::Next.
  absl::StatusOr<std::span<std::byte>> Next();
  /// The bytes of its page from this piece on. More than it has: the next pieces are of the same page.
  uint64_t left_of_page() const { return left_of_page_; }

  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Channel& channel_;
  const uint32_t page_bytes_max_;
  const uint32_t slots_;
  const std::atomic<bool>& cancel_;
  std::optional<ScratchStreams> list_;
  bool given_ = false;          // a page was returned and is not released
  std::deque<uint64_t> sizes_;  // of the pages that are not begun
  uint64_t left_of_page_ = 0;
  uint32_t given_bytes_ = 0;  // of the last piece
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::storage
