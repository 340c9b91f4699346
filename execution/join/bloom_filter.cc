#include "execution/join/bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// Look-ups ahead whose blocks are asked for.
constexpr uint32_t kAhead = 16;
constexpr double kLeastBytesOfKey = 0.25, kMostBytesOfKey = 16;

/// Keys fall into blocks by a Poisson distribution. In a block that has k of them a word's bit is set by one
/// with 1/32, and all of a block's words have to be wrong.
double OfKeysInBlock(double mean, uint32_t words) {
  double share = 0, probability = std::exp(-mean);
  const auto most = static_cast<int>(mean + 12 * std::sqrt(mean) + 24);
  for (int k = 0; k <= most; ++k) {
    share += probability * std::pow(1 - std::pow(1 - 1.0 / 32, k), words);
    probability *= mean / (k + 1);
  }
  return share;
}

}  // namespace

double BloomFilter::FalsePositives(uint64_t bytes, uint64_t keys) {
  const double blocks = std::max<double>(1, static_cast<double>(bytes / kBlockBytes));
  const double mean = static_cast<double>(keys) / blocks;
  // Fewer than two bits of a key: of nearly all words all bits are set.
  return mean > 128 ? 1 : OfKeysInBlock(mean, kWords);
}

uint64_t BloomFilter::BytesFor(uint64_t keys, double false_positives) {
  NAM_CHECK(false_positives > 0 && false_positives < 1, "a share");
  double low = kLeastBytesOfKey, high = kMostBytesOfKey;
  const auto enough = [&](double bytes_of_key) {
    return OfKeysInBlock(static_cast<double>(kBlockBytes) / bytes_of_key, kWords) <= false_positives;
  };
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  const auto bytes = static_cast<uint64_t>(std::ceil(high * static_cast<double>(keys)));
  return std::max<uint64_t>(1, (bytes + kBlockBytes - 1) / kBlockBytes) * kBlockBytes;
}

absl::StatusOr<BloomFilter> BloomFilter::Make(uint64_t bytes, MemoryBudget& budget) {
  const uint64_t blocks = std::max<uint64_t>(1, bytes / kBlockBytes + (bytes % kBlockBytes != 0));
  NAM_ASSIGN_OR_RETURN(auto words, MappedArray<uint32_t>::Make(blocks * kWords, budget));
  return BloomFilter(std::move(words), blocks);
}

uint32_t BloomFilter::Keep(const uint64_t* hashes, const uint32_t* positions, uint32_t count,
                           uint32_t* kept) const {
  uint32_t n = 0;
  for (uint32_t i = 0; i < std::min(kAhead, count); ++i) Ask(hashes[positions[i]]);
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count) Ask(hashes[positions[i + kAhead]]);
    const uint32_t position = positions[i];
    const bool may = MayHave(hashes[position]);
    kept[n] = position;
    n += may;
  }
  return n;
}

absl::Status BloomFilter::Add(uint64_t offset, std::span<const std::byte> bytes) {
  const uint64_t all = words_.size() * sizeof(uint32_t);
  if (offset % sizeof(uint32_t) != 0 || bytes.size() % sizeof(uint32_t) != 0 || offset > all ||
      bytes.size() > all - offset)
    return absl::InvalidArgumentError("a part of a filter of another size");
  uint32_t* const words = words_.data() + offset / sizeof(uint32_t);
  for (size_t i = 0; i < bytes.size() / sizeof(uint32_t); ++i) {
    uint32_t other;
    std::memcpy(&other, bytes.data() + i * sizeof(uint32_t), sizeof(other));
    if (other != 0) std::atomic_ref<uint32_t>(words[i]).fetch_or(other, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
