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
/// its size allows. A blocked Bloom filter: a key's bits lie in one block of 32 bytes, one in each of its
/// words, so a look-up costs one cache miss.
///
///     hash  63      56 55        24 ⋯ 31       0
///           ├ exchange ┼ block ────┤   └ bits ─┤ times an odd number for each word, its highest five bits
///
/// The same on all servers. Keys are added by all threads at once, and found once they have ended.
class BloomFilter {
 public:
  static constexpr uint64_t kBlockBytes = 32;

  /// For so many different keys, so that of others no more than this share is found (0 to 1, both excluded).
  static uint64_t BytesFor(uint64_t keys, double false_positives);
  /// The share of other keys that a filter of so many bytes finds when it has so many keys.
  static double FalsePositives(uint64_t bytes, uint64_t keys);

  /// `bytes`: rounded up to blocks. RESOURCE_EXHAUSTED if the budget does not allow it; it outlives the
  /// filter.
  static absl::StatusOr<BloomFilter> Make(uint64_t bytes, MemoryBudget& budget);

  void Add(uint64_t hash) {
    uint32_t* const words = BlockOf(hash);
    for (uint32_t i = 0; i < kWords; ++i) {
      const std::atomic_ref<uint32_t> word(words[i]);
      const uint32_t bit = BitOf(hash, i);
      // Most keys of a full filter find their bits set: the line stays shared.
      if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
    }
  }
  bool MayHave(uint64_t hash) const {
    const uint32_t* const words = BlockOf(hash);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < kWords; ++i) missing |= ~words[i] & BitOf(hash, i);
    return missing == 0;
  }
  /// Asks for the block that MayHave is going to look at.
  void Ask(uint64_t hash) const { Prefetch<false>(BlockOf(hash), kBlockBytes); }
  /// Those of `count` positions whose hashes (by position) may be here go to `kept`, which may be
  /// `positions`; their number.
  uint32_t Keep(const uint64_t* hashes, const uint32_t* positions, uint32_t count, uint32_t* kept) const;

  /// As it lies in messages.
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_.data(), words_.size())); }
  /// It has the other's keys, too: bytes [offset, offset + bytes.size()) of a filter of the same size.
  /// INVALID_ARGUMENT if they are not, or are no words.
  absl::Status Add(uint64_t offset, std::span<const std::byte> bytes);

 private:
  static constexpr uint32_t kWords = kBlockBytes / sizeof(uint32_t);
  static constexpr uint32_t kOdd[kWords] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                            0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

  BloomFilter(MappedArray<uint32_t> words, uint64_t blocks) : words_(std::move(words)), blocks_(blocks) {}
  uint64_t Place(uint64_t hash) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(hash << kExchangeBits) * blocks_ >> 64) *
           kWords;
  }
  uint32_t* BlockOf(uint64_t hash) const { return words_.data() + Place(hash); }
  static uint32_t BitOf(uint64_t hash, uint32_t word) {
    return 1u << (static_cast<uint32_t>(hash) * kOdd[word] >> 27);
  }

  MappedArray<uint32_t> words_;
  uint64_t blocks_;
};

}  // namespace nam::execution
