#include "partitioner/encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

namespace nam::partitioner {
namespace {

constexpr uint64_t kRowsAtOnce = 1 << 16;

/// The least value's code is base + 1 in a nullable column, and 64 bits have no base below the least number.
bool LeavesNoCodeForNull(const ColumnCode& code, const StagedTable::ColumnRange& range) {
  return code.nullable && !code.text && range.values > 0 && range.min == std::numeric_limits<int64_t>::min();
}

}  // namespace

ColumnCode PlanColumn(const StagedTable& staged, size_t column) {
  const ColumnSchema& schema = staged.schema().columns[column];
  const StagedTable::ColumnRange range = staged.RangeOf(column);
  const Form form = FormOf(schema.type);
  ColumnCode code;
  code.nullable = schema.nullable;
  code.text = form == Form::kText;
  code.plain = (form == Form::kWide && staged.wide(column)) || (code.text && !staged.strings(column).few()) ||
               LeavesNoCodeForNull(code, range);
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
  if (code.nullable) {  // the code of NULL is the one below the least value's
    ++greatest;
    --code.base;
  }
  code.width = greatest <= 0xFF ? 1 : greatest <= 0xFFFF ? 2 : greatest <= 0xFFFFFFFF ? 4 : 8;
  return code;
}

uint64_t PartitionEncoder::CodeOf(const ColumnCode& code, const StagedChunk::Column& column,
                                  uint32_t row) const {
  if (column.IsNull(row)) return 0;
  int64_t value = column.at(row);
  if (!code.place_of.empty()) value = code.place_of[static_cast<size_t>(value)];
  return static_cast<uint64_t>(value) - static_cast<uint64_t>(code.base);
}

template <typename Take>
void PartitionEncoder::ForRows(size_t column, uint64_t first, uint64_t rows, Take take) const {
  if (!places_.empty()) {
    for (uint64_t i = 0; i < rows; ++i) {
      const Place& place = places_[first + i];
      take(runs_[place.run].chunk->columns[column], place.row, i);
    }
    return;
  }
  auto run = std::upper_bound(runs_.begin(), runs_.end(), first,
                              [](uint64_t row, const Run& r) { return row < r.before; });
  for (uint64_t done = 0; done < rows; ++run) {
    const Run& of = run[-1];
    const auto from = static_cast<uint32_t>(first + done - of.before);
    const uint64_t count = std::min<uint64_t>(rows - done, of.rows - from);
    const StagedChunk::Column& source = of.chunk->columns[column];
    for (uint32_t i = 0; i < count; ++i) take(source, of.first + from + i, done + i);
    done += count;
  }
}

void PartitionEncoder::Codes(size_t column, uint64_t first, uint32_t rows, uint64_t* out) const {
  const ColumnCode& code = codes_[column];
  ForRows(column, first, rows, [&](const StagedChunk::Column& source, uint32_t row, uint64_t i) {
    out[i] = CodeOf(code, source, row);
  });
}

std::vector<uint32_t> PartitionEncoder::TextBytes(size_t column) const {
  const ColumnCode& code = codes_[column];
  std::vector<uint32_t> bytes(rows_);
  ForRows(column, 0, rows_, [&](const StagedChunk::Column& source, uint32_t row, uint64_t i) {
    bytes[i] = source.IsNull(row) ? 0 : static_cast<uint32_t>(code.TextOf(source, row).size());
  });
  return bytes;
}

/// `less` compares two rows, each given as a column and a row in it.
template <typename Less>
void PartitionEncoder::OrderBy(Less less) {
  const auto column = static_cast<size_t>(sort_column_);
  std::stable_sort(places_.begin(), places_.end(), [&](const Place& a, const Place& b) {
    return less(runs_[a.run].chunk->columns[column], a.row, runs_[b.run].chunk->columns[column], b.row);
  });
}

void PartitionEncoder::Order() {
  const auto column = static_cast<size_t>(sort_column_);
  const ColumnCode& code = codes_[column];
  std::vector<uint64_t> keys;
  if (!code.plain) {
    keys.resize(rows_);
    for (uint64_t done = 0; done < rows_; done += kRowsAtOnce) {
      const auto rows = static_cast<uint32_t>(std::min<uint64_t>(kRowsAtOnce, rows_ - done));
      Codes(column, done, rows, keys.data() + done);
    }
  }
  places_.reserve(rows_);
  for (uint32_t r = 0; r < runs_.size(); ++r) {
    for (uint32_t i = 0; i < runs_[r].rows; ++i) places_.push_back({r, runs_[r].first + i});
  }
  using Column = StagedChunk::Column;
  if (code.plain_text()) {
    return OrderBy([&](const Column& a, uint32_t x, const Column& b, uint32_t y) {
      const bool null = a.IsNull(x);
      if (null || b.IsNull(y)) return null && !b.IsNull(y);
      return code.TextOf(a, x) < code.TextOf(b, y);
    });
  }
  if (code.plain) {
    return OrderBy([](const Column& a, uint32_t x, const Column& b, uint32_t y) {
      const bool null = a.IsNull(x);
      if (null || b.IsNull(y)) return null && !b.IsNull(y);
      return a.wide_at(x) < b.wide_at(y);
    });
  }
  const uint64_t max = keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
  std::vector<uint32_t> order(rows_);
  if (std::bit_width(max) <= 32) {  // code and position in one word sort without look-ups
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = keys[i] << 32 | i;
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) order[i] = static_cast<uint32_t>(keys[i]);
  } else {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  }
  std::vector<Place> ordered(rows_);
  for (size_t i = 0; i < ordered.size(); ++i) ordered[i] = places_[order[i]];
  places_ = std::move(ordered);
}

void PartitionEncoder::Start(uint32_t partition) {
  runs_.clear();
  places_.clear();
  rows_ = 0;
  for (const auto& chunk : staged_.chunks()) {
    const uint32_t first = chunk->partition_start[partition];
    const uint32_t rows = chunk->partition_start[partition + 1] - first;
    if (rows > 0) runs_.push_back({chunk.get(), first, rows, rows_});
    rows_ += rows;
  }
  if (sort_column_ >= 0) Order();
}

namespace {

template <typename T>
void Narrow(const uint64_t* from, uint32_t rows, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (uint32_t i = 0; i < rows; ++i) out[i] = static_cast<T>(from[i]);
}

}  // namespace

void PartitionEncoder::Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block) {
  codes_of_block_.resize(rows);
  for (uint32_t c = 0; c < codes_.size(); ++c) {
    const ColumnCode& code = codes_[c];
    std::byte* const page = block.page(c);
    if (code.plain_text()) {
      auto* const ends = reinterpret_cast<uint32_t*>(page);
      std::byte* const texts = page + size_t{block.layout().block_rows()} * 4;
      uint32_t end = 0;
      ForRows(c, first, rows, [&](const StagedChunk::Column& source, uint32_t row, uint64_t i) {
        ends[i] = end | storage::TextPage::kNull;
        if (source.IsNull(row)) return;
        const std::string_view text = code.TextOf(source, row);
        std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), texts + end);
        end += static_cast<uint32_t>(text.size());
        ends[i] = end;
      });
      continue;
    }
    if (code.plain) {
      ForRows(c, first, rows, [&](const StagedChunk::Column& source, uint32_t row, uint64_t i) {
        storage::NumberPage::Write(source.wide_at(row), source.IsNull(row), static_cast<uint32_t>(i), page);
      });
      continue;
    }
    Codes(c, first, rows, codes_of_block_.data());
    const uint64_t* const from = codes_of_block_.data();
    switch (code.width) {
      case 1:
        Narrow<uint8_t>(from, rows, page);
        break;
      case 2:
        Narrow<uint16_t>(from, rows, page);
        break;
      case 4:
        Narrow<uint32_t>(from, rows, page);
        break;
      default:
        Narrow<uint64_t>(from, rows, page);
        break;
    }
  }
}

}  // namespace nam::partitioner
