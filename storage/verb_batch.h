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

/// One round trip to any number of memory servers: collects requests, posts them together, and waits.
/// Requests to one server take effect in the order in which they were added; where this thread itself
/// executes them (fabric/immediate.h), at once. Uses the channel's buffer as scratch memory, so it needs
/// exclusive use of the channel. One thread.
///
/// Requests to memory whose grant is over fail like those to a region that is gone (kRemoteAccessError), and
/// break the channel. Incomplete requests are in a section of the channel's gate.
class VerbBatch {
 public:
  /// `scratch_bytes_max`: approximate limit of its scratch memory; 0: the size of the channel's buffer.
  explicit VerbBatch(Channel& channel, uint64_t scratch_bytes_max = 0);
  ~VerbBatch();
  Channel& channel() { return channel_; }

  /// Registered bytes, 64-byte aligned, valid until Reset. Callers bound their use by scratch_left(). If
  /// memory cannot be registered, the returned bytes are unusable for requests: Post then fails, and the
  /// channel is broken.
  std::byte* Scratch(size_t bytes) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded > buffer_end_ - scratch_used_) [[unlikely]]
      return ScratchBeyond(rounded);
    std::byte* const data = buffer_ + (scratch_used_ - buffer_begin_);
    scratch_used_ += rounded;
    return data;
  }
  /// Scratch memory for words that requests return.
  uint64_t* Words(size_t count) { return reinterpret_cast<uint64_t*>(Scratch(8 * count)); }
  uint64_t* Word() { return Words(1); }
  /// Sets the limit from now on; memory already beyond it stays until Reset.
  void SetScratchMax(uint64_t bytes) {
    scratch_bytes_max_ = std::max<uint64_t>(bytes, channel_.buffer().bytes());
  }
  size_t scratch_bytes_max() const { return scratch_bytes_max_; }
  size_t scratch_left() const { return scratch_bytes_max_ - std::min(scratch_used_, scratch_bytes_max_); }
  /// The part of scratch_left() that is already registered.
  size_t scratch_at_hand() const { return buffer_end_ - scratch_used_; }
  /// A position, for Reset.
  size_t scratch_used() const { return scratch_used_; }

  void Read(const Channel::Target& from, std::byte* into, uint32_t bytes) {
    if (BeginsNow(from)) [[likely]]
      return Conclude(from, fabric::Opcode::kRead, from.now->ReadNow(from.address, into, bytes));
    AddLater(from, fabric::Opcode::kRead, into, bytes);
  }
  /// Reads one word into scratch memory.
  const uint64_t* ReadWord(const Channel::Target& from) {
    uint64_t* const word = Word();
    Read(from, reinterpret_cast<std::byte*>(word), sizeof(*word));
    return word;
  }
  /// `from` is scratch memory and must not change until Execute returns.
  void Write(const std::byte* from, uint32_t bytes, const Channel::Target& to) {
    if (BeginsNow(to)) [[likely]]
      return Conclude(to, fabric::Opcode::kWrite, to.now->WriteNow(from, bytes, to.address));
    AddLater(to, fabric::Opcode::kWrite, from, bytes);
  }
  /// *old, 8 bytes of scratch memory, receives the previous value.
  void CompareAndSwap(const Channel::Target& at, uint64_t compare, uint64_t swap, uint64_t* old) {
    constexpr fabric::Opcode kOpcode = fabric::Opcode::kCompareAndSwap;
    if (BeginsNow(at)) [[likely]]
      return Conclude(at, kOpcode, at.now->CompareAndSwapNow(at.address, compare, swap, old));
    fabric::WorkRequest* const request =
        AddLater(at, kOpcode, reinterpret_cast<std::byte*>(old), sizeof(*old));
    if (request == nullptr) return;
    request->compare = compare;
    request->swap_or_add = swap;
  }
  void FetchAdd(const Channel::Target& at, uint64_t add, uint64_t* old) {
    constexpr fabric::Opcode kOpcode = fabric::Opcode::kFetchAdd;
    if (BeginsNow(at)) [[likely]]
      return Conclude(at, kOpcode, at.now->FetchAddNow(at.address, add, old));
    fabric::WorkRequest* const request =
        AddLater(at, kOpcode, reinterpret_cast<std::byte*>(old), sizeof(*old));
    if (request != nullptr) request->swap_or_add = add;
  }

  /// Total work requests added.
  uint64_t requests_added() const { return requests_added_; }

  /// The memory server's bytes in place, for Copy. nullptr if the fabric does not show them
  /// (fabric/immediate.h) or a READ would fail: then use READ.
  const std::byte* InPlace(const Channel::Target& at, uint32_t bytes) {
    return at.now == nullptr || !Current(at) ? nullptr : at.now->ViewNow(at.address, bytes);
  }
  /// True while the target's grant lives: memory is reused only after its grant has ended.
  static bool Current(const Channel::Target& at) { return at.grant == nullptr || !at.grant->over(); }
  /// Copies like a READ: 8 aligned bytes are whole, and memory is no older than the previous Copy saw.
  static void Copy(const std::byte* in_place, void* into, size_t bytes) {
    auto* const to = static_cast<std::byte*>(into);
    if (bytes % fabric::kWordBytes == 0 && fabric::IsAligned(in_place) && fabric::IsAligned(to)) [[likely]] {
      fabric::CopyWords(to, in_place, bytes);
    } else {
      fabric::CopyFromShared(to, in_place, bytes);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  /// Copies one aligned word.
  static uint64_t Load(const std::byte* in_place) {
    const uint64_t word = fabric::LoadWord(in_place);
    std::atomic_thread_fence(std::memory_order_acquire);
    return word;
  }
  /// Prefetches bytes to copy or change. A processor stalls on addresses that it has to translate, so
  /// prefetch all targets of a round in a row.
  template <bool kForChange>
  static void Fetch(const std::byte* in_place, size_t bytes) {
    if (in_place != nullptr) Prefetch<kForChange>(in_place, bytes);
  }

  /// Posts all requests added since the last Execute; returns when all have completed. After an error the
  /// channel is broken.
  absl::Status Execute();
  /// Posts without waiting; the next Execute completes the requests.
  absl::Status Post();
  /// Gives the requests in flight to the broken channel, whose connections another thread may end from here
  /// on. Only the destructor may follow.
  void GiveUp();
  /// True if nothing is in flight, so the network uses no scratch memory.
  bool idle() {
    if (parked_) [[unlikely]]
      Resume();
    return signaled_ == 0;
  }
  /// Frees scratch memory except for the first `kept` bytes (an earlier scratch_used()). Nothing may be in
  /// flight.
  void Reset(size_t kept = 0);

 private:
  struct Queue {
    fabric::QueuePair* queue_pair = nullptr;
    std::vector<fabric::WorkRequest> requests;
    size_t posted = 0;     // count from the first of `requests`
    size_t in_flight = 0;  // posted, not known to be complete
    size_t signaled = 0;   // postings whose last request is incomplete
  };
  /// Sets `last_`.
  Queue& QueueOf(const Channel::Target& at) {
    if (last_ >= queues_.size() || queues_[last_].queue_pair != at.queue_pair)
      last_ = AddQueue(at.queue_pair);
    return queues_[last_];
  }
  fabric::WorkRequest& Add(const Channel::Target& at, fabric::Opcode opcode, const std::byte* local,
                           size_t bytes);
  /// True: this thread executes the request itself, now. Otherwise AddLater adds or refuses it. It is in a
  /// section from here on.
  bool BeginsNow(const Channel::Target& at) {
    ++requests_added_;
    channel_.gate().Enter();
    parked_ = false;
    return at.now != nullptr && Current(at) && refused_.ok();
  }
  /// nullptr if no request was added.
  fabric::WorkRequest* AddLater(const Channel::Target& at, fabric::Opcode opcode, const std::byte* local,
                                size_t bytes);
  /// Resumes the parked requests, unless they are complete.
  void Resume();
  /// Ends the section, or parks the requests in flight.
  void LeaveSection();
  bool DrainParked();
  std::byte* ScratchBeyond(size_t bytes);
  void UseBuffer(size_t number, size_t begin);
  void Conclude(const Channel::Target& at, fabric::Opcode opcode, fabric::CompletionStatus status) {
    if (status != fabric::CompletionStatus::kOk) [[unlikely]]
      Refuse(at, opcode, status);
  }
  void Refuse(const Channel::Target& at, fabric::Opcode opcode, fabric::CompletionStatus status);
  size_t AddQueue(fabric::QueuePair* queue_pair);
  absl::Status PostSome(Queue& queue);
  absl::Status PollCompletions();
  absl::Status Account(size_t completions);
  absl::Status PostAll();

  Channel& channel_;
  size_t scratch_bytes_max_;
  // Scratch memory is the concatenation of the channel's buffers; the last bytes of a buffer may be unused.
  size_t buffer_number_ = 0;     // the one in use
  std::byte* buffer_ = nullptr;  // its bytes
  size_t buffer_begin_ = 0;      // as a position
  size_t buffer_end_ = 0;
  size_t scratch_used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> unregistered_;  // handed out after the channel broke
  std::vector<Queue> queues_;                               // few, so searched linearly
  size_t last_ = 0;                                         // index into queues_: last used
  size_t signaled_ = 0;                                     // in flight
  size_t unposted_ = 0;                                     // requests in queues_
  bool given_up_ = false;
  bool parked_ = false;  // another thread may complete the requests in flight; it then writes to queues_
  std::array<fabric::Completion, 16> done_;
  uint64_t requests_added_ = 0;
  absl::Status refused_;  // first error of the requests that executed at once
};

}  // namespace nam::storage
