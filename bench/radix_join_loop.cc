#include "bench/radix_join_loop.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <optional>
#include <utility>

#include "base/check.h"
#include "bench/on_threads.h"

namespace nam::bench {
namespace {

// Tuples of R in a partition. With their hash table they take 256 KiB, so a second-level cache of 1 MiB holds
// them beside the buffers. For 16 M tuples in each relation, two threads took 187 ms of processor time with 8
// times as many, 161 ms with these and 187 ms with an eighth.
constexpr uint64_t kPartTuples = 1 << 14;
// A single pass of up to this many bits took less time than two of half as many: 0.80 s and 1.03 s of
// processor time for 64 M tuples. Its buffers take 512 KiB.
constexpr int kOnePassBitsMax = 13;
// Buffers of more would not fit a second-level cache.
constexpr int kPassBitsMax = 14;
// Large partitions are split into pieces, this many for each thread if one of them holds all tuples, so that
// all threads finish at about the same time.
constexpr uint64_t kPiecesPerThread = 4;
constexpr uint64_t kProbePiecesPerThread = 16;
// Smaller pieces cost more to set up than they save in waiting.
constexpr uint64_t kLeastPieceTuples = 1 << 15;
// Each piece of S builds the hash table of its partition again. It has at least this many tuples for each one
// of R, so that building stays cheap beside probing.
constexpr uint64_t kProbesPerBuild = 4;

uint32_t PieceTuples(size_t tuples, uint64_t pieces) {
  return static_cast<uint32_t>(std::max(kLeastPieceTuples, tuples / pieces + 1));
}

/// A hash table whose buckets are linked lists. Tuples stay in their partition, so building moves none. Owned
/// by one thread, which reuses its memory for each partition that it joins.
class BucketChains {
 public:
  void Build(std::span<const JoinTuple> r, int radix_bits) {
    r_ = r.data();
    shift_ = radix_bits;
    mask_ = static_cast<uint32_t>(std::bit_ceil(std::max<size_t>(r.size(), 1)) - 1);
    if (heads_.size() < mask_ + size_t{1}) heads_.resize(mask_ + size_t{1});
    if (next_.size() < r.size()) next_.resize(r.size());
    std::fill_n(heads_.begin(), mask_ + size_t{1}, 0);
    uint32_t* const heads = heads_.data();
    uint32_t* const next = next_.data();
    for (uint32_t i = 0; i < r.size(); ++i) next[i] = std::exchange(heads[BucketOf(r[i].key)], i + 1);
  }

  JoinAnswer Probe(std::span<const JoinTuple> s) const {
    JoinAnswer answer;
    const uint32_t* const heads = heads_.data();
    const uint32_t* const next = next_.data();
    for (const JoinTuple tuple : s) {
      for (uint32_t at = heads[BucketOf(tuple.key)]; at != 0; at = next[at - 1]) {
        const JoinTuple match = r_[at - 1];
        if (match.key != tuple.key) continue;
        ++answer.matches;
        answer.checksum += uint64_t{match.payload} + tuple.payload;
      }
    }
    return answer;
  }

 private:
  /// Takes the bits above those that all keys of the partition share. Dense keys do not collide.
  uint32_t BucketOf(uint32_t key) const { return (key >> shift_) & mask_; }

  const JoinTuple* r_ = nullptr;
  int shift_ = 0;
  uint32_t mask_ = 0;
  std::vector<uint32_t> heads_;  // by bucket: position + 1 of a tuple; 0: none
  std::vector<uint32_t> next_;   // by tuple: the same of the next tuple in its bucket
};

}  // namespace

/// One Run. All threads go through its phases together.
class RadixJoinLoop::Attempt {
 public:
  explicit Attempt(RadixJoinLoop& loop) : loop_(loop), phase_(loop.threads_) {
    r_ = {loop.r_.data(), {0, static_cast<uint32_t>(loop.r_.size())}};
    s_ = {loop.s_.data(), {0, static_cast<uint32_t>(loop.s_.size())}};
  }

  void RunThread(int thread) {
    for (size_t pass = 0; pass < loop_.passes_.size(); ++pass) Partition(pass, thread);
    Alone(thread, [&] { ListProbes(); });
    Join();
  }
  JoinAnswer answer() const { return {matches_, checksum_}; }

 private:
  /// A partition of R, and all or a piece of the same partition of S.
  struct Probe {
    size_t partition;
    std::span<const JoinTuple> s;
  };

  /// Runs `step` on one thread while the others wait.
  template <typename Step>
  void Alone(int thread, const Step& step) {
    phase_.arrive_and_wait();
    if (thread == 0) step();
    phase_.arrive_and_wait();
  }
  void Partition(size_t pass, int thread);
  void StartPass(size_t pass);
  void ListProbes();
  void Join();

  RadixJoinLoop& loop_;
  std::barrier<> phase_;
  Partitions r_, s_;  // after the last complete pass
  std::optional<PartitionPass> r_pass_, s_pass_;
  std::vector<Probe> probes_;
  std::atomic<size_t> next_probe_ = 0;
  std::atomic<uint64_t> matches_ = 0, checksum_ = 0;
};

void RadixJoinLoop::Attempt::Partition(size_t pass, int thread) {
  Alone(thread, [&] { StartPass(pass); });
  r_pass_->Count();
  s_pass_->Count();
  Alone(thread, [&] {
    r_pass_->Place();
    s_pass_->Place();
  });
  WriteCombiner& combiner = loop_.combiners_[static_cast<size_t>(thread)];
  r_pass_->Scatter(combiner);
  s_pass_->Scatter(combiner);
  Alone(thread, [&] {
    r_ = r_pass_->Take();
    s_ = s_pass_->Take();
  });
}

void RadixJoinLoop::Attempt::StartPass(size_t pass) {
  const uint64_t pieces = kPiecesPerThread * static_cast<uint64_t>(loop_.threads_);
  const Radix radix = loop_.passes_[pass];
  r_pass_.emplace(r_, loop_.r_parts_[pass].data(), radix, PieceTuples(loop_.r_.size(), pieces));
  s_pass_.emplace(s_, loop_.s_parts_[pass].data(), radix, PieceTuples(loop_.s_.size(), pieces));
}

void RadixJoinLoop::Attempt::ListProbes() {
  NAM_CHECK(r_.size() == s_.size());
  const uint32_t piece_tuples =
      PieceTuples(loop_.s_.size(), kProbePiecesPerThread * static_cast<uint64_t>(loop_.threads_));
  std::vector<Probe> whole;
  for (size_t i = 0; i < r_.size(); ++i) {
    std::span<const JoinTuple> s = s_[i];
    if (r_[i].empty() || s.empty()) continue;
    const size_t size_max = std::max<size_t>(piece_tuples, kProbesPerBuild * r_[i].size());
    if (s.size() <= size_max) {
      whole.push_back({i, s});
      continue;
    }
    for (; !s.empty(); s = s.subspan(std::min(size_max, s.size())))
      probes_.push_back({i, s.first(std::min(size_max, s.size()))});
  }
  // Pieces are larger than most partitions. A thread that claimed one last would keep the others waiting.
  probes_.insert(probes_.end(), whole.begin(), whole.end());
}

void RadixJoinLoop::Attempt::Join() {
  int radix_bits = 0;
  for (const Radix& radix : loop_.passes_) radix_bits += radix.bits;
  BucketChains table;
  JoinAnswer answer;
  for (size_t i = next_probe_++; i < probes_.size(); i = next_probe_++) {
    table.Build(r_[probes_[i].partition], radix_bits);
    answer += table.Probe(probes_[i].s);
  }
  matches_ += answer.matches;
  checksum_ += answer.checksum;
}

std::vector<Radix> RadixJoinLoop::ChoosePasses(uint64_t r_tuples, const RadixJoinOptions& options) {
  int bits = options.radix_bits;
  if (bits == 0) {
    const int bits_max = options.passes == 1 ? kPassBitsMax : 2 * kPassBitsMax;
    bits = static_cast<int>(std::bit_width((r_tuples + kPartTuples - 1) / kPartTuples - (r_tuples > 0)));
    bits = std::clamp(bits, std::max(options.passes, 1), bits_max);
  }
  const int passes = options.passes != 0 ? options.passes : bits > kOnePassBitsMax ? 2 : 1;
  NAM_CHECK((passes == 1 || passes == 2) && bits >= passes && bits <= passes * kPassBitsMax);
  if (passes == 1) return {{.shift = 0, .bits = bits}};
  const int first = (bits + 1) / 2;
  return {{.shift = 0, .bits = first}, {.shift = first, .bits = bits - first}};
}

RadixJoinLoop::RadixJoinLoop(std::span<const JoinTuple> r, std::span<const JoinTuple> s,
                             const RadixJoinOptions& options)
    : r_(r), s_(s), threads_(options.threads), passes_(ChoosePasses(r.size(), options)) {
  NAM_CHECK(threads_ > 0 && r.size() <= kJoinTuplesMax && s.size() <= kJoinTuplesMax);
  int bits_max = 0;
  for (const Radix& radix : passes_) {
    r_parts_.emplace_back(r.size());
    s_parts_.emplace_back(s.size());
    bits_max = std::max(bits_max, radix.bits);
  }
  for (int t = 0; t < threads_; ++t) combiners_.emplace_back(bits_max);
  OnThreads(threads_, [&](int t) {
    for (const auto* arrays : {&r_parts_, &s_parts_}) {
      for (const TupleArray& array : *arrays) {
        const uint64_t first = array.size() * static_cast<uint64_t>(t) / static_cast<uint64_t>(threads_);
        const uint64_t end = array.size() * static_cast<uint64_t>(t + 1) / static_cast<uint64_t>(threads_);
        std::fill(array.data() + first, array.data() + end, JoinTuple{});
      }
    }
  });
}

JoinAnswer RadixJoinLoop::Run() {
  Attempt attempt(*this);
  OnThreads(threads_, [&](int thread) { attempt.RunThread(thread); });
  return attempt.answer();
}

}  // namespace nam::bench
