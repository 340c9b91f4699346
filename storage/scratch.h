#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"

/// Scratch memory: pages in memory servers that a query's stages leave for later ones. Each session has an
/// allocation for them. Memory servers hand it out as slabs, from a share of their memory that loads cannot
/// take. A slab is written once, from its beginning. Slabs are freed with the whole allocation, when the
/// session releases it or its lease ends. Slabs of an attempt that does not count (its server is lost, or it
/// restarts) are freed as soon as the session knows.
///
///     allocation ── Allocate ─▶ slab (256 KiB to 64 MiB, one writer) ── WRITE ─▶ page, page, page …
namespace nam::storage {

/// A page in scratch memory, or several contiguous ones, or a piece of one that is too long for a slot of its
/// writer and its readers. Pieces follow each other in lists, and lie anywhere.
struct ScratchPage {
  RemotePtr<void> at;
  uint32_t bytes = 0;
  bool continues = false;  // a piece of the page before

  bool operator==(const ScratchPage&) const = default;
};

/// A range of one memory server's memory that one writer at a time fills. Not zeroed.
struct ScratchSlab {
  RemotePtr<void> begin;
  uint64_t bytes = 0;
  std::shared_ptr<fabric::Grant> grant;
  uint64_t used = 0;  // bytes from the beginning that hold pages

  uint64_t left() const { return bytes - used; }
};

/// A part of a slab for contiguous pages.
struct ScratchStretch {
  ScratchPage pages;  // written so far
  uint32_t bytes = 0;

  uint32_t left() const { return bytes - pages.bytes; }
};

/// The slabs of one attempt's writers: first the rests that other writers gave back, then new slabs from
/// memory servers in turn. Any thread; threads do not wait for each other's calls.
class ScratchSpace {
 public:
  static constexpr uint64_t kFirstSlabBytes = uint64_t{256} << 10, kMostSlabBytes = uint64_t{64} << 20;
  /// Smaller slabs are not requested: pages of a few hundred bytes would each cost a call.
  static constexpr uint64_t kLeastSlabBytes = uint64_t{64} << 10;
  /// Allocates contiguous memory of one server. RESOURCE_EXHAUSTED: its share lacks the room. CANCELLED soon
  /// after `cancel` is set.
  using Allocate = std::function<absl::StatusOr<ScratchSlab>(MemoryServerId server, uint64_t bytes,
                                                             const std::atomic<bool>& cancel)>;

  /// The live memory servers. Called with the first slab, since most attempts need none.
  using FindServers = std::function<absl::StatusOr<std::vector<MemoryServerId>>()>;

  /// Asks servers in turn, beginning with the one at `first` modulo their number. Both functions may be
  /// called by several threads at once. `close` runs after the last slab, if there were any: writers have
  /// ended, or left their uses to their channels.
  ScratchSpace(
      FindServers find_servers, uint32_t first, Allocate allocate, std::function<void()> close = [] {})
      : find_servers_(std::move(find_servers)),
        next_(first),
        allocate_(std::move(allocate)),
        close_(std::move(close)) {}
  ~ScratchSpace() {
    if (asked_.load(std::memory_order_relaxed)) close_();
  }

  /// A slab with at least `bytes_least` left: one that was given back, or a new one of about `bytes`. If no
  /// server has the room, tries half as much, and so on, down to kLeastSlabBytes. RESOURCE_EXHAUSTED,
  /// "scratch memory is full": no server has room. Servers that do not answer are passed over as long as
  /// another does. CANCELLED soon after `cancel` is set, at the latest when the current server has answered.
  absl::StatusOr<ScratchSlab> NextSlab(uint64_t bytes, uint64_t bytes_least, const std::atomic<bool>& cancel);

  /// A writer needs no more of the slab. Its pages stay.
  void GiveBack(const ScratchSlab& slab);

  /// Total bytes of all slabs so far.
  uint64_t slab_bytes() const { return slab_bytes_.load(std::memory_order_relaxed); }

 private:
  absl::StatusOr<std::vector<MemoryServerId>> Servers();
  /// The server does not answer: it is not asked again, unless it is the only one.
  void PassOver(MemoryServerId server);
  absl::StatusOr<ScratchSlab> Ask(const std::vector<MemoryServerId>& servers, uint64_t bytes,
                                  const std::atomic<bool>& cancel);
  std::optional<ScratchSlab> AllocateRest(uint64_t bytes_least);

  const FindServers find_servers_;
  std::atomic<uint32_t> next_;
  const Allocate allocate_;
  const std::function<void()> close_;
  std::atomic<bool> asked_ = false;
  std::atomic<uint64_t> most_ = kMostSlabBytes;  // all servers refused more
  std::atomic<uint64_t> slab_bytes_ = 0;
  Mutex mutex_;
  std::vector<MemoryServerId> servers_ ABSL_GUARDED_BY(mutex_);
  std::vector<ScratchSlab> rests_ ABSL_GUARDED_BY(mutex_);
};

/// Writes pages into its own slabs, with as many WRITEs in flight as fit the channel's buffer. Copies each
/// page when given, so the caller's memory is free at once. Has exclusive use of the channel while it lives.
/// One thread.
class ScratchWriter {
 public:
  /// Pages have at most `page_bytes_max` bytes, a multiple of 64. All referenced objects must outlive the
  /// writer. Waits end with CANCELLED soon after `cancel` is set.
  ScratchWriter(ScratchSpace& space, Channel& channel, uint32_t page_bytes_max,
                const std::atomic<bool>& cancel);
  /// Without a preceding Flush, requests in flight break the channel.
  ~ScratchWriter();

  /// Returns the page's future place, valid once Flush has returned. RESOURCE_EXHAUSTED: see ScratchSpace.
  /// Unusable after an error.
  absl::StatusOr<ScratchPage> Write(std::span<const std::byte> page);
  /// The same for a page of any length: places of its pieces, of page_bytes_max each but the last.
  absl::StatusOr<std::vector<ScratchPage>> WriteLong(std::span<const std::byte> page);
  /// Write in two steps, for several pages in one stretch. Reserve makes room for `bytes`, a multiple of 64,
  /// with a call only for a new slab. Append adds a page of at most the bytes left; all pages but the last
  /// are multiples of 64.
  absl::StatusOr<ScratchStretch> Reserve(uint32_t bytes);
  absl::Status Append(std::span<const std::byte> page, ScratchStretch& stretch);
  /// Returns when all pages are in place, and gives back the rest of its slab.
  absl::Status Flush();

  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  /// Unposted requests of one queue pair. The last of a posting is signaled, so that its completion covers
  /// all.
  struct Queue {
    fabric::QueuePair* queue_pair = nullptr;
    std::vector<fabric::WorkRequest> requests;
    std::vector<uint32_t> slots;
  };
  absl::StatusOr<uint32_t> FreeSlot();
  absl::Status Post(Queue& queue);
  absl::Status PostAll();
  absl::Status PollCompletions();
  Queue& QueueOf(fabric::QueuePair* queue_pair);

  ScratchSpace& space_;
  Channel& channel_;
  const uint32_t slot_bytes_;
  const std::atomic<bool>& cancel_;
  ScratchSlab slab_;
  fabric::Grant::Use use_;                     // set with the first slab
  std::vector<uint32_t> free_;                 // slots in the buffer
  std::deque<Queue> queues_;                   // one per memory server
  std::vector<std::vector<uint32_t>> posted_;  // slots, by batch in flight
  std::vector<uint32_t> free_batches_;         // indices into posted_
  size_t in_flight_ = 0;                       // batches
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::storage
