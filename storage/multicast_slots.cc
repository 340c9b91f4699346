#include "storage/multicast_slots.h"

#include <algorithm>
#include <cstring>

namespace nam::storage {
namespace {

void Scatter(std::span<const ByteRange> runs, uint32_t offset, std::span<const std::byte> from,
             std::byte* block) {
  for (const ByteRange& run : runs) {
    if (from.empty()) return;
    if (offset >= run.bytes) {
      offset -= run.bytes;
      continue;
    }
    const size_t n = std::min<size_t>(from.size(), run.bytes - offset);
    std::memcpy(block + run.offset + offset, from.data(), n);
    from = from.subspan(n);
    offset = 0;
  }
}

}  // namespace

MulticastSlots::MulticastSlots(std::byte* buffer, uint64_t offset, uint64_t slot_bytes, uint32_t count)
    : buffer_(buffer), offset_(offset), slot_bytes_(slot_bytes), slots_(count) {
  for (uint32_t slot = count; slot > 0; --slot) free_.push_back(slot - 1);
}

std::optional<uint32_t> MulticastSlots::Take(Slot::State state, uint32_t source, uint32_t block) {
  if (free_.empty()) return std::nullopt;
  const uint32_t number = free_.back();
  free_.pop_back();
  Slot& slot = slots_[number];
  slot.state = state;
  slot.repaired = false;
  slot.source = source;
  slot.block = block;
  return number;
}

std::optional<uint32_t> MulticastSlots::Assemble(uint32_t source, uint32_t block, uint32_t fragments) {
  const std::optional<uint32_t> number = Take(Slot::State::kAssembling, source, block);
  if (!number) return std::nullopt;
  slots_[*number].missing = fragments;
  slots_[*number].have.assign((fragments + 63) / 64, 0);
  return number;
}

std::optional<uint32_t> MulticastSlots::Repair(uint32_t source, uint32_t block) {
  return Take(Slot::State::kRepairing, source, block);
}

bool MulticastSlots::Place(uint32_t number, std::span<const ByteRange> runs, const Fragment& fragment) {
  const FragmentHeader& header = fragment.header;
  Slot& slot = slots_[number];
  uint64_t& have = slot.have[header.fragment / 64];
  const uint64_t bit = uint64_t{1} << (header.fragment % 64);
  if ((have & bit) != 0) return false;
  have |= bit;
  Scatter(runs, header.offset, fragment.payload, bytes(number));
  if (--slot.missing == 0) slot.state = Slot::State::kReady;
  return true;
}

void MulticastSlots::GiveBack(uint32_t slot) {
  slots_[slot].state = Slot::State::kFree;
  free_.push_back(slot);
}

}  // namespace nam::storage
