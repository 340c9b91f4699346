#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

/// The memory that processes share besides regions. All of it lives in sealed memfds:
///
///     one per process, read-only for peers     RegionTable    which rkeys are alive
///     one per process, writable by peers       DoorbellPage   one futex word per completion queue
///     one per queue pair, writable by both     Channel        messages, one ring in each direction
///
/// Peers are authenticated and run as the same user; still, every value they write is checked before use.
namespace nam::fabric::shm {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

inline constexpr size_t kCacheLineBytes = 64;

// -- Region table -------------------------------------------------------------------------------
//
//     rkey, lkey:   generation (16 bits, never 0) | slot (16 bits)
//
// An initiator compares the slot's word with its rkey at every operation, so a deregistered region is refused
// although the initiator still maps it. The channels (`executing` below) tell whether an operation that
// passed the comparison is still changing memory. The same word pins the connection, which the owner ends by
// `revoked`:
//
//     initiator, WRITE or atomic            owner, Revoke of a key             owner, fence of a connection
//     executing = rkey                      rkeys[slot] = 0                    revoked = 1
//     ─ barrier ─                           ─ barrier ─                        ─ barrier ─
//     rkeys[slot] == rkey, revoked == 0?    executing == rkey in a channel?    executing != 0 in its channel?
//         no: refused                           yes: not yet                       yes: not yet
//     change the memory
//     executing = 0
//
// At least one of initiator and owner sees the other. A barrier of the initiator would cost as much as an
// atomic, so the owner runs it for both by membarrier(2); initiators run their own only where the kernel
// refuses that.

inline constexpr uint32_t kSlotBits = 16;
inline constexpr uint32_t kRegionsMax = 1u << kSlotBits;
inline constexpr uint32_t kGenerationMax = (1u << (32 - kSlotBits)) - 1;

constexpr uint32_t SlotOf(uint32_t key) {
  return key & (kRegionsMax - 1);
}
constexpr uint32_t MakeKey(uint32_t generation, uint32_t slot) {
  return generation << kSlotBits | slot;
}

struct RegionTable {
  /// Counts deregistrations; a change tells initiators to look for mappings to drop.
  alignas(kCacheLineBytes) std::atomic<uint32_t> deregistrations;
  /// Not 0: the owner's Revoke runs the barriers of all joined processes. Constant.
  std::atomic<uint32_t> runs_barriers;
  alignas(kCacheLineBytes) std::array<std::atomic<uint32_t>, kRegionsMax> rkeys;  // 0: free
};
static_assert(sizeof(RegionTable) == kCacheLineBytes + 4 * kRegionsMax);

// -- Doorbells ----------------------------------------------------------------------------------

inline constexpr uint32_t kCompletionQueuesMax = 4096;  // doorbell 0 is unused

struct alignas(kCacheLineBytes) Doorbell {
  std::atomic<uint32_t> sequence;  // the futex; incremented when there may be work
  std::atomic<uint32_t> waiters;   // not 0: the owner sleeps on `sequence` or is about to
};
static_assert(sizeof(Doorbell) == kCacheLineBytes);

struct DoorbellPage {
  std::array<Doorbell, kCompletionQueuesMax> bells;
};

// -- Channel ------------------------------------------------------------------------------------
//
// Side s is written only by its own process: its messages, its progress in the other side's ring, the
// receives it posted.
//
//     ring:  | header 16 B | payload, padded to 16 B | header | …      (wraps anywhere, at 16 B)
//
// Message n of one side meets receive n of the other. A SEND completes as soon as its receive is posted, as
// with a NIC; no receiver thread has to run. Both sides derive "too long" from the message's length and
// receive_bytes[n].

inline constexpr uint32_t kRingBytes = 256u << 10;
inline constexpr uint32_t kReceiveDepthMax = 4096;

enum class MessageKind : uint32_t { kSend = 1, kImmediate = 2 };

struct MessageHeader {
  uint32_t bytes = 0;  // of the SEND that follows, or of the WRITE before (nothing follows)
  MessageKind kind = MessageKind::kSend;
  uint32_t immediate = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(MessageHeader) == 16 && kRingBytes % sizeof(MessageHeader) == 0);
static_assert(kRingBytes >= 2 * (kMaxSendBytes + sizeof(MessageHeader)));

/// Value of `executing` for a side without a queue pair.
inline constexpr uint32_t kNoInitiator = ~uint32_t{0};

struct ChannelSide {
  /// The rkey under which this side is changing the other's memory now; 0: none.
  alignas(kCacheLineBytes) std::atomic<uint32_t> executing;
  /// Not 0: the other side has ended the connection, and this side must change nothing any more. Written by
  /// the other side.
  std::atomic<uint32_t> revoked;
  alignas(kCacheLineBytes) std::atomic<uint64_t> written_bytes;  // total ever placed in `ring`
  std::atomic<uint32_t> bell;     // this side's doorbell; 0 until it has a queue pair
  std::atomic<uint32_t> starved;  // not 0: the other side must ring when it posts receives or takes messages
  alignas(kCacheLineBytes) std::atomic<uint64_t> taken_bytes;  // total ever taken from the other's ring
  std::atomic<uint64_t> taken_messages;
  std::atomic<uint64_t> receives;  // total ever posted
  alignas(kCacheLineBytes) std::array<std::atomic<uint32_t>, kReceiveDepthMax> receive_bytes;
  alignas(kCacheLineBytes) std::array<std::byte, kRingBytes> ring;
};

struct Channel {
  std::array<ChannelSide, 2> sides;  // 0: the side that connected, 1: the side that listened
};
static_assert(sizeof(Channel) == 2 * (3 * kCacheLineBytes + 4 * kReceiveDepthMax + kRingBytes));

}  // namespace nam::fabric::shm
