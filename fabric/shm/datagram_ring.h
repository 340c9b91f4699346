#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

/// Datagrams travel in rings, each with one writer: a ring per group, and one per sender and receiver.
/// Readers map it read-only (the memfd is sealed so), have cursors of their own, and are not looked at by
/// the writer: who is too slow, stopped or dead loses datagrams and costs the writer nothing. No reader can
/// harm a ring, and no writer another's.
///
///     DatagramRing:   written | slot 0 | slot 1 | … | slot k-1 |            k: a power of two
///     slot n mod k:   sequence | bytes | payload                            of datagram n
///
///     writer, datagram n                      reader, cursor c
///     sequence = 2n + 1                       w = written        (acquire);  c == w: nothing there
///     ─ release fence ─                       w - c > k: overrun, what is overwritten is skipped as lost
///     bytes, payload                          sequence == 2c + 2 (acquire)?  else lost
///     sequence = 2n + 2  (release)            copy bytes, payload
///     written = n + 1    (release)            ─ acquire fence ─
///     ring the readers' doorbells             sequence == 2c + 2 still?      else torn: lost
///
/// A reader looks only below `written`, so a writer that stops in the middle of a slot holds up nobody.
namespace nam::fabric::shm {

struct DatagramSlot {
  alignas(kCacheLineBytes) std::atomic<uint64_t> sequence;
  std::atomic<uint32_t> bytes;
  alignas(8) std::array<std::byte, kMaxDatagramBytes> payload;
};
static_assert(sizeof(DatagramSlot) == kMaxDatagramBytes + kCacheLineBytes &&
              offsetof(DatagramSlot, payload) == 16);

struct DatagramRing {
  alignas(kCacheLineBytes) std::atomic<uint64_t> written;
  DatagramSlot slots[1];  // as many as there are
};
static_assert(offsetof(DatagramRing, slots) == kCacheLineBytes);

inline constexpr uint32_t kDatagramSlotsMax = 1u << 16;

constexpr size_t DatagramRingBytes(uint32_t slots) {
  return kCacheLineBytes + size_t{slots} * sizeof(DatagramSlot);
}

/// A ring of this process. Used by the thread of its queue pair, but for Descriptor().
class DatagramRingWriter {
 public:
  static absl::StatusOr<DatagramRingWriter> Create(uint32_t slots);
  uint32_t slots() const { return slots_; }
  void Write(const std::byte* payload, uint32_t bytes);
  /// To hand to a reader. Any thread.
  absl::StatusOr<UniqueFd> Descriptor() const {
    return DescriptorForPeer(memory_.descriptor.get(), PeerAccess::kReadOnly);
  }

 private:
  DatagramRingWriter(SharedMemory memory, uint32_t slots) : memory_(std::move(memory)), slots_(slots) {}
  DatagramRing& ring() { return *reinterpret_cast<DatagramRing*>(memory_.mapping.data()); }

  SharedMemory memory_;
  uint32_t slots_;
  uint64_t written_ = 0;  // the shared one is not trusted to stay what it was
};

/// A peer's ring, read by one thread. What the peer wrote is checked.
class DatagramRingReader {
 public:
  /// Of a descriptor that a peer handed out. INVALID_ARGUMENT when it is not sealed, or too short.
  static absl::StatusOr<DatagramRingReader> Map(int descriptor, uint32_t slots);

  /// From here on only what is written later is read.
  void SkipToEnd() { cursor_ = end_ = written(); }
  /// Looks how far the writer is; the number of datagrams that it has overwritten.
  uint64_t Refresh();
  /// Between the cursor and what Refresh saw.
  uint64_t waiting() const { return end_ - cursor_; }
  void Drop() { cursor_ = end_; }

  enum class Outcome { kRead, kTooLong, kLost, kGarbage };
  /// The next one that waits; `into` takes `capacity_bytes`. It has passed, whatever the outcome.
  Outcome Read(std::byte* into, uint32_t capacity_bytes, uint32_t* bytes);

 private:
  DatagramRingReader(Mapping mapping, uint32_t slots) : mapping_(std::move(mapping)), slots_(slots) {}
  const DatagramRing& ring() const { return *reinterpret_cast<const DatagramRing*>(mapping_.data()); }
  uint64_t written() const { return ring().written.load(std::memory_order_acquire); }

  Mapping mapping_;
  uint32_t slots_;
  uint64_t cursor_ = 0;
  uint64_t end_ = 0;
};

}  // namespace nam::fabric::shm
