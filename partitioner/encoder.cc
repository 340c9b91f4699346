#include "partitioner/encoder.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_format.h"

namespace nam::partitioner {

absl::StatusOr<ColumnCode> PlanColumn(const StagedTable& staged, size_t column) {
  const ColumnSchema& schema = staged.schema().columns[column];
  const StagedTable::ColumnRange range = staged.RangeOf(column);
  ColumnCode code;
  code.nullable = schema.nullable;
  uint64_t codes;  // the largest code
  if (schema.type.kind == TypeKind::kString) {
    staged.strings(column).Sort(code.sorted, code.place_of);
    codes = code.sorted.empty() ? 0 : code.sorted.size() - 1;
    code.base = 0;
  } else {
    codes = static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
    code.base = range.min;
  }
  if (code.nullable) {
    if (codes == std::numeric_limits<uint64_t>::max() || code.base == std::numeric_limits<int64_t>::min()) {
      return absl::InvalidArgumentError(absl::StrFormat("column %s of %s is nullable and spans all 64 bits",
                                                        schema.name, staged.schema().name));
    }
    ++codes;
    --code.base;
  }
  code.width = codes <= 0xFF ? 1 : codes <= 0xFFFF ? 2 : codes <= 0xFFFFFFFF ? 4 : 8;
  return code;
}

uint64_t PartitionEncoder::CodeOf(const ColumnCode& code, const StagedChunk::Column& column,
                                  uint32_t row) const {
  if (!column.nulls.empty() && column.nulls[row]) return 0;
  int64_t value = column.at(row);
  if (!code.place_of.empty()) value = code.place_of[static_cast<size_t>(value)];
  return static_cast<uint64_t>(value) - static_cast<uint64_t>(code.base);
}

void PartitionEncoder::Gather(size_t column) {
  concatenated_.clear();
  const ColumnCode& code = codes_[column];
  for (const Run& run : runs_) {
    const StagedChunk::Column& source = run.chunk->columns[column];
    const size_t at = concatenated_.size();
    concatenated_.resize(at + run.rows);
    if (source.nulls.empty() && !source.narrow.empty() && code.place_of.empty()) {
      const uint64_t shift = static_cast<uint64_t>(source.base) - static_cast<uint64_t>(code.base);
      for (uint32_t i = 0; i < run.rows; ++i) concatenated_[at + i] = source.narrow[run.first + i] + shift;
      continue;
    }
    for (uint32_t i = 0; i < run.rows; ++i) concatenated_[at + i] = CodeOf(code, source, run.first + i);
  }
}

void PartitionEncoder::Start(uint32_t partition) {
  runs_.clear();
  for (const auto& chunk : staged_.chunks()) {
    const uint32_t first = chunk->partition_start[partition];
    const uint32_t rows = chunk->partition_start[partition + 1] - first;
    if (rows > 0) runs_.push_back({chunk.get(), first, rows});
  }
  order_.clear();
  if (sort_column_ >= 0) {
    Gather(static_cast<size_t>(sort_column_));
    const size_t n = concatenated_.size();
    order_.resize(n);
    const uint64_t max = n == 0 ? 0 : *std::max_element(concatenated_.begin(), concatenated_.end());
    if (std::bit_width(max) <= 32) {  // code and position in one word sort without a look-up
      sort_keys_.resize(n);
      for (size_t i = 0; i < n; ++i) sort_keys_[i] = concatenated_[i] << 32 | i;
      std::sort(sort_keys_.begin(), sort_keys_.end());
      for (size_t i = 0; i < n; ++i) order_[i] = static_cast<uint32_t>(sort_keys_[i]);
    } else {
      for (size_t i = 0; i < n; ++i) order_[i] = static_cast<uint32_t>(i);
      std::stable_sort(order_.begin(), order_.end(),
                       [&](uint32_t a, uint32_t b) { return concatenated_[a] < concatenated_[b]; });
    }
  }
  codes_of_.resize(codes_.size());
  for (size_t c = 0; c < codes_.size(); ++c) {
    Gather(c);
    std::vector<uint64_t>& out = codes_of_[c];
    if (order_.empty()) {
      out.swap(concatenated_);
      continue;
    }
    out.resize(concatenated_.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = concatenated_[order_[i]];
  }
}

namespace {

template <typename T>
void Narrow(const uint64_t* from, uint32_t rows, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (uint32_t i = 0; i < rows; ++i) out[i] = static_cast<T>(from[i]);
}

}  // namespace

void PartitionEncoder::Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block) {
  for (uint32_t c = 0; c < codes_.size(); ++c) {
    const uint64_t* from = codes_of_[c].data() + first;
    switch (codes_[c].width) {
      case 1:
        Narrow<uint8_t>(from, rows, block.page(c));
        break;
      case 2:
        Narrow<uint16_t>(from, rows, block.page(c));
        break;
      case 4:
        Narrow<uint32_t>(from, rows, block.page(c));
        break;
      default:
        Narrow<uint64_t>(from, rows, block.page(c));
        break;
    }
  }
}

}  // namespace nam::partitioner
