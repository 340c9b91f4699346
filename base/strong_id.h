#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "absl/hash/hash.h"

namespace nam {

/// An integer that mixes with no other integer. Explicit both ways.
template <typename Tag, typename Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const StrongId& id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{};
};

/// A memory server for its life in the catalog; never used again after it left. 0 is nobody.
using MemoryServerId = StrongId<struct MemoryServerTag, uint16_t>;
/// Any member of the cluster (memory or compute server, client). 0 is nobody.
using MemberId = StrongId<struct MemberTag, uint32_t>;
/// Who memory was allocated for (a load, a table); released as a whole. 0 is nobody.
using AllocationId = StrongId<struct AllocationTag, uint64_t>;

}  // namespace nam
