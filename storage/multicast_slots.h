#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/block_runs.h"
#include "storage/multicast_layout.h"

namespace nam::storage {

/// The slots of a receiver's buffer in which blocks of a multicast stream are assembled. One thread.
///
///     free ─Assemble─▶ assembling ──last fragment──▶ ready ─GiveBack─▶ free
///       │                  └─ the receiver gives up ─▶ repairing ──last READ──▶ ready
///       └─Repair──────────────────────────────────────────┘
///
/// The receiver posts the READs of a repair and changes the slot's state.
class MulticastSlots {
 public:
  struct Slot {
    enum class State : uint8_t { kFree, kAssembling, kRepairing, kReady };
    State state = State::kFree;
    bool repaired = false;
    uint32_t source = 0;
    uint32_t block = 0;
    uint32_t missing = 0;        // fragments or READs
    std::vector<uint64_t> have;  // bitmap of fragments
  };

  MulticastSlots() = default;
  /// `buffer` outlives it; the slots lie at `offset` in it.
  MulticastSlots(std::byte* buffer, uint64_t offset, uint64_t slot_bytes, uint32_t count);

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }
  Slot& operator[](uint32_t slot) { return slots_[slot]; }
  /// The slot's offset in the buffer, in bytes.
  uint64_t offset(uint32_t slot) const { return offset_ + uint64_t{slot} * slot_bytes_; }
  std::byte* bytes(uint32_t slot) const { return buffer_ + offset(slot); }

  /// Takes a free slot for a block: Assemble if it arrives in fragments, Repair if it is READ. nullopt if
  /// none is free.
  std::optional<uint32_t> Assemble(uint32_t source, uint32_t block, uint32_t fragments);
  std::optional<uint32_t> Repair(uint32_t source, uint32_t block);
  /// Copies a fragment of the concatenated runs to its place in the block. False: a duplicate.
  bool Place(uint32_t slot, std::span<const ByteRange> runs, const Fragment& fragment);
  void GiveBack(uint32_t slot);

 private:
  std::optional<uint32_t> Take(Slot::State state, uint32_t source, uint32_t block);

  std::byte* buffer_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t slot_bytes_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace nam::storage
