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

/// Which keys a side of a join has: never wrong about one that it has, and wrong about others as seldom as
/// its size allows. A blocked Bloom filter whose blocks are words: all bits of a key lie in one word, so that
/// adding it is one atomic instruction and a look-up one load. For a share of errors of 0.1 that takes less
/// memory than larger blocks, which have to set more bits of a key; for one of 0.01 it takes a third more.
///
///     hash  63      56 55        18 17   12 11    6 5     0
///           ├ exchange ┼ word ─────┼─ bit ─┼─ bit ─┼─ bit ─┤
///
/// The same on all servers. Keys are added by all threads at once, and found once they have ended.
class BloomFilter {
 public:
  static constexpr uint64_t kWordBytes = sizeof(uint64_t);

  /// For so many different keys, so that of others no more than this share is found (0 to 1, both excluded).
  static uint64_t BytesFor(uint64_t keys, double false_positives);
  /// The share of other keys that a filter of so many bytes finds when it has so many keys.
  static double FalsePositives(uint64_t bytes, uint64_t keys);

  /// `bytes`: rounded up to words. RESOURCE_EXHAUSTED if the budget does not allow it; it outlives the
  /// filter.
  static absl::StatusOr<BloomFilter> Make(uint64_t bytes, MemoryBudget& budget);

  void Add(uint64_t hash) {
    const std::atomic_ref<uint64_t> word(words_[Place(hash)]);
    const uint64_t bits = BitsOf(hash);
    // Keys that come again find their bits set: the line stays shared.
    if ((word.load(std::memory_order_relaxed) & bits) != bits) word.fetch_or(bits, std::memory_order_relaxed);
  }
  bool MayHave(uint64_t hash) const { return HasBits(*WordOf(hash), hash); }
  /// MayHave in two steps, between which other words are asked for.
  const uint64_t* WordOf(uint64_t hash) const { return words_.data() + Place(hash); }
  static bool HasBits(uint64_t word, uint64_t hash) { return (~word & BitsOf(hash)) == 0; }
  /// Asks for the word that Add is going to change.
  void AskToAdd(uint64_t hash) const { Prefetch<true>(WordOf(hash), kWordBytes); }

  /// As it lies in messages.
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_.data(), words_.size())); }
  /// It has the other's keys, too: bytes [offset, offset + bytes.size()) of a filter of the same size.
  /// INVALID_ARGUMENT if they are not, or are no words.
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
