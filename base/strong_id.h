#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "absl/hash/hash.h"

namespace nam {

/// An integer type that does not mix with other integers. Conversions are explicit in both directions.
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

/// A memory server for its life in the catalog; never reused after it left. 0 is none.
using MemoryServerId = StrongId<struct MemoryServerTag, uint16_t>;
/// Any member of the cluster (memory or compute server, client). 0 is none.
using MemberId = StrongId<struct MemberTag, uint32_t>;
/// The owner of allocated memory (a load, a table); its memory is released as a whole. 0 is none.
using AllocationId = StrongId<struct AllocationTag, uint64_t>;

}  // namespace nam
