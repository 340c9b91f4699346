#include "fabric/tcp/regions.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/net/authentication.h"

namespace nam::fabric::tcp {
namespace {

constexpr uint32_t kIndexesMax = 65'536;
constexpr uint32_t kGenerations = 65'536;

uint32_t IndexOf(uint32_t key) {
  return key >> 16;
}

}  // namespace

Regions::Regions() {
  // Index 0 is never used, so no key is 0.
  next_index_ = 1;
}

const Regions::Slot* Regions::SlotOf(uint32_t key) const {
  const Chunk* chunk = chunks_[IndexOf(key) / kChunkSlots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[IndexOf(key) % kChunkSlots];
}

absl::StatusOr<uint32_t> Regions::Register(const View& view) {
  const MutexLock lock(mutex_);
  uint32_t index = 0;
  if (next_index_ < kIndexesMax) {
    // Prefers a fresh index, so that keys of old regions stay unknown the longest.
    index = next_index_++;
    auto& chunk = owned_[index / kChunkSlots];
    if (chunk == nullptr) {
      chunk = std::make_unique<Chunk>();
      chunks_[index / kChunkSlots].store(chunk.get(), std::memory_order_release);
    }
    uint16_t generation = 0;
    net::FillRandom({reinterpret_cast<uint8_t*>(&generation), sizeof(generation)});
    (*chunk)[index % kChunkSlots].generation = generation;
  } else if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else {
    return absl::ResourceExhaustedError(
        "65535 memory regions are registered, which is the most: free some, or allocate larger ones");
  }
  Slot& slot = (*owned_[index / kChunkSlots])[index % kChunkSlots];
  const uint32_t key = index << 16 | slot.generation++;
  ++slot.uses;
  slot.data.store(view.data, std::memory_order_relaxed);
  slot.bytes.store(view.bytes, std::memory_order_relaxed);
  slot.access.store(view.access, std::memory_order_relaxed);
  slot.key.store(key, std::memory_order_release);
  return key;
}

void Regions::Retire(uint32_t key) {
  auto* slot = const_cast<Slot*>(SlotOf(key));
  NAM_CHECK(slot != nullptr && slot->key.exchange(0) == key, "region retired twice");
}

void Regions::Recycle(uint32_t key) {
  const MutexLock lock(mutex_);
  const Slot* slot = SlotOf(key);
  if (slot->uses < kGenerations) free_.push_back(IndexOf(key));
}

std::optional<Regions::View> Regions::Find(uint32_t key) const {
  const Slot* slot = SlotOf(key);
  if (key == 0 || slot == nullptr || slot->key.load(std::memory_order_acquire) != key) return std::nullopt;
  const View view{slot->data.load(std::memory_order_relaxed), slot->bytes.load(std::memory_order_relaxed),
                  slot->access.load(std::memory_order_relaxed)};
  // If the key is unchanged after the fields were read, the fields are valid.
  if (slot->key.load(std::memory_order_acquire) != key) return std::nullopt;
  return view;
}

CompletionStatus Regions::Resolve(RemoteAddress address, uint32_t bytes, Access wanted,
                                  std::byte*& at) const {
  const auto view = Find(address.rkey.value);
  if (!view || !Allows(view->access, wanted)) return CompletionStatus::kRemoteAccessError;
  if (wanted == Access::kAtomic && address.offset % sizeof(uint64_t) != 0) {
    return CompletionStatus::kRemoteInvalidRequest;
  }
  if (address.offset > view->bytes || bytes > view->bytes - address.offset) {
    return CompletionStatus::kRemoteAccessError;
  }
  at = view->data + address.offset;
  return CompletionStatus::kOk;
}

bool Regions::Contains(const LocalBuffer& buffer) const {
  if (buffer.bytes == 0) return true;
  const auto view = Find(buffer.lkey.value);
  if (!view) return false;
  const auto begin = reinterpret_cast<uintptr_t>(buffer.data);
  const auto base = reinterpret_cast<uintptr_t>(view->data);
  return begin >= base && begin - base <= view->bytes && buffer.bytes <= view->bytes - (begin - base);
}

}  // namespace nam::fabric::tcp
