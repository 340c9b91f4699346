#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/fabric.h"
#include "fabric/verbs/registry.h"

namespace nam::fabric::verbs {

/// Caches the regions that one queue pair's thread used last, to avoid the registry's lock.
class LocalRegions {
 public:
  explicit LocalRegions(const Registry& registry) : registry_(registry) {}

  /// The NIC's key for the buffer. Nothing if the buffer is not inside the region of its key.
  std::optional<uint32_t> NicKey(const LocalBuffer& buffer) {
    if (buffer.bytes == 0) return 0;
    const Registry::Entry* entry = Look(buffer.lkey.value);
    if (entry == nullptr || !Contains(*entry, buffer)) return std::nullopt;
    return entry->nic_lkey;
  }

 private:
  struct Cached {
    uint32_t key = 0;
    Registry::Entry entry;
  };

  const Registry::Entry* Look(uint32_t key) {
    if (const uint64_t epoch = registry_.epoch(); epoch != epoch_) {
      cached_ = {};
      epoch_ = epoch;
    }
    for (const Cached& cached : cached_) {
      if (cached.key == key && key != 0) return &cached.entry;
    }
    const auto entry = registry_.Find(key);
    if (!entry) return nullptr;
    Cached& place = cached_[next_++ % cached_.size()];
    place = {key, *entry};
    return &place.entry;
  }

  const Registry& registry_;
  uint64_t epoch_ = 0;
  std::array<Cached, 4> cached_{};
  size_t next_ = 0;
};

}  // namespace nam::fabric::verbs
