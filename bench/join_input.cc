#include "bench/join_input.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "base/check.h"

namespace nam::bench {
namespace {

// Each chunk has a random stream of its own, so its tuples do not depend on the thread that fills it.
constexpr uint64_t kChunkTuples = 1 << 16;
// Uses of the caller's seed.
enum class JoinUse : uint64_t { kKeysOfR, kKeysOfRanks, kDraws };

/// Draws S's tuples. Shared by threads.
class SFill {
 public:
  explicit SFill(const JoinInputOptions& options)
      : options_(options),
        key_of_rank_(options.r_tuples, SeedOf(options.seed, JoinUse::kKeysOfRanks)),
        draws_(SeedOf(options.seed, JoinUse::kDraws)) {
    if (options.zipf > 0 && options.r_tuples > 0) ranks_.emplace(options.r_tuples, options.zipf);
  }

  void Fill(std::span<JoinTuple> s, uint64_t first, uint64_t end) const {
    RandomStream random(MixBits(draws_ + first));
    for (uint64_t i = first; i < end; ++i) s[i] = {KeyOf(random), static_cast<uint32_t>(i)};
  }

 private:
  uint32_t KeyOf(RandomStream& random) const {
    const uint64_t n = options_.r_tuples;
    // S has as many absent keys as R has keys, and they follow R's, so both fill partitions alike.
    if (n == 0 || !random.Happens(options_.selectivity))
      return static_cast<uint32_t>(n + random.Below(std::max<uint64_t>(n, 1)));
    return static_cast<uint32_t>(ranks_ ? key_of_rank_(ranks_->Draw(random) - 1) : random.Below(n));
  }

  const JoinInputOptions options_;
  const KeyPermutation key_of_rank_;
  const uint64_t draws_;
  std::optional<ZipfRanks> ranks_;
};

/// Calls `fill(first, end)` for all chunks of `tuples` tuples; threads share `next`.
template <typename Body>
void ClaimChunks(uint64_t tuples, std::atomic<uint64_t>& next, const Body& fill) {
  for (;;) {
    const uint64_t first = kChunkTuples * next.fetch_add(1, std::memory_order_relaxed);
    if (first >= tuples) return;
    fill(first, std::min(first + kChunkTuples, tuples));
  }
}

}  // namespace

KeyPermutation::KeyPermutation(uint64_t n, uint64_t seed) : n_(n) {
  NAM_CHECK(n <= kJoinTuplesMax);
  const int width = std::max(1, static_cast<int>(std::bit_width(n - (n > 0))));
  mask_ = (uint64_t{1} << width) - 1;
  shift_ = (width + 1) / 2;
  RandomStream random(seed);
  for (Round& round : rounds_) round = {.factor = random.Next() | 1, .offset = random.Next()};
}

ZipfRanks::ZipfRanks(uint64_t n, double exponent) : n_(static_cast<double>(n)), exponent_(exponent) {
  NAM_CHECK(n > 0 && exponent >= 0);
  low_ = Integral(1.5) - 1;  // leaves rank 1 its density of 1 exactly, so that none of its draws is rejected
  high_ = Integral(n_ + 0.5);
  // Rank k accepts an interval that begins below k. The distance grows with k, so rank 2's is a bound for
  // all.
  surely_inside_ = 2 - InverseIntegral(Integral(2.5) - Density(2));
}

uint64_t ZipfRanks::Draw(RandomStream& random) const {
  for (;;) {
    const double u = high_ + random.Fraction() * (low_ - high_);
    const double x = InverseIntegral(u);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, n_);
    // The integral over [rank - 1/2, rank + 1/2] exceeds the rank's density, as the density is convex. Draws
    // from the excess, at the interval's lower end, are rejected.
    if (rank - x <= surely_inside_ || u >= Integral(rank + 0.5) - Density(rank))
      return static_cast<uint64_t>(rank);
  }
}

double ZipfRanks::Density(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

/// (x^(1 - z) - 1) / (1 - z), without cancellation for z near 1; log x for z = 1.
double ZipfRanks::Integral(double x) const {
  const double log_x = std::log(x), power = (1 - exponent_) * log_x;
  return std::abs(power) < 1e-12 ? log_x : log_x * std::expm1(power) / power;
}

double ZipfRanks::InverseIntegral(double u) const {
  // Rounding may take it below -1, where there is no logarithm.
  const double power = std::max((1 - exponent_) * u, -1.0);
  return std::exp(std::abs(power) < 1e-12 ? u : u * std::log1p(power) / power);
}

JoinInput MakeJoinInput(const JoinInputOptions& options) {
  NAM_CHECK(options.r_tuples <= kJoinTuplesMax && options.s_tuples <= kJoinTuplesMax);
  NAM_CHECK(options.zipf >= 0 && options.zipf <= 1.25);
  NAM_CHECK(options.selectivity > 0 && options.selectivity <= 1 && options.threads > 0);
  JoinInput input{std::vector<JoinTuple>(options.r_tuples), std::vector<JoinTuple>(options.s_tuples)};
  const KeyPermutation keys(options.r_tuples, SeedOf(options.seed, JoinUse::kKeysOfR));
  const SFill s_fill(options);
  std::atomic<uint64_t> next_of_r = 0, next_of_s = 0;
  OnThreads(options.threads, [&](int) {
    ClaimChunks(options.r_tuples, next_of_r, [&](uint64_t first, uint64_t end) {
      for (uint64_t i = first; i < end; ++i) {
        const auto key = static_cast<uint32_t>(keys(i));
        input.r[i] = {key, RPayload(key)};
      }
    });
    ClaimChunks(options.s_tuples, next_of_s,
                [&](uint64_t first, uint64_t end) { s_fill.Fill(input.s, first, end); });
  });
  return input;
}

JoinAnswer ExpectedAnswer(const JoinInput& input) {
  JoinAnswer answer;
  for (const JoinTuple& tuple : input.s) {
    if (tuple.key >= input.r.size()) continue;
    ++answer.matches;
    answer.checksum += uint64_t{RPayload(tuple.key)} + tuple.payload;
  }
  return answer;
}

}  // namespace nam::bench
