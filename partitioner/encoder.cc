#include "partitioner/encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"

namespace nam::partitioner {
namespace {

/// Codes from 0 to the greatest one, which `greatest` is without NULL.
absl::Status ChooseWidth(const StagedTable& staged, size_t column, uint64_t greatest, ColumnCode& code) {
  if (code.nullable) {
    if (greatest == std::numeric_limits<uint64_t>::max() ||
        code.base == std::numeric_limits<int64_t>::min()) {
      return absl::InvalidArgumentError(absl::StrFormat("column %s of %s is nullable and spans all 64 bits",
                                                        staged.schema().columns[column].name,
                                                        staged.schema().name));
    }
    ++greatest;
    --code.base;
  }
  code.width = greatest <= 0xFF ? 1 : greatest <= 0xFFFF ? 2 : greatest <= 0xFFFFFFFF ? 4 : 8;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ColumnCode> PlanColumn(const StagedTable& staged, size_t column) {
  const ColumnSchema& schema = staged.schema().columns[column];
  const StagedTable::ColumnRange range = staged.RangeOf(column);
  const Form form = FormOf(schema.type);
  ColumnCode code;
  code.nullable = schema.nullable;
  code.text = form == Form::kText;
  code.plain = (form == Form::kWide && staged.wide(column)) || (code.text && !staged.strings(column).few());
  if (code.plain) {
    code.width = code.text ? 4 : storage::kPlainNumberBytes;
    if (code.text) code.numbered = staged.strings(column).ByNumber();
    return code;
  }
  uint64_t greatest = 0;
  if (code.text) {
    staged.strings(column).Sort(code.sorted, code.place_of);
    greatest = code.sorted.empty() ? 0 : code.sorted.size() - 1;
  } else {
    greatest = static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
    code.base = range.min;
  }
  const absl::Status chosen = ChooseWidth(staged, column, greatest, code);
  if (!chosen.ok()) return chosen;
  return code;
}

uint64_t PartitionEncoder::CodeOf(const ColumnCode& code, const StagedChunk::Column& column,
                                  uint32_t row) const {
  if (column.IsNull(row)) return 0;
  int64_t value = column.at(row);
  if (!code.place_of.empty()) value = code.place_of[static_cast<size_t>(value)];
  return static_cast<uint64_t>(value) - static_cast<uint64_t>(code.base);
}

template <typename T, typename Of>
void PartitionEncoder::Gather(size_t column, std::vector<T>& out, Of of) {
  std::vector<T> concatenated;
  for (const Run& run : runs_) {
    const StagedChunk::Column& source = run.chunk->columns[column];
    const size_t at = concatenated.size();
    concatenated.resize(at + run.rows);
    of(source, run, concatenated.data() + at);
  }
  if (order_.empty()) {
    out = std::move(concatenated);
    return;
  }
  out.resize(concatenated.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = concatenated[order_[i]];
}

void PartitionEncoder::GatherCodes(size_t column, std::vector<uint64_t>& out) {
  const ColumnCode& code = codes_[column];
  Gather(column, out, [&](const StagedChunk::Column& source, const Run& run, uint64_t* to) {
    if (source.nulls.empty() && !source.narrow.empty() && code.place_of.empty()) {
      const uint64_t shift = static_cast<uint64_t>(source.base) - static_cast<uint64_t>(code.base);
      for (uint32_t i = 0; i < run.rows; ++i) to[i] = source.narrow[run.first + i] + shift;
      return;
    }
    for (uint32_t i = 0; i < run.rows; ++i) to[i] = CodeOf(code, source, run.first + i);
  });
}

void PartitionEncoder::GatherWide(size_t column, std::vector<__int128>& out) {
  Gather(column, out, [&](const StagedChunk::Column& source, const Run& run, __int128* to) {
    for (uint32_t i = 0; i < run.rows; ++i) {
      const uint32_t row = run.first + i;
      to[i] = source.IsNull(row) ? storage::kPlainNull : source.wide_at(row);
    }
  });
}

void PartitionEncoder::GatherTexts(size_t column, std::vector<std::string_view>& out) {
  const ColumnCode& code = codes_[column];
  Gather(column, out, [&](const StagedChunk::Column& source, const Run& run, std::string_view* to) {
    for (uint32_t i = 0; i < run.rows; ++i) {
      const uint32_t row = run.first + i;
      to[i] = source.IsNull(row) ? std::string_view() : code.TextOf(source, row);
    }
  });
}

std::vector<uint32_t> PartitionEncoder::TextBytes(size_t column) {
  const ColumnCode& code = codes_[column];
  std::vector<uint32_t> bytes;
  Gather(column, bytes, [&](const StagedChunk::Column& source, const Run& run, uint32_t* to) {
    for (uint32_t i = 0; i < run.rows; ++i) {
      const uint32_t row = run.first + i;
      to[i] = source.IsNull(row) ? 0 : static_cast<uint32_t>(code.TextOf(source, row).size());
    }
  });
  return bytes;
}

void PartitionEncoder::OrderByCodes() {
  std::vector<uint64_t> codes;
  GatherCodes(static_cast<size_t>(sort_column_), codes);
  const size_t n = codes.size();
  order_.resize(n);
  const uint64_t max = n == 0 ? 0 : *std::max_element(codes.begin(), codes.end());
  if (std::bit_width(max) <= 32) {  // code and position in one word sort without a look-up
    sort_keys_.resize(n);
    for (size_t i = 0; i < n; ++i) sort_keys_[i] = codes[i] << 32 | i;
    std::sort(sort_keys_.begin(), sort_keys_.end());
    for (size_t i = 0; i < n; ++i) order_[i] = static_cast<uint32_t>(sort_keys_[i]);
    return;
  }
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return codes[a] < codes[b]; });
}

void PartitionEncoder::Order(uint32_t partition) {
  runs_.clear();
  for (const auto& chunk : staged_.chunks()) {
    const uint32_t first = chunk->partition_start[partition];
    const uint32_t rows = chunk->partition_start[partition + 1] - first;
    if (rows > 0) runs_.push_back({chunk.get(), first, rows});
  }
  order_.clear();
  if (sort_column_ < 0) return;
  const ColumnCode& code = codes_[static_cast<size_t>(sort_column_)];
  if (!code.plain) return OrderByCodes();
  // Sorted after all is gathered: the values come in the order of runs_, as order_ is still empty.
  const auto sort_by = [this](const auto& values) {
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
    order_ = std::move(order);
  };
  if (code.text) {
    std::vector<std::string_view> texts;
    GatherTexts(static_cast<size_t>(sort_column_), texts);
    sort_by(texts);
  } else {
    std::vector<__int128> wide;
    GatherWide(static_cast<size_t>(sort_column_), wide);
    sort_by(wide);
  }
}

void PartitionEncoder::Start(uint32_t partition) {
  Order(partition);
  columns_.resize(codes_.size());
  for (size_t c = 0; c < codes_.size(); ++c) {
    if (codes_[c].plain_text()) {
      GatherTexts(c, columns_[c].texts);
    } else if (codes_[c].plain) {
      GatherWide(c, columns_[c].wide);
    } else {
      GatherCodes(c, columns_[c].codes);
    }
  }
}

namespace {

template <typename T>
void Narrow(const uint64_t* from, uint32_t rows, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (uint32_t i = 0; i < rows; ++i) out[i] = static_cast<T>(from[i]);
}

void WriteTexts(const std::string_view* from, uint32_t rows, uint32_t block_rows, std::byte* page) {
  auto* const ends = reinterpret_cast<uint32_t*>(page);
  std::byte* const texts = page + size_t{block_rows} * 4;
  uint32_t end = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    if (!from[i].empty()) std::memcpy(texts + end, from[i].data(), from[i].size());
    end += static_cast<uint32_t>(from[i].size());
    ends[i] = end | (from[i].data() == nullptr ? storage::TextPage::kNull : 0);
  }
}

}  // namespace

void PartitionEncoder::Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block) {
  for (uint32_t c = 0; c < codes_.size(); ++c) {
    if (codes_[c].plain_text()) {
      WriteTexts(columns_[c].texts.data() + first, rows, block.layout().block_rows(), block.page(c));
      continue;
    }
    if (codes_[c].plain) {
      std::memcpy(block.page(c), columns_[c].wide.data() + first, size_t{rows} * sizeof(__int128));
      continue;
    }
    const uint64_t* from = columns_[c].codes.data() + first;
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
