#include "execution/aggregate/distinct_values.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/status_macros.h"
#include "execution/positions.h"

namespace nam::execution {
namespace {

Column NumbersOf(const int64_t* numbers) {
  return {.kind = Column::Kind::kValues, .base = reinterpret_cast<const std::byte*>(numbers)};
}

Column ValuesOf(const Vector& vector) {
  return {.kind = Column::Kind::kValues,
          .width = WidthOf(vector.physical),
          .physical = vector.physical,
          .base = reinterpret_cast<const std::byte*>(vector.narrow),
          .nulls = vector.physical == Physical::kTruth ? nullptr : vector.nulls};
}

}  // namespace

DistinctValues::DistinctValues(const AggregatePlan::Aggregate& aggregate, size_t number, KeyRows& rows,
                               MemoryBudget& budget)
    : aggregate_(aggregate),
      number_(static_cast<int64_t>(number)),
      pairs_(*aggregate.pairs, rows, budget),
      frame_(aggregate.pairs->slots().NewFrame()),
      chunk_(2, 0),
      read_(2, 0),
      numbers_(std::make_unique_for_overwrite<int64_t[]>(kChunkRows)),
      kept_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      assigned_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {}

absl::Status DistinctValues::Consume(const Program& program, Frame& frame, const Chunk& chunk,
                                     const uint32_t* groups) {
  Selection rows = chunk.selection();
  for (uint32_t j = 0; j < rows.count; ++j) numbers_[rows[j]] = groups[j] + number_;
  chunk_.columns()[0] = NumbersOf(numbers_.get());
  // A plain column stays as it is, so that codes are compared as codes.
  if (aggregate_.slot) chunk_.columns()[1] = chunk.column(*aggregate_.slot);
  if (!aggregate_.slot || aggregate_.argument_nullable) {
    const Vector* const values = program.Evaluate(aggregate_.argument, frame, chunk, rows);
    if (values == nullptr) return frame.error();
    if (!aggregate_.slot) chunk_.columns()[1] = ValuesOf(*values);
    uint32_t kept = 0;
    ForEach(rows, [&](uint32_t at) {
      kept_[kept] = at;
      kept += !values->null(at);
    });
    rows = {kept_.get(), kept};
  }
  chunk_.Reset(chunk.size(), rows);
  return pairs_.Assign(chunk_, assigned_.get());
}

absl::Status DistinctValues::ReadNumbers(const Chunk& pairs, uint32_t* groups) {
  const Selection rows = pairs.selection();
  const Vector* const numbers = aggregate_.pairs->slots().Evaluate(0, frame_, pairs, rows);
  if (numbers == nullptr) return frame_.error();
  for (uint32_t j = 0; j < rows.count; ++j) {
    groups[j] = static_cast<uint32_t>(numbers->narrow[rows[j]] - number_);
  }
  return absl::OkStatus();
}

absl::Status DistinctValues::ConsumePairs(const Chunk& pairs, const uint32_t* group_of, uint64_t groups) {
  const Selection rows = pairs.selection();
  NAM_RETURN_IF_ERROR(ReadNumbers(pairs, assigned_.get()));
  for (uint32_t j = 0; j < rows.count; ++j) {
    if (assigned_[j] >= groups) return absl::DataLossError("values of a group that is not there");
    numbers_[rows[j]] = group_of[assigned_[j]] + number_;
  }
  chunk_.columns()[0] = NumbersOf(numbers_.get());
  chunk_.columns()[1] = pairs.column(1);
  chunk_.Reset(pairs.size(), rows);
  return pairs_.Assign(chunk_, assigned_.get());
}

absl::Status DistinctValues::Merge(const DistinctValues& other, std::span<const uint32_t> pairs,
                                   const uint32_t* group_of, uint64_t groups) {
  other.pairs_.Read(pairs, memory_, read_.columns().data());
  read_.SelectAll(static_cast<uint32_t>(pairs.size()));
  return ConsumePairs(read_, group_of, groups);
}

absl::Status DistinctValues::GroupsOf(std::span<const uint32_t> pairs, uint32_t* groups) {
  pairs_.Read(pairs, memory_, read_.columns().data());
  read_.SelectAll(static_cast<uint32_t>(pairs.size()));
  return ReadNumbers(read_, groups);
}

absl::StatusOr<const Chunk*> DistinctValues::Read(std::span<const uint32_t> pairs, uint64_t base) {
  NAM_RETURN_IF_ERROR(GroupsOf(pairs, assigned_.get()));
  for (size_t j = 0; j < pairs.size(); ++j) {
    numbers_[j] = static_cast<int64_t>(base + assigned_[j]) + number_;
  }
  read_.columns()[0] = NumbersOf(numbers_.get());
  return &read_;
}

absl::Status DistinctValues::AllGroups(uint32_t* groups) {
  std::vector<uint32_t> pairs(kChunkRows);
  for (uint32_t first = 0; first < size(); first += kChunkRows) {
    const uint32_t count = std::min(kChunkRows, size() - first);
    std::iota(pairs.begin(), pairs.begin() + count, first);
    NAM_RETURN_IF_ERROR(GroupsOf({pairs.data(), count}, groups + first));
  }
  return absl::OkStatus();
}

absl::Status DistinctValues::Count(int64_t* counts) {
  std::vector<uint32_t> pairs(kChunkRows);
  for (uint32_t first = 0; first < size(); first += kChunkRows) {
    const uint32_t count = std::min(kChunkRows, size() - first);
    std::iota(pairs.begin(), pairs.begin() + count, first);
    NAM_RETURN_IF_ERROR(GroupsOf({pairs.data(), count}, assigned_.get()));
    for (uint32_t j = 0; j < count; ++j) ++counts[assigned_[j]];
  }
  return absl::OkStatus();
}

absl::Status DistinctValues::Feed(AggregateState& state) {
  std::vector<uint32_t> pairs(kChunkRows);
  for (uint32_t first = 0; first < size(); first += kChunkRows) {
    const uint32_t count = std::min(kChunkRows, size() - first);
    std::iota(pairs.begin(), pairs.begin() + count, first);
    NAM_RETURN_IF_ERROR(GroupsOf({pairs.data(), count}, assigned_.get()));
    NAM_RETURN_IF_ERROR(state.Consume(*aggregate_.of_values, aggregate_.pairs->slots(), frame_, read_,
                                      assigned_.get(), /*single=*/false));
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
