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
  // Of misses of the second level a processor bears many more at once than of the first's.
  constexpr size_t kFirstLevelBytesMax = 512;
  const bool first_level = bytes <= kFirstLevelBytesMax;
  for (uintptr_t line = first; line < end; line += kLineBytes) {
    const auto* const at = reinterpret_cast<const char*>(line);
    if constexpr (!kForChange) {
      first_level ? __builtin_prefetch(at, 0, 3) : __builtin_prefetch(at, 0, 2);
    } else {
#if defined(__x86_64__)
      // What GCC makes of __builtin_prefetch for a write asks to read, unless all of the program may assume
      // the instruction. Where a processor does not know it, it does nothing.
      asm volatile("prefetchw %0" : : "m"(*at));
#else
      __builtin_prefetch(at, 1);
#endif
    }
  }
  // To GCC 12 a function that does nothing but this has no effect, and its calls are left out.
  asm volatile("");
}

}  // namespace nam
