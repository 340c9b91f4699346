#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"

/// Scratch memory: pages that queries put into memory servers, for their own later stages. A session has an
/// allocation for them; memory servers hand it out as slabs from a share of their memory that loads cannot
/// take. Slabs are written once from their beginning on, and go back with
/// the whole allocation: when the session releases it, or when its lease ends. Those of an attempt that does
/// not count (its server is lost, or it is begun anew) go back as soon as the session knows.
///
///     allocation ── Allocate ─▶ slab (256 KiB to 64 MiB, one writer) ── WRITE ─▶ page, page, page …
namespace nam::storage {

/// A page in scratch memory, or pages one behind the other.
struct ScratchPage {
  RemotePtr<void> at;
  uint32_t bytes = 0;

  bool operator==(const ScratchPage&) const = default;
};

/// A run of one memory server's memory that one writer at a time fills. Its bytes are any.
struct ScratchSlab {
  RemotePtr<void> begin;
  uint64_t bytes = 0;
  std::shared_ptr<fabric::Grant> grant;
  uint64_t used = 0;  // bytes from its beginning on that have pages

  uint64_t left() const { return bytes - used; }
};

/// A part of a slab for pages one behind the other.
struct ScratchStretch {
  ScratchPage pages;  // that have been written so far
  uint32_t bytes = 0;

  uint32_t left() const { return bytes - pages.bytes; }
};

/// Where the writers of one attempt get their slabs: from memory servers in turn, once what other writers
/// have left of theirs is used up. Any thread; none waits for another that asks a server.
class ScratchSpace {
 public:
  static constexpr uint64_t kFirstSlabBytes = uint64_t{256} << 10, kMostSlabBytes = uint64_t{64} << 20;
  /// Smaller ones are not asked for, or pages of a few hundred bytes would each be a call for what is left.
  static constexpr uint64_t kLeastSlabBytes = uint64_t{64} << 10;
  /// A memory server's memory in one piece for the allocation. RESOURCE_EXHAUSTED: its share does not have
  /// so much. CANCELLED soon after `cancel` is set.
  using Allocate = std::function<absl::StatusOr<ScratchSlab>(MemoryServerId server, uint64_t bytes,
                                                             const std::atomic<bool>& cancel)>;

  /// The memory servers that live. Asked for when the first slab is, since most attempts need none.
  using FindServers = std::function<absl::StatusOr<std::vector<MemoryServerId>>()>;

  /// Servers are asked in turn, beginning with the `first` modulo their number. Both functions may be called
  /// by several threads at once.
  /// `close` runs behind the last slab, if there were any: writers have ended, or left their uses to their
  /// channels.
  ScratchSpace(
      FindServers find_servers, uint32_t first, Allocate allocate, std::function<void()> close = [] {})
      : find_servers_(std::move(find_servers)),
        next_(first),
        allocate_(std::move(allocate)),
        close_(std::move(close)) {}
  ~ScratchSpace() {
    if (asked_.load(std::memory_order_relaxed)) close_();
  }

  /// A slab that has `bytes_least` left at least: one that was given back, or a new one of about `bytes`; if
  /// no server has so much, of half as much, and so on, down to kLeastSlabBytes.
  /// RESOURCE_EXHAUSTED, "scratch memory is full": none of them has room. Servers that do not answer are
  /// passed over as long as another does. CANCELLED soon after `cancel` is set, at the latest when the server
  /// that is being asked has answered.
  absl::StatusOr<ScratchSlab> NextSlab(uint64_t bytes, uint64_t bytes_least, const std::atomic<bool>& cancel);

  /// A writer needs no more of the slab. Its pages stay.
  void GiveBack(const ScratchSlab& slab);

  /// Of all slabs so far.
  uint64_t slab_bytes() const { return slab_bytes_.load(std::memory_order_relaxed); }

 private:
  absl::StatusOr<std::vector<MemoryServerId>> Servers();
  /// Nobody answers there: it is not asked again, unless it is the only one.
  void PassOver(MemoryServerId server);
  absl::StatusOr<ScratchSlab> Ask(const std::vector<MemoryServerId>& servers, uint64_t bytes,
                                  const std::atomic<bool>& cancel);
  std::optional<ScratchSlab> TakeRest(uint64_t bytes_least);

  const FindServers find_servers_;
  std::atomic<uint32_t> next_;
  const Allocate allocate_;
  const std::function<void()> close_;
  std::atomic<bool> asked_ = false;
  std::atomic<uint64_t> most_ = kMostSlabBytes;  // more was refused by all
  std::atomic<uint64_t> slab_bytes_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<MemoryServerId> servers_;
  std::vector<ScratchSlab> rests_;
};

/// Writes pages into slabs of its own, with as many WRITEs in flight as the channel's buffer has room for. A
/// page is copied when it is given, so the caller's memory is free at once. One thread; has the channel to
/// itself as long as it lives.
class ScratchWriter {
 public:
  /// Pages have at most `page_bytes_max`, a multiple of 64. All that is referred to outlives the writer.
  /// What waits ends with CANCELLED soon after `cancel` is set.
  ScratchWriter(ScratchSpace& space, Channel& channel, uint32_t page_bytes_max,
                const std::atomic<bool>& cancel);
  /// Without a Flush before it, requests in flight break the channel.
  ~ScratchWriter();

  /// Where the page will be, once Flush has returned. RESOURCE_EXHAUSTED: see ScratchSpace. After an error
  /// the writer is of no more use.
  absl::StatusOr<ScratchPage> Write(std::span<const std::byte> page);
  /// The same in two steps, for several pages at one place: room for so many bytes, a multiple of 64, and no
  /// message but for a new slab; then each page, at most as many bytes as are left. All but the last one have
  /// a multiple of 64.
  absl::StatusOr<ScratchStretch> Reserve(uint32_t bytes);
  absl::Status Append(std::span<const std::byte> page, ScratchStretch& stretch);
  /// Returns when everything written is in place, and gives back what is left of its slab.
  absl::Status Flush();

  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  /// Requests of one queue pair that wait to be posted together; the last of them is signaled, so that its
  /// completion is that of all.
  struct Queue {
    fabric::QueuePair* queue_pair = nullptr;
    std::vector<fabric::WorkRequest> requests;
    std::vector<uint32_t> slots;
  };
  absl::StatusOr<uint32_t> FreeSlot();
  absl::Status Post(Queue& queue);
  absl::Status PostAll();
  absl::Status TakeCompletions();
  Queue& QueueOf(fabric::QueuePair* queue_pair);

  ScratchSpace& space_;
  Channel& channel_;
  const uint32_t slot_bytes_;
  const std::atomic<bool>& cancel_;
  ScratchSlab slab_;
  fabric::Grant::Use use_;                     // as soon as there was a slab
  std::vector<uint32_t> free_;                 // slots of the buffer
  std::deque<Queue> queues_;                   // one a memory server
  std::vector<std::vector<uint32_t>> posted_;  // slots by batch in flight
  std::vector<uint32_t> free_batches_;         // indices into posted_
  size_t in_flight_ = 0;                       // batches
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::storage
