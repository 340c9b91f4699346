#pragma once

#include <cstddef>
#include <cstdint>

namespace nam {

/// Prefetches the cache lines of [from, from + bytes) for reading or, with kForChange, for writing. Checks
/// nothing and waits for nothing.
template <bool kForChange>
inline void Prefetch(const void* from, size_t bytes) {
  constexpr uintptr_t kLineBytes = 64;
  const auto first = reinterpret_cast<uintptr_t>(from) / kLineBytes * kLineBytes;
  const auto end = reinterpret_cast<uintptr_t>(from) + bytes;
  // A processor sustains many more misses of the second level than of the first.
  constexpr size_t kFirstLevelBytesMax = 512;
  const bool first_level = bytes <= kFirstLevelBytesMax;
  for (uintptr_t line = first; line < end; line += kLineBytes) {
    const auto* const at = reinterpret_cast<const char*>(line);
    if constexpr (!kForChange) {
      first_level ? __builtin_prefetch(at, 0, 3) : __builtin_prefetch(at, 0, 2);
    } else {
#if defined(__x86_64__)
      // For writes, GCC turns __builtin_prefetch into a read prefetch unless the whole program may assume the
      // instruction. Processors without it ignore it.
      asm volatile("prefetchw %0" : : "m"(*at));
#else
      __builtin_prefetch(at, 1);
#endif
    }
  }
  // GCC 12 considers a function that does only this free of effects and drops its calls.
  asm volatile("");
}

}  // namespace nam
