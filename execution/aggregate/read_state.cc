// Reads the states of aggregates as columns of results.
#include <algorithm>
#include <cmath>

#include "base/status_macros.h"
#include "execution/aggregate/aggregate_state.h"
#include "types/decimal.h"
#include "types/numeric.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

Column ArrayOf(const void* values, Physical physical) {
  return {.kind = Column::Kind::kValues,
          .width = WidthOf(physical),
          .physical = physical,
          .base = static_cast<const std::byte*>(values)};
}

}  // namespace

absl::StatusOr<__int128> AverageOf(__int128 sum, int64_t count, int scale) {
  NAM_ASSIGN_OR_RETURN(const Numeric average, DecimalAverage(sum, scale, count));
  return PackNumeric(average);
}

void AggregateState::ReadNulls(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  if (memory.nulls == nullptr) memory.nulls = std::make_unique_for_overwrite<uint8_t[]>(kChunkRows);
  if (counts()) {
    const int64_t* const counts = counts_.data() + first;
    for (uint32_t j = 0; j < count; ++j) memory.nulls[j] = counts[j] == 0;
  } else {
    const uint8_t* const seen = seen_.data() + first;
    for (uint32_t j = 0; j < count; ++j) memory.nulls[j] = seen[j] == 0;
  }
  column.nulls = memory.nulls.get();
}

void AggregateState::ReadBest(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  if (memory.values == nullptr && (texts_.capacity() > 0 || aggregate_.physical == Physical::kTruth)) {
    memory.values = std::make_unique_for_overwrite<std::byte[]>(kChunkRows * WidthOf(aggregate_.physical));
  }
  switch (aggregate_.physical) {
    case Physical::kInt64:
      column = ArrayOf(narrow_.data() + first, Physical::kInt64);
      break;
    case Physical::kTruth: {
      for (uint32_t j = 0; j < count; ++j) {
        const int64_t truth = seen_[first + j] == 0 ? int64_t{kUnknown} : narrow_[first + j];
        memory.values[j] = static_cast<std::byte>(truth);
      }
      column = ArrayOf(memory.values.get(), Physical::kTruth);
      return;  // without an array of NULLs
    }
    case Physical::kText: {
      auto* const texts = reinterpret_cast<std::string_view*>(memory.values.get());
      for (uint32_t j = 0; j < count; ++j) texts[j] = {texts_[first + j].text, texts_[first + j].bytes};
      column = ArrayOf(texts, Physical::kText);
      break;
    }
    default:
      column = ArrayOf(wide_.data() + first, Physical::kInt128);
  }
  ReadNulls(first, count, memory, column);
}

void AggregateState::ReadPartial(uint32_t first, uint32_t count, Memory& memory, Column* columns) const {
  if (idle()) return;
  if (moments()) return ReadMoments(first, count, memory, columns);
  if (best()) return ReadBest(first, count, memory, columns[0]);
  if (bits()) {
    columns[0] = ArrayOf(narrow_.data() + first, Physical::kInt64);
    return ReadNulls(first, count, memory, columns[0]);
  }
  if (sums()) {
    if (memory.values == nullptr) {
      memory.values = std::make_unique_for_overwrite<std::byte[]>(2 * kChunkRows * sizeof(int64_t));
    }
    auto* const upper = reinterpret_cast<int64_t*>(memory.values.get());
    int64_t* const lower = upper + kChunkRows;
    for (uint32_t j = 0; j < count; ++j) {
      const __int128 sum = SumOf(first + j);
      upper[j] = static_cast<int64_t>(sum >> 64);
      lower[j] = static_cast<int64_t>(sum);
    }
    *columns = ArrayOf(upper, Physical::kInt64);
    ReadNulls(first, count, memory, *columns++);
    *columns++ = ArrayOf(lower, Physical::kInt64);
  }
  if (counts()) columns[0] = ArrayOf(counts_.data() + first, Physical::kInt64);
}

void AggregateState::ReadMoments(uint32_t first, uint32_t count, Memory& memory, Column* columns) const {
  const size_t words = aggregate_.partial_slots;
  if (memory.values == nullptr) {
    memory.values = std::make_unique_for_overwrite<std::byte[]>(words * kChunkRows * sizeof(int64_t));
  }
  auto* const values = reinterpret_cast<int64_t*>(memory.values.get());
  int64_t of_group[Moments::kWordsOfTwo];
  for (uint32_t j = 0; j < count; ++j) {
    const std::span<int64_t> state(of_group, words);
    real() ? real_moments_[first + j].Write(state) : moments_[first + j].Write(state);
    for (size_t w = 0; w < words; ++w) values[w * kChunkRows + j] = of_group[w];
  }
  for (size_t w = 0; w < words; ++w) columns[w] = ArrayOf(values + w * kChunkRows, Physical::kInt64);
}

absl::Status AggregateState::ReadNumerics(uint32_t first, uint32_t count, Memory& memory,
                                          Column& column) const {
  if (memory.values == nullptr)
    memory.values = std::make_unique_for_overwrite<std::byte[]>(kChunkRows * sizeof(__int128));
  if (memory.nulls == nullptr) memory.nulls = std::make_unique_for_overwrite<uint8_t[]>(kChunkRows);
  auto* const values = reinterpret_cast<__int128*>(memory.values.get());
  for (uint32_t j = 0; j < count; ++j) {
    NAM_ASSIGN_OR_RETURN(const std::optional<__int128> value,
                         moments_[first + j].Result(aggregate_.function, aggregate_.argument_type.scale));
    memory.nulls[j] = !value.has_value();
    values[j] = value.value_or(0);
  }
  column = ArrayOf(values, Physical::kInt128);
  column.nulls = memory.nulls.get();
  return absl::OkStatus();
}

void AggregateState::ReadRealResults(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  if (memory.values == nullptr)
    memory.values = std::make_unique_for_overwrite<std::byte[]>(kChunkRows * sizeof(int64_t));
  if (memory.nulls == nullptr) memory.nulls = std::make_unique_for_overwrite<uint8_t[]>(kChunkRows);
  auto* const values = reinterpret_cast<int64_t*>(memory.values.get());
  for (uint32_t j = 0; j < count; ++j) {
    const std::optional<double> value =
        real() ? real_moments_[first + j].Result(aggregate_.function)
               : moments_[first + j].ResultOfPairs(aggregate_.function, aggregate_.argument_type.scale,
                                                   aggregate_.second_type.scale);
    memory.nulls[j] = !value.has_value();
    values[j] = value.has_value() ? OrderedBits(*value) : 0;
  }
  column = ArrayOf(values, Physical::kInt64);
  column.nulls = memory.nulls.get();
}

absl::Status AggregateState::ReadFinal(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  if (moments() && !aggregate_.type.real()) return ReadNumerics(first, count, memory, column);
  if (moments()) {
    ReadRealResults(first, count, memory, column);
    return absl::OkStatus();
  }
  if (sums()) return ReadSums(first, count, memory, column);
  ReadPartial(first, count, memory, &column);
  return absl::OkStatus();
}

absl::Status AggregateState::ReadReals(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  column = ArrayOf(memory.values.get(), Physical::kInt64);
  ReadNulls(first, count, memory, column);
  auto* const values = reinterpret_cast<int64_t*>(memory.values.get());
  for (uint32_t j = 0; j < count; ++j) {
    values[j] = 0;
    if (memory.nulls[j] != 0) continue;
    double value = RealSum::Unpacked(real_sums_[first + j]).total();
    if (aggregate_.function == AggregateFunction::kAverage) value /= static_cast<double>(counts_[first + j]);
    if (aggregate_.type.kind == TypeKind::kReal) {
      const bool finite = std::isfinite(value);
      value = static_cast<float>(value);
      if (finite && !std::isfinite(value)) return RealOutOfRange();
    }
    values[j] = OrderedBits(value);
  }
  return absl::OkStatus();
}

absl::Status AggregateState::ReadSums(uint32_t first, uint32_t count, Memory& memory, Column& column) const {
  if (memory.values == nullptr) {
    memory.values = std::make_unique_for_overwrite<std::byte[]>(kChunkRows * sizeof(__int128));
  }
  if (real()) return ReadReals(first, count, memory, column);
  column = ArrayOf(memory.values.get(), Physical::kInt128);
  ReadNulls(first, count, memory, column);
  auto* const values = reinterpret_cast<__int128*>(memory.values.get());
  const bool averages = aggregate_.function == AggregateFunction::kAverage;
  if (const int64_t* const narrow = sums_.narrow(); narrow != nullptr && !averages) {
    for (uint32_t j = 0; j < count; ++j) values[j] = narrow[first + j];  // 0 where none has come
    return absl::OkStatus();
  }
  for (uint32_t j = 0; j < count; ++j) {
    values[j] = 0;
    if (memory.nulls[j] != 0) continue;
    values[j] = sums_.of(first + j);
    if (averages) {
      NAM_ASSIGN_OR_RETURN(
          values[j], AverageOf(sums_.of(first + j), counts_[first + j], aggregate_.argument_type.scale));
    } else if (!FitsDecimal(values[j])) {
      return SumOutOfRange();
    }
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
