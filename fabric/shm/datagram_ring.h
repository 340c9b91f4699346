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

/// Datagrams travel in rings with one writer each: one ring per group, and one per sender-receiver pair.
/// Readers map the ring read-only (the memfd is sealed so) and keep their own cursors, which the writer never
/// reads: a slow, stopped or dead reader loses datagrams and costs the writer nothing. No reader can damage a
/// ring, and no writer can damage another's ring.
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
/// A reader looks only below `written`, so a writer that stops inside a slot delays no reader.
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

/// A ring of this process. Used by its queue pair's thread, except for Descriptor().
class DatagramRingWriter {
 public:
  static absl::StatusOr<DatagramRingWriter> Create(uint32_t slots);
  uint32_t slots() const { return slots_; }
  void Write(const std::byte* payload, uint32_t bytes);
  /// A descriptor for a reader. Any thread.
  absl::StatusOr<UniqueFd> Descriptor() const {
    return DescriptorForPeer(memory_.descriptor.get(), PeerAccess::kReadOnly);
  }

 private:
  DatagramRingWriter(SharedMemory memory, uint32_t slots) : memory_(std::move(memory)), slots_(slots) {}
  DatagramRing& ring() { return *reinterpret_cast<DatagramRing*>(memory_.mapping.data()); }

  SharedMemory memory_;
  uint32_t slots_;
  uint64_t written_ = 0;  // private: the shared counter is not trusted
};

/// A peer's ring, read by one thread. All values that the peer wrote are checked.
class DatagramRingReader {
 public:
  /// Maps a peer's descriptor. INVALID_ARGUMENT if it is not sealed or too short.
  static absl::StatusOr<DatagramRingReader> Map(int descriptor, uint32_t slots);

  /// Skips everything written so far.
  void SkipToEnd() { cursor_ = end_ = written(); }
  /// Loads the writer's position; returns the number of overwritten datagrams.
  uint64_t Refresh();
  /// Datagrams between the cursor and the position that Refresh saw.
  uint64_t waiting() const { return end_ - cursor_; }
  void Drop() { cursor_ = end_; }

  enum class Outcome { kRead, kTooLong, kLost, kGarbage };
  /// Reads the next waiting datagram into `into`, which takes `capacity_bytes`. Advances whatever the
  /// outcome.
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
