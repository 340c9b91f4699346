#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/random.h"

/// The workload of Balkesen et al. (Main-Memory Hash Joins on Multi-Core CPUs, ICDE 2013): two relations of
/// narrow tuples, R with dense unique keys and S with foreign keys that may be skewed.
namespace nam::bench {

/// Each use derives its own seed from the caller's.
template <typename Use>
uint64_t SeedOf(uint64_t seed, Use use) {
  return MixBits(seed + kGoldenGamma * (static_cast<uint64_t>(use) + 1));
}

struct alignas(8) JoinTuple {
  uint32_t key;
  uint32_t payload;
};

/// Runs `body(0)` … `body(threads - 1)` concurrently, `body(0)` on the calling thread. Returns when all have
/// returned.
template <typename Body>
void OnThreads(int threads, const Body& body) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(std::cref(body), t);
  body(0);
  for (std::thread& other : others) other.join();
}

/// A pseudo-random permutation of 0 … n - 1 that computes each image separately, so threads need no shared
/// array. Multiplications and shifts permute all numbers of n's bit width; an image of n or above is permuted
/// again.
class KeyPermutation {
 public:
  KeyPermutation(uint64_t n, uint64_t seed);
  /// i < n
  uint64_t operator()(uint64_t i) const {
    do {
      i = Permute(i);
    } while (i >= n_);
    return i;
  }

 private:
  static constexpr int kRounds = 3;
  uint64_t Permute(uint64_t x) const {
    for (const Round& round : rounds_) {
      x = (x * round.factor + round.offset) & mask_;
      x ^= x >> shift_;
    }
    return x;
  }

  struct Round {
    uint64_t factor, offset;
  };
  uint64_t n_;
  uint64_t mask_;
  int shift_;
  Round rounds_[kRounds];
};

/// Draws ranks 1 … n with probabilities proportional to rank^-exponent, by rejection-inversion (Hörmann and
/// Derflinger, 1996). Set-up takes constant time, and few draws need a second try, whatever n is.
class ZipfRanks {
 public:
  /// n > 0, exponent >= 0.
  ZipfRanks(uint64_t n, double exponent);
  uint64_t Draw(RandomStream& random) const;

 private:
  double Density(double x) const;
  double Integral(double x) const;         // of the density, from 1 to x
  double InverseIntegral(double u) const;  // the x of that integral

  double n_;
  double exponent_;
  double low_, high_;         // draws are uniform between these integrals
  double surely_inside_ = 0;  // accepts any x at most this far below its rank
};

struct JoinInputOptions {
  uint64_t r_tuples = 0;
  uint64_t s_tuples = 0;
  double zipf = 0;         // exponent of the keys' popularity in S, at most 1.25; 0: uniform
  double selectivity = 1;  // probability, above 0, that an S tuple's key is in R
  uint64_t seed = 1;
  int threads = 1;
};

/// Leaves equally many keys for tuples of S without a match.
inline constexpr uint64_t kJoinTuplesMax = uint64_t{1} << 31;

struct JoinInput {
  std::vector<JoinTuple> r;  // keys: a permutation of 0 … r_tuples - 1; payload: RPayload(key)
  std::vector<JoinTuple> s;  // keys from r_tuples on are not in R; payload: the tuple's position
};

/// 31 bits, the non-negative range of SQL's integer.
inline uint32_t RPayload(uint32_t key) {
  return static_cast<uint32_t>(MixBits(key + kGoldenGamma) >> 33);
}

/// Generates the relations; the same for the same seed, whatever the number of threads. All threads fill
/// chunks of both.
JoinInput MakeJoinInput(const JoinInputOptions& options);

/// Aggregates a join's matches, which are not stored.
struct JoinAnswer {
  uint64_t matches = 0;
  uint64_t checksum = 0;  // sum of both payloads of all matches, modulo 2^64

  JoinAnswer& operator+=(const JoinAnswer& other) {
    matches += other.matches;
    checksum += other.checksum;
    return *this;
  }
  friend bool operator==(const JoinAnswer&, const JoinAnswer&) = default;
};

/// The answer without a join: R's keys are dense and determine its payload, so reading S suffices.
JoinAnswer ExpectedAnswer(const JoinInput& input);

}  // namespace nam::bench
