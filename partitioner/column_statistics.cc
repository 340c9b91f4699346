#include "partitioner/column_statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/checksum.h"

namespace nam::partitioner {
namespace {

/// Size of the sample, spread over the table: it measures a share of 1 % with an error of a tenth.
constexpr uint64_t kSampleRows = 30'000;
constexpr size_t kRanges = 64;
/// Texts are cut to this length. They compare like whole ones, unless their first bytes are equal.
constexpr size_t kTextBytes = 16;
constexpr size_t kCommonTextBytes = 64;
/// Tolerated distance of a column's values from a uniform distribution, as a share of its rows.
constexpr double kEvenly = 0.02;

/// Spreads neighbouring numbers over all bits (the finalizer of MurmurHash3).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

/// HyperLogLog of 64-bit numbers.
class DistinctSketch {
 public:
  void Add(int64_t value) {
    const uint64_t hash = Mix(static_cast<uint64_t>(value) + 0x9E3779B97F4A7C15ull);
    uint8_t& most = most_[hash >> (64 - kBits)];
    most = std::max(most, static_cast<uint8_t>(std::countl_zero(hash << kBits | 1) + 1));
  }
  double Estimate() const {
    constexpr double kRegisters = 1 << kBits;
    double inverse = 0, empty = 0;
    for (const uint8_t most : most_) {
      inverse += std::ldexp(1.0, -most);
      empty += most == 0 ? 1 : 0;
    }
    const double estimate = 0.7213 / (1 + 1.079 / kRegisters) * kRegisters * kRegisters / inverse;
    // With few values most registers are empty, and their count is more accurate.
    return estimate <= 2.5 * kRegisters && empty > 0 ? kRegisters * std::log(kRegisters / empty) : estimate;
  }

 private:
  static constexpr int kBits = 14;
  std::array<uint8_t, 1 << kBits> most_{};
};

/// A number for a plain value; equal values have equal numbers.
int64_t NumberOf(const StagedChunk::Column& values, const ColumnCode& code, uint32_t row) {
  if (code.text)
    return static_cast<int64_t>(storage::Checksum(std::as_bytes(std::span(code.TextOf(values, row)))));
  const __int128 value = values.wide_at(row);
  return static_cast<int64_t>(storage::Checksum(std::as_bytes(std::span(&value, 1))));
}

uint64_t DistinctOf(const StagedTable& staged, size_t column, const ColumnCode& code) {
  const StagedTable::ColumnRange range = staged.RangeOf(column);
  if (range.values == 0) return 0;
  uint64_t most = range.values;
  if (!code.plain) {
    most = staged.Distinct(column);
    if (StagedTable::Counts(static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min))) return most;
  }
  DistinctSketch sketch;
  for (const auto& chunk : staged.chunks()) {
    const StagedChunk::Column& values = chunk->columns[column];
    for (uint32_t row = 0; row < chunk->partition_start.back(); ++row) {
      if (!values.IsNull(row)) sketch.Add(code.plain ? NumberOf(values, code, row) : values.at(row));
    }
  }
  return std::clamp<uint64_t>(static_cast<uint64_t>(std::llround(sketch.Estimate())), 1, most);
}

/// The sorted values of some rows. Texts are positions in `texts`, which is ordered.
struct Sample {
  std::vector<int64_t> values;
  std::vector<std::string_view> texts;
};

/// Calls `take` with a chunk's column and a row, for each non-NULL row of the sample.
template <typename Take>
void ForSample(const StagedTable& staged, size_t column, Take take) {
  const uint64_t stride = std::max<uint64_t>(staged.rows() / kSampleRows, 1);
  uint64_t first = 0, step = 0;  // rows of earlier chunks; rows of the sample
  uint64_t next = Mix(1) % stride;
  for (const auto& chunk : staged.chunks()) {
    const StagedChunk::Column& values = chunk->columns[column];
    const uint64_t end = first + chunk->partition_start.back();
    while (next < end) {
      const auto row = static_cast<uint32_t>(next - first);
      // Not exactly every stride-th row, because tables have periods of their own.
      ++step;
      next = step * stride + Mix(step + 1) % stride;
      if (!values.IsNull(row)) take(values, row);
    }
    first = end;
  }
}

Sample SampleOf(const StagedTable& staged, size_t column, const ColumnCode& code) {
  Sample sample;
  if (code.plain_text()) {
    std::vector<std::string_view> all;
    ForSample(staged, column, [&](const StagedChunk::Column& values, uint32_t row) {
      all.push_back(code.TextOf(values, row));
    });
    std::sort(all.begin(), all.end());
    for (const std::string_view text : all) {
      if (sample.texts.empty() || sample.texts.back() != text) sample.texts.push_back(text);
      sample.values.push_back(static_cast<int64_t>(sample.texts.size()) - 1);
    }
    return sample;
  }
  ForSample(staged, column, [&](const StagedChunk::Column& values, uint32_t row) {
    const int64_t value = values.at(row);
    sample.values.push_back(code.place_of.empty() ? value : code.place_of[static_cast<size_t>(value)]);
  });
  std::sort(sample.values.begin(), sample.values.end());
  sample.texts = code.sorted;
  return sample;
}

struct Run {
  int64_t value = 0;
  uint64_t rows = 0;  // in the sample
};

/// Values with clearly more rows than the average value: beyond the variance of a sample.
std::vector<Run> CommonOf(const std::vector<int64_t>& sample, uint64_t distinct) {
  const double average =
      static_cast<double>(sample.size()) / static_cast<double>(std::max<uint64_t>(distinct, 1));
  const double least = std::max(4.0, 1.25 * average + 3 * std::sqrt(average));
  std::vector<Run> common;
  for (size_t at = 0; at < sample.size();) {
    size_t end = at;
    while (end < sample.size() && sample[end] == sample[at]) ++end;
    if (static_cast<double>(end - at) > least) common.push_back({sample[at], end - at});
    at = end;
  }
  std::stable_sort(common.begin(), common.end(), [](const Run& a, const Run& b) { return a.rows > b.rows; });
  if (common.size() > kCommonMost) common.resize(kCommonMost);
  return common;
}

/// The greatest distance of the ranges from a uniform distribution between the first and the last bound.
double Unevenness(const std::vector<int64_t>& bounds) {
  const auto low = static_cast<double>(bounds.front()), high = static_cast<double>(bounds.back());
  if (high <= low) return 0;
  double most = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(bounds.size() - 1);
    most = std::max(most, std::abs((static_cast<double>(bounds[i]) - low) / (high - low) - share));
  }
  return most;
}

std::vector<int64_t> BoundsOf(std::vector<int64_t> sample, const std::vector<Run>& common) {
  std::vector<int64_t> values;
  for (const Run& run : common) values.push_back(run.value);
  std::sort(values.begin(), values.end());
  std::erase_if(sample, [&](int64_t v) { return std::binary_search(values.begin(), values.end(), v); });
  std::vector<int64_t> bounds;
  if (sample.size() < 2 * kRanges) return bounds;
  for (size_t i = 0; i <= kRanges; ++i) bounds.push_back(sample[i * (sample.size() - 1) / kRanges]);
  return bounds;
}

}  // namespace

void DescribeValues(const StagedTable& staged, size_t column, const ColumnCode& code, proto::Column& out) {
  const StagedTable::ColumnRange range = staged.RangeOf(column);
  const bool text = code.text;
  out.set_distinct(text && !code.plain ? code.sorted.size() : DistinctOf(staged, column, code));
  // Planning does not handle 128-bit values.
  if (range.values == 0 || (code.plain && !text)) return;
  const Sample sample = SampleOf(staged, column, code);
  const std::vector<Run> common = CommonOf(sample.values, out.distinct());
  const auto entry = [&](int64_t place, size_t bytes) {
    return std::string(sample.texts[static_cast<size_t>(place)].substr(0, bytes));
  };
  for (const Run& run : common) {
    if (text && sample.texts[static_cast<size_t>(run.value)].size() > kCommonTextBytes) continue;
    proto::CommonValue& value = *out.add_common();
    if (text) {
      value.set_text(entry(run.value, kCommonTextBytes));
    } else {
      value.set_value(run.value);
    }
    value.set_rows(run.rows * range.values / sample.values.size());
  }
  if (out.distinct() <= 2 * kRanges) return;  // as uniform as can be measured, except for common values
  const std::vector<int64_t> bounds = BoundsOf(sample.values, common);
  if (bounds.empty() || (!text && Unevenness(bounds) < kEvenly)) return;
  for (const int64_t bound : bounds) {
    if (text) {
      out.add_text_histogram(entry(bound, kTextBytes));
    } else {
      out.add_histogram(bound);
    }
  }
}

}  // namespace nam::partitioner
