#include "fabric/shm/datagram_ring.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/word_copy.h"

namespace nam::fabric::shm {

absl::StatusOr<DatagramRingWriter> DatagramRingWriter::Create(uint32_t slots) {
  NAM_CHECK(std::has_single_bit(slots) && slots <= kDatagramSlotsMax);
  NAM_ASSIGN_OR_RETURN(SharedMemory memory, CreateShared("nam-datagrams", DatagramRingBytes(slots),
                                                         PeerAccess::kReadOnly, /*huge_pages=*/false));
  return DatagramRingWriter(std::move(memory), slots);
}

void DatagramRingWriter::Write(const std::byte* payload, uint32_t bytes) {
  DatagramSlot& slot = ring().slots[written_ & (slots_ - 1)];
  slot.sequence.store(2 * written_ + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.bytes.store(bytes, std::memory_order_relaxed);
  CopyToShared(slot.payload.data(), payload, bytes);
  slot.sequence.store(2 * written_ + 2, std::memory_order_release);
  ring().written.store(++written_, std::memory_order_release);
}

absl::StatusOr<DatagramRingReader> DatagramRingReader::Map(int descriptor, uint32_t slots) {
  if (!std::has_single_bit(slots) || slots > kDatagramSlotsMax) {
    return absl::InvalidArgumentError("the peer's ring of datagrams has an impossible size");
  }
  NAM_ASSIGN_OR_RETURN(Mapping mapping,
                       MapFromPeer(descriptor, DatagramRingBytes(slots), PeerAccess::kReadOnly));
  return DatagramRingReader(std::move(mapping), slots);
}

uint64_t DatagramRingReader::Refresh() {
  end_ = written();
  if (end_ - cursor_ <= slots_) return 0;
  // Only an invalid writer moves backwards.
  if (end_ < cursor_) {
    cursor_ = end_;
    return 0;
  }
  // Leaves a lead over the writer, which is about to overwrite the oldest slots.
  const uint64_t lost = end_ - cursor_ - slots_ + slots_ / 4;
  cursor_ += lost;
  return lost;
}

DatagramRingReader::Outcome DatagramRingReader::Read(std::byte* into, uint32_t capacity_bytes,
                                                     uint32_t* bytes) {
  const uint64_t complete = 2 * cursor_ + 2;
  const DatagramSlot& slot = ring().slots[cursor_++ & (slots_ - 1)];
  if (slot.sequence.load(std::memory_order_acquire) != complete) return Outcome::kLost;
  *bytes = slot.bytes.load(std::memory_order_relaxed);
  const bool fits = *bytes <= capacity_bytes;
  if (*bytes <= kMaxDatagramBytes && fits) CopyFromShared(into, slot.payload.data(), *bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.sequence.load(std::memory_order_relaxed) != complete) return Outcome::kLost;
  if (*bytes > kMaxDatagramBytes) return Outcome::kGarbage;
  return fits ? Outcome::kRead : Outcome::kTooLong;
}

}  // namespace nam::fabric::shm
