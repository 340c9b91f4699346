#include "execution/join/bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

constexpr double kWordBits = 64;
constexpr double kLeastBytesOfKey = 0.25, kMostBytesOfKey = 16;

/// Keys fall into words by a Poisson distribution. In a word with k of them a bit is clear with probability
/// (1 - 1/64)^3k. Two or all of a key's three bits may coincide.
double OfKeysInWord(double mean) {
  constexpr double kOne = 1 / (kWordBits * kWordBits);
  constexpr double kTwo = 3 * (kWordBits - 1) / (kWordBits * kWordBits);
  double share = 0, probability = std::exp(-mean);
  const auto most = static_cast<int>(mean + 12 * std::sqrt(mean) + 24);
  for (int k = 0; k <= most; ++k) {
    const double set = 1 - std::pow(1 - 1 / kWordBits, 3 * k);
    share += probability * set * (kOne + set * (kTwo + set * (1 - kOne - kTwo)));
    probability *= mean / (k + 1);
  }
  return share;
}

}  // namespace

double BloomFilter::FalsePositives(uint64_t bytes, uint64_t keys) {
  const double words = std::max<double>(1, static_cast<double>(bytes / kWordBytes));
  const double mean = static_cast<double>(keys) / words;
  // Fewer than half a bit a key: nearly all words have all bits set.
  return mean > 2 * kWordBits ? 1 : OfKeysInWord(mean);
}

uint64_t BloomFilter::BytesFor(uint64_t keys, double false_positives) {
  NAM_CHECK(false_positives > 0 && false_positives < 1, "a share");
  double low = kLeastBytesOfKey, high = kMostBytesOfKey;
  const auto enough = [&](double bytes_of_key) {
    return OfKeysInWord(static_cast<double>(kWordBytes) / bytes_of_key) <= false_positives;
  };
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  const auto bytes = static_cast<uint64_t>(std::ceil(high * static_cast<double>(keys)));
  return std::max<uint64_t>(1, (bytes + kWordBytes - 1) / kWordBytes) * kWordBytes;
}

absl::StatusOr<BloomFilter> BloomFilter::Make(uint64_t bytes, MemoryBudget& budget) {
  const uint64_t words = std::max<uint64_t>(1, bytes / kWordBytes + (bytes % kWordBytes != 0));
  NAM_ASSIGN_OR_RETURN(auto made, MappedArray<uint64_t>::Make(words, budget));
  return BloomFilter(std::move(made));
}

absl::Status BloomFilter::Add(uint64_t offset, std::span<const std::byte> bytes) {
  const uint64_t all = words_.size() * kWordBytes;
  if (offset % kWordBytes != 0 || bytes.size() % kWordBytes != 0 || offset > all ||
      bytes.size() > all - offset)
    return absl::InvalidArgumentError("a part of a filter of another size");
  uint64_t* const words = words_.data() + offset / kWordBytes;
  for (size_t i = 0; i < bytes.size() / kWordBytes; ++i) {
    uint64_t other;
    std::memcpy(&other, bytes.data() + i * kWordBytes, sizeof(other));
    if (other != 0) std::atomic_ref<uint64_t>(words[i]).fetch_or(other, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
