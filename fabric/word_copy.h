#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Copies between a private buffer and shared memory that other threads change concurrently: an aligned
/// 8-byte word of the shared side is never torn. For co-aligned buffers memcpy keeps that promise when it
/// gets whole words only (x86-64 and aarch64 implementations move at least 8 aligned bytes at once); the rest
/// goes word by word. The kernel's socket copies do not keep it: in a measurement, sendmsg from a region with
/// a concurrent writer tore 0.06 % of the words.
///
/// The order in which other threads see the words is unspecified: callers put fences between copies.
namespace nam::fabric {

inline constexpr size_t kWordBytes = 8;

inline bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % kWordBytes == 0;
}

inline uint64_t LoadWord(const std::byte* p) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(p), __ATOMIC_RELAXED);
}
inline void StoreWord(std::byte* p, uint64_t word) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(p), word, __ATOMIC_RELAXED);
}

/// For fewer than 8 bytes, or the bytes before the first and after the last whole word.
inline void CopyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  auto* into = reinterpret_cast<unsigned char*>(to);  // clang has no atomics on std::byte
  const auto* out_of = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = 0; i < bytes; ++i) {
    __atomic_store_n(into + i, __atomic_load_n(out_of + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  }
}

/// Both sides aligned; whole words only.
inline void CopyWords(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SANITIZE_THREAD__)
  constexpr size_t kWordByWordMax = SIZE_MAX;  // races are part of the contract here
#else
  constexpr size_t kWordByWordMax = 64;
#endif
  if (bytes > kWordByWordMax) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t i = 0; i < bytes; i += kWordBytes) StoreWord(to + i, LoadWord(from + i));
}

inline size_t BytesToBoundary(const void* p, size_t at_most) {
  const size_t bytes = -reinterpret_cast<uintptr_t>(p) % kWordBytes;
  return bytes < at_most ? bytes : at_most;
}

inline void CopyFromShared(std::byte* to, const std::byte* shared, size_t bytes) {
  const size_t head = BytesToBoundary(shared, bytes);
  CopyBytes(to, shared, head);
  const size_t words = (bytes - head) & ~(kWordBytes - 1);
  if (IsAligned(to + head)) {
    CopyWords(to + head, shared + head, words);
  } else {
    for (size_t i = head; i < head + words; i += kWordBytes) {
      const uint64_t word = LoadWord(shared + i);
      std::memcpy(to + i, &word, kWordBytes);
    }
  }
  CopyBytes(to + head + words, shared + head + words, bytes - head - words);
}

inline void CopyToShared(std::byte* shared, const std::byte* from, size_t bytes) {
  const size_t head = BytesToBoundary(shared, bytes);
  CopyBytes(shared, from, head);
  const size_t words = (bytes - head) & ~(kWordBytes - 1);
  if (IsAligned(from + head)) {
    CopyWords(shared + head, from + head, words);
  } else {
    for (size_t i = head; i < head + words; i += kWordBytes) {
      uint64_t word;
      std::memcpy(&word, from + i, kWordBytes);
      StoreWord(shared + i, word);
    }
  }
  CopyBytes(shared + head + words, from + head + words, bytes - head - words);
}

/// From this size on, stores to shared memory bypass the caches. The lines are not read here soon, need not
/// be fetched before they are overwritten, and evict nothing.
inline constexpr size_t kLeastStreamedBytes = 2048;

/// Like CopyToShared, for whole cache lines that are aligned on both sides. The stores precede all later
/// stores.
inline void StreamToShared(std::byte* shared, const std::byte* from, size_t bytes) {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(shared);
  for (const auto* const end = source + bytes / sizeof(__m128i); source != end; source += 4, target += 4) {
    const __m128i a = _mm_load_si128(source), b = _mm_load_si128(source + 1);
    const __m128i c = _mm_load_si128(source + 2), d = _mm_load_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
#else
  CopyToShared(shared, from, bytes);
#endif
}

/// True if StreamToShared is applicable and pays off.
inline bool CanStream(const std::byte* shared, const std::byte* from, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  const auto bits = reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(from) | bytes;
  return bytes >= kLeastStreamedBytes && bits % kLineBytes == 0;
}

/// Orders an atomic before later READs. x86 guarantees that order; other processors may let a load pass the
/// atomic's store.
inline void FenceAfterAtomic() {
#if !defined(__x86_64__)
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/// The bytes of a partial arrival that end on a word boundary and may be placed before more arrives.
inline size_t WholeWords(const std::byte* shared, size_t bytes) {
  const size_t past = (reinterpret_cast<uintptr_t>(shared) + bytes) % kWordBytes;
  return bytes > past ? bytes - past : 0;
}

}  // namespace nam::fabric
