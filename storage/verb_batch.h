#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/word_copy.h"
#include "storage/channel.h"

namespace nam::storage {

/// One round trip to any number of memory servers: requests are collected, posted together, and waited for.
/// Requests to one server take effect in the order in which they were added; where the fabric executes them
/// in this thread (fabric/immediate.h), at once. Uses the channel's buffer as scratch memory, so it has the
/// channel to itself. One thread.
///
/// Requests to memory whose grant is over fail as those to a region that is gone do (kRemoteAccessError), and
/// break the channel. Requests that have not completed are in a section of the channel's gate.
class VerbBatch {
 public:
  /// Its scratch memory grows up to about `scratch_bytes_max`; 0: stays as large as the channel's buffer.
  explicit VerbBatch(Channel& channel, uint64_t scratch_bytes_max = 0);
  ~VerbBatch();
  Channel& channel() { return channel_; }

  /// Registered bytes, 64-byte aligned, valid until Reset. Callers bound what they collect by scratch_left().
  /// If memory cannot be registered, these bytes are none that a request can use: Post says so, and the
  /// channel is broken.
  std::byte* Scratch(size_t bytes) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded > buffer_end_ - scratch_used_) [[unlikely]]
      return ScratchBeyond(rounded);
    std::byte* const data = buffer_ + (scratch_used_ - buffer_begin_);
    scratch_used_ += rounded;
    return data;
  }
  /// Scratch memory for words that requests bring.
  uint64_t* Words(size_t count) { return reinterpret_cast<uint64_t*>(Scratch(8 * count)); }
  uint64_t* Word() { return Words(1); }
  /// From now on; memory that it has grown to beyond that stays until Reset.
  void SetScratchMax(uint64_t bytes) {
    scratch_bytes_max_ = std::max<uint64_t>(bytes, channel_.buffer().bytes());
  }
  size_t scratch_bytes_max() const { return scratch_bytes_max_; }
  size_t scratch_left() const { return scratch_bytes_max_ - std::min(scratch_used_, scratch_bytes_max_); }
  /// Of it, what is registered already.
  size_t scratch_at_hand() const { return buffer_end_ - scratch_used_; }
  /// A place: for Reset.
  size_t scratch_used() const { return scratch_used_; }

  void Read(const Channel::Target& from, std::byte* into, uint32_t bytes);
  /// The same of one word, which comes to scratch memory.
  const uint64_t* ReadWord(const Channel::Target& from) {
    uint64_t* const word = Word();
    Read(from, reinterpret_cast<std::byte*>(word), sizeof(*word));
    return word;
  }
  /// `from` is scratch memory and stays as it is from now until Execute returns.
  void Write(const std::byte* from, uint32_t bytes, const Channel::Target& to);
  /// The word that was there comes to *old, 8 bytes of scratch memory.
  void CompareAndSwap(const Channel::Target& at, uint64_t compare, uint64_t swap, uint64_t* old);
  void FetchAdd(const Channel::Target& at, uint64_t add, uint64_t* old);

  /// Work requests that were ever added.
  uint64_t requests_added() const { return requests_added_; }

  /// Memory servers' bytes themselves, for Copy: where the fabric shows them (fabric/immediate.h) and a READ
  /// would succeed, else nullptr: then READ.
  const std::byte* InPlace(const Channel::Target& at, uint32_t bytes) {
    return at.now == nullptr || !Current(at) ? nullptr : at.now->ViewNow(at.address, bytes);
  }
  /// Memory is handed to others only behind the end of its grant.
  static bool Current(const Channel::Target& at) { return at.grant == nullptr || !at.grant->over(); }
  /// Like a READ: 8 aligned bytes are whole, and memory is no older than what the Copy before has seen.
  static void Copy(const std::byte* in_place, void* into, size_t bytes) {
    auto* const to = static_cast<std::byte*>(into);
    if (bytes % fabric::kWordBytes == 0 && fabric::IsAligned(in_place) && fabric::IsAligned(to)) [[likely]] {
      fabric::CopyWords(to, in_place, bytes);
    } else {
      fabric::CopyFromShared(to, in_place, bytes);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  /// The same of one aligned word.
  static uint64_t Load(const std::byte* in_place) {
    const uint64_t word = fabric::LoadWord(in_place);
    std::atomic_thread_fence(std::memory_order_acquire);
    return word;
  }
  /// Asks for bytes that will be copied, or changed by requests. A processor waits for addresses that it has
  /// to translate, so all of a round are asked for in a row, with nothing in between.
  template <bool kForChange>
  static void Fetch(const std::byte* in_place, size_t bytes) {
    if (in_place != nullptr) Prefetch<kForChange>(in_place, bytes);
  }

  /// Posts what was added since the last Execute and returns when all of it has completed. After an error the
  /// channel is broken.
  absl::Status Execute();
  /// Posts without waiting for it; completed by the next Execute.
  absl::Status Post();
  /// The channel is broken, and another thread may end its connections from here on: what is in flight is the
  /// channel's. Nothing but the destructor may follow.
  void GiveUp();
  /// Nothing is in flight, so no scratch memory is in use by the network.
  bool idle() {
    if (parked_) [[unlikely]]
      Resume();
    return signaled_ == 0;
  }
  /// Scratch memory is free again, but for the first `kept` bytes (an earlier scratch_used()). Nothing may be
  /// in flight.
  void Reset(size_t kept = 0);

 private:
  struct Queue {
    fabric::QueuePair* queue_pair = nullptr;
    std::vector<fabric::WorkRequest> requests;
    size_t posted = 0;     // so many of requests, from the first on
    size_t in_flight = 0;  // posted, and not known to be complete
    size_t signaled = 0;   // postings whose last request has not completed
  };
  /// Becomes `last_`.
  Queue& QueueOf(const Channel::Target& at) {
    if (last_ >= queues_.size() || queues_[last_].queue_pair != at.queue_pair)
      last_ = AddQueue(at.queue_pair);
    return queues_[last_];
  }
  fabric::WorkRequest& Add(const Channel::Target& at, fabric::Opcode opcode, const std::byte* local,
                           size_t bytes);
  /// Whether a request may begin; it is in a section from here on.
  bool Enter(const Channel::Target& at) {
    channel_.gate().Enter();
    parked_ = false;
    return Current(at);
  }
  /// Goes on with what was parked, unless it is complete.
  void Resume();
  /// Ends the section, or parks what is in flight.
  void LeaveSection();
  bool TakeParked();
  std::byte* ScratchBeyond(size_t bytes);
  void UseBuffer(size_t number, size_t begin);
  void Conclude(const Channel::Target& at, fabric::Opcode opcode, fabric::CompletionStatus status) {
    if (status != fabric::CompletionStatus::kOk) [[unlikely]]
      Refuse(at, opcode, status);
  }
  void Refuse(const Channel::Target& at, fabric::Opcode opcode, fabric::CompletionStatus status);
  size_t AddQueue(fabric::QueuePair* queue_pair);
  absl::Status PostSome(Queue& queue);
  absl::Status TakeCompletions();
  absl::Status Account(size_t completions);
  absl::Status PostAll();

  Channel& channel_;
  size_t scratch_bytes_max_;
  // Scratch memory is the channel's buffers one behind the other; in the last bytes of one there may be
  // nothing.
  size_t buffer_number_ = 0;     // the one in use:
  std::byte* buffer_ = nullptr;  // its bytes
  size_t buffer_begin_ = 0;      // as a place
  size_t buffer_end_ = 0;
  size_t scratch_used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> unregistered_;  // what was handed out when the channel broke
  std::vector<Queue> queues_;                               // a handful: found by going through them
  size_t last_ = 0;      // index into queues_: the one that was added to last
  size_t signaled_ = 0;  // in flight
  size_t unposted_ = 0;  // requests in queues_
  bool given_up_ = false;
  bool parked_ = false;  // what is in flight may be completed by another thread, which then writes to queues_
  std::array<fabric::Completion, 16> done_;
  uint64_t requests_added_ = 0;
  absl::Status refused_;  // the first error of requests that were executed at once
};

}  // namespace nam::storage
