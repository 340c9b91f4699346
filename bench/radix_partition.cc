#include "bench/radix_partition.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/check.h"

namespace nam::bench {
namespace {

/// Writes a cache line to memory without reading it into the cache.
void StreamLine(const void* from, void* to) {
#if defined(__x86_64__)
  const auto* const source = static_cast<const __m128i*>(from);
  auto* const target = static_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_load_si128(source + i));
#else
  std::memcpy(to, from, 64);
#endif
}

/// Orders streamed lines before the store that lets other threads read them.
void FenceStreams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace

WriteCombiner::WriteCombiner(int bits_max)
    : lines_(size_t{1} << bits_max), next_(size_t{1} << bits_max), first_(size_t{1} << bits_max) {}

void WriteCombiner::Scatter(std::span<const JoinTuple> from, Radix radix, std::span<const uint32_t> starts,
                            JoinTuple* out) {
  NAM_CHECK(radix.fan_out() <= lines_.size() && starts.size() == radix.fan_out());
  NAM_CHECK(reinterpret_cast<uintptr_t>(out) % sizeof(Line) == 0);
  std::copy(starts.begin(), starts.end(), next_.begin());
  std::copy(starts.begin(), starts.end(), first_.begin());
  Line* const lines = lines_.data();
  uint32_t* const next = next_.data();
  const uint32_t* const first = first_.data();
  for (const JoinTuple tuple : from) {
    const uint32_t partition = radix.Of(tuple.key);
    const uint32_t place = next[partition]++;
    lines[partition].tuples[place % kLineTuples] = tuple;
    if (place % kLineTuples != kLineTuples - 1) continue;
    const uint32_t line_start = place - (kLineTuples - 1);
    if (line_start >= first[partition]) {
      StreamLine(&lines[partition], out + line_start);
    } else {
      CopyPart(partition, line_start, place + 1, out);
    }
  }
  for (size_t partition = 0; partition < radix.fan_out(); ++partition) {
    const uint32_t end = next[partition];
    CopyPart(partition, end - end % kLineTuples, end, out);
  }
  FenceStreams();
}

/// Copies a line that the partition shares with a neighbour, or with another thread's piece of the same
/// partition.
void WriteCombiner::CopyPart(size_t partition, uint32_t line_start, uint32_t end, JoinTuple* out) const {
  for (uint32_t place = std::max(line_start, first_[partition]); place < end; ++place)
    out[place] = lines_[partition].tuples[place % kLineTuples];
}

PartitionPass::PartitionPass(const Partitions& in, JoinTuple* out, Radix radix, uint32_t piece_tuples)
    : in_(in), out_(out), radix_(radix) {
  NAM_CHECK(piece_tuples > 0 && radix.shift + radix.bits < 32);
  result_.tuples = out;
  result_.bounds.resize(in.size() * radix.fan_out() + 1);
  result_.bounds.back() = in.bounds.back();
  for (size_t partition = 0; partition < in.size(); ++partition) {
    const std::span<const JoinTuple> tuples = in[partition];
    if (tuples.size() <= piece_tuples && in.size() > 1) {
      small_.push_back(partition);
      continue;
    }
    for (size_t first = 0; first < tuples.size(); first += piece_tuples) {
      const size_t size = std::min<size_t>(piece_tuples, tuples.size() - first);
      pieces_.push_back({tuples.subspan(first, size), partition});
    }
  }
  counts_.resize(pieces_.size() * radix.fan_out());
}

void PartitionPass::Count() {
  for (size_t i = next_counted_++; i < pieces_.size(); i = next_counted_++)
    CountTuples(pieces_[i].tuples, CountsOf(i));
}

void PartitionPass::CountTuples(std::span<const JoinTuple> tuples, std::span<uint32_t> counts) const {
  uint32_t* const count = counts.data();
  const Radix radix = radix_;
  for (const JoinTuple& tuple : tuples) ++count[radix.Of(tuple.key)];
}

void PartitionPass::Place() {
  for (size_t first = 0, end = 0; first < pieces_.size(); first = end) {
    const size_t partition = pieces_[first].partition;
    while (end < pieces_.size() && pieces_[end].partition == partition) ++end;
    uint32_t at = in_.bounds[partition];
    for (size_t radix = 0; radix < radix_.fan_out(); ++radix) {
      result_.bounds[partition * radix_.fan_out() + radix] = at;
      for (size_t piece = first; piece < end; ++piece) {
        uint32_t& count = CountsOf(piece)[radix];
        at += std::exchange(count, at);
      }
    }
    NAM_CHECK(at == in_.bounds[partition + 1]);
  }
}

void PartitionPass::Scatter(WriteCombiner& combiner) {
  for (size_t i = next_scattered_++; i < pieces_.size(); i = next_scattered_++)
    combiner.Scatter(pieces_[i].tuples, radix_, CountsOf(i), out_);
  for (size_t i = next_small_++; i < small_.size(); i = next_small_++) SplitSmall(small_[i], combiner);
}

void PartitionPass::SplitSmall(size_t partition, WriteCombiner& combiner) {
  const std::span<uint32_t> starts(result_.bounds.data() + partition * radix_.fan_out(), radix_.fan_out());
  CountTuples(in_[partition], starts);
  uint32_t at = in_.bounds[partition];
  for (uint32_t& start : starts) at += std::exchange(start, at);
  NAM_CHECK(at == in_.bounds[partition + 1]);
  combiner.Scatter(in_[partition], radix_, starts, out_);
}

Partitions PartitionPass::Take() {
  return std::move(result_);
}

}  // namespace nam::bench
