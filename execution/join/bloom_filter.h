#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/prefetch.h"
#include "execution/join/mapped_array.h"
#include "execution/memory_budget.h"
#include "types/hash.h"

namespace nam::execution {

/// The keys of a join's side: never misses a key of it, and accepts others as rarely as its size allows. A
/// blocked Bloom filter with words as blocks: all bits of a key lie in one word, so that adding it is one
/// atomic instruction and a look-up one load. For an error rate of 0.1 that takes less memory than larger
/// blocks, which have to set more bits of a key; for 0.01 it takes a third more.
///
///     hash  63      56 55        18 17   12 11    6 5     0
///           ├ exchange ┼ word ─────┼─ bit ─┼─ bit ─┼─ bit ─┤
///
/// The same on all servers. All threads add keys at once; look-ups come after they have ended.
class BloomFilter {
 public:
  static constexpr uint64_t kWordBytes = sizeof(uint64_t);

  /// The bytes for so many different keys at this rate of false positives (between 0 and 1).
  static uint64_t BytesFor(uint64_t keys, double false_positives);
  /// The rate of false positives of a filter of so many bytes with so many keys.
  static double FalsePositives(uint64_t bytes, uint64_t keys);

  /// `bytes`: rounded up to words. RESOURCE_EXHAUSTED if the budget does not allow it; it outlives the
  /// filter.
  static absl::StatusOr<BloomFilter> Make(uint64_t bytes, MemoryBudget& budget);

  void Add(uint64_t hash) {
    const std::atomic_ref<uint64_t> word(words_[Place(hash)]);
    const uint64_t bits = BitsOf(hash);
    // A repeated key finds its bits set: the line stays shared.
    if ((word.load(std::memory_order_relaxed) & bits) != bits) word.fetch_or(bits, std::memory_order_relaxed);
  }
  bool MayHave(uint64_t hash) const { return HasBits(*WordOf(hash), hash); }
  /// MayHave in two steps, so that callers can prefetch between them.
  const uint64_t* WordOf(uint64_t hash) const { return words_.data() + Place(hash); }
  static bool HasBits(uint64_t word, uint64_t hash) { return (~word & BitsOf(hash)) == 0; }
  /// Prefetches the word that Add will change.
  void AskToAdd(uint64_t hash) const { Prefetch<true>(WordOf(hash), kWordBytes); }

  /// The filter's bytes for messages.
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_.data(), words_.size())); }
  /// Adds the keys of another filter of the same size: its bytes [offset, offset + bytes.size()).
  /// INVALID_ARGUMENT if these are out of range, or not whole words.
  absl::Status Add(uint64_t offset, std::span<const std::byte> bytes);

 private:
  explicit BloomFilter(MappedArray<uint64_t> words) : words_(std::move(words)) {}
  uint64_t Place(uint64_t hash) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(hash << kExchangeBits) * words_.size() >> 64);
  }
  static uint64_t BitsOf(uint64_t hash) {
    return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) | uint64_t{1} << (hash >> 12 & 63);
  }

  MappedArray<uint64_t> words_;
};

}  // namespace nam::execution
