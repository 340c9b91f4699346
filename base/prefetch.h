#pragma once

#include <cstddef>
#include <cstdint>

namespace nam {

/// Asks for the cache lines of [from, from + bytes), which are going to be read or, kForChange, changed.
/// Nothing is checked, or waited for.
template <bool kForChange>
inline void Prefetch(const void* from, size_t bytes) {
  constexpr uintptr_t kLineBytes = 64;
  const auto first = reinterpret_cast<uintptr_t>(from) / kLineBytes * kLineBytes;
  const auto end = reinterpret_cast<uintptr_t>(from) + bytes;
  for (uintptr_t line = first; line < end; line += kLineBytes)
    __builtin_prefetch(reinterpret_cast<const void*>(line), kForChange ? 1 : 0);
  // To GCC 12 a function that does nothing but this has no effect, and its calls are left out.
  asm volatile("");
}

}  // namespace nam
