#include "partitioner/staging.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "partitioner/partition_function.h"
#include "types/sql_error.h"

namespace nam::partitioner {

namespace {

/// Bytes of a map entry besides the string: after growing, the map is at most half empty.
constexpr uint64_t kBytesOfEntry = 2 * (sizeof(std::string) + 2 * sizeof(uint64_t));

template <typename T>
uint64_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

uint64_t StagedChunk::held_bytes() const {
  uint64_t bytes = sizeof(*this) + BytesOf(partition_start) + BytesOf(columns);
  for (const Column& column : columns) {
    bytes += column.numbers.held_bytes() + BytesOf(column.plain) + column.ends.held_bytes() +
             BytesOf(column.nulls) + column.text.capacity();
  }
  return bytes;
}

StringCollector::StringCollector() = default;

bool StringCollector::Number(const std::vector<std::string_view>& strings, const std::vector<uint8_t>& nulls,
                             std::vector<uint32_t>& numbers) {
  if (many_) return false;
  // Batches repeat few strings, often the very same bytes: checks a small cache by address, then the batch's
  // own map, and takes the lock of the column's map only for strings new to the batch.
  struct Recent {
    std::string_view text;
    uint32_t local;
  };
  std::array<Recent, 256> recent{};
  absl::flat_hash_map<std::string_view, uint32_t> local;
  std::vector<std::string_view> distinct;
  numbers.resize(strings.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    if (!nulls.empty() && nulls[i]) {
      numbers[i] = 0;
      continue;
    }
    const std::string_view text = strings[i];
    Recent& slot = recent[(reinterpret_cast<uintptr_t>(text.data()) * 0x9E3779B97F4A7C15ull) >> 56];
    if (slot.text.data() != text.data() || slot.text.size() != text.size() || text.data() == nullptr) {
      auto [it, fresh] = local.try_emplace(text, static_cast<uint32_t>(distinct.size()));
      if (fresh) distinct.push_back(text);
      slot = {text, it->second};
    }
    numbers[i] = slot.local;
  }
  std::vector<uint32_t> global(std::max<size_t>(distinct.size(), 1));
  {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < distinct.size(); ++i) {
      auto it = numbers_.find(absl::string_view(distinct[i].data(), distinct[i].size()));
      if (it == numbers_.end()) {
        it = numbers_.emplace(std::string(distinct[i]), static_cast<uint32_t>(count_++)).first;
        bytes_ += distinct[i].size();
        held_bytes_ += kBytesOfEntry + distinct[i].size();
      }
      global[i] = it->second;
    }
    rows_ += strings.size();
    if (count_ > kFew && (count_ > rows_ / kRowsPerString || count_ > kMost)) many_ = true;
    if (bytes_ > kMostBytes) many_ = true;
  }
  for (size_t i = 0; i < strings.size(); ++i) {
    if (nulls.empty() || !nulls[i]) numbers[i] = global[numbers[i]];
  }
  return true;
}

std::vector<std::string_view> StringCollector::ByNumber() const {
  std::vector<std::string_view> texts(count_);
  for (const auto& [text, number] : numbers_) texts[number] = text;
  return texts;
}

void StringCollector::Sort(std::vector<std::string_view>& sorted, std::vector<uint32_t>& place_of) const {
  std::vector<std::pair<std::string_view, uint32_t>> all;
  all.reserve(count_);
  for (const auto& [text, number] : numbers_) all.emplace_back(text, number);
  std::sort(all.begin(), all.end());
  sorted.resize(all.size());
  place_of.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    sorted[i] = all[i].first;
    place_of[all[i].second] = static_cast<uint32_t>(i);
  }
}

StagedTable::StagedTable(const TableSchema& schema, uint64_t bytes_max)
    : schema_(schema), bytes_max_(bytes_max), ranges_(schema.columns.size()), wide_(schema.columns.size()) {
  for (const ColumnSchema& column : schema.columns) {
    strings_.push_back(FormOf(column.type) == Form::kText ? std::make_unique<StringCollector>() : nullptr);
  }
  for (const PartitionSchema& key : schema.partitioning) {
    for (size_t c = 0; c < schema.columns.size(); ++c) {
      if (schema.columns[c].name == key.column) key_columns_.push_back(static_cast<int>(c));
    }
    partitions_ *= key.parts;
  }
  NAM_CHECK(key_columns_.size() == schema.partitioning.size(), "partition column is not in the table");
}

absl::Status StagedTable::Check(const ColumnBatch& batch) const {
  NAM_CHECK(batch.column_count() == schema_.columns.size());
  for (size_t c = 0; c < batch.column_count(); ++c) {
    const auto& column = batch.column(c);
    const ColumnSchema& schema = schema_.columns[c];
    const Form form = FormOf(schema.type);
    NAM_CHECK((form == Form::kText   ? column.strings.size()
               : form == Form::kWide ? column.wide.size()
                                     : column.numbers.size()) == batch.rows());
    NAM_CHECK(column.nulls.empty() || column.nulls.size() == batch.rows());
    if (!schema.nullable &&
        std::any_of(column.nulls.begin(), column.nulls.end(), [](uint8_t n) { return n != 0; })) {
      return absl::InvalidArgumentError(
          absl::StrFormat("column %s of %s takes no NULL", schema.name, schema_.name));
    }
    if (schema.type.kind != TypeKind::kString || schema.type.length == 0) continue;
    for (std::string_view value : column.strings) {
      if (value.size() <= schema.type.length) continue;
      // Lengths are in characters, which are counted only if there are too many bytes.
      if (CountCharacters(value) <= schema.type.length) continue;
      return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is too long for column %s of %s, a %s", value,
                                                        schema.name, schema_.name, TypeName(schema.type)));
    }
  }
  return absl::OkStatus();
}

void StagedTable::PartitionRows(const ColumnBatch& batch, std::vector<uint32_t>& partition_of) const {
  partition_of.assign(batch.rows(), 0);
  for (size_t k = 0; k < key_columns_.size(); ++k) {
    const auto& column = batch.column(static_cast<size_t>(key_columns_[k]));
    const Type& type = schema_.columns[static_cast<size_t>(key_columns_[k])].type;
    const uint32_t parts = schema_.partitioning[k].parts;
    for (size_t i = 0; i < batch.rows(); ++i) {
      uint32_t part = 0;  // NULL
      if (column.nulls.empty() || !column.nulls[i]) {
        part = FormOf(type) == Form::kText       ? PartitionOfString(column.strings[i], parts)
               : type.kind == TypeKind::kInteger ? PartitionOfInteger(column.numbers[i], parts)
                                                 : PartitionOfNumber(column.numbers[i], parts);
      }
      partition_of[i] = partition_of[i] * parts + part;
    }
  }
}

namespace {

/// Stable counting sort: order[k] is the k-th row.
void OrderByPartition(const std::vector<uint32_t>& partition_of, uint32_t partitions,
                      std::vector<uint32_t>& start, std::vector<uint32_t>& order) {
  start.assign(partitions + 1, 0);
  for (uint32_t p : partition_of) ++start[p + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<uint32_t> next(start.begin(), start.end() - 1);
  order.resize(partition_of.size());
  for (uint32_t i = 0; i < partition_of.size(); ++i) order[next[partition_of[i]]++] = i;
}

/// Stages the NULLs in the rows' final order; returns the range of columns without numbers.
StagedTable::ColumnRange StageNulls(size_t rows, const std::vector<uint8_t>& nulls,
                                    const std::vector<uint32_t>& order, StagedChunk::Column& out) {
  StagedTable::ColumnRange range;
  for (const uint8_t null : nulls) range.nulls += null != 0;
  range.values = rows - range.nulls;
  if (range.nulls == 0) return range;
  out.nulls.resize(rows);
  for (size_t i = 0; i < order.size(); ++i) out.nulls[i] = nulls[order[i]];
  return range;
}

StagedTable::ColumnRange StageTexts(const std::vector<std::string_view>& values,
                                    const std::vector<uint8_t>& nulls, const std::vector<uint32_t>& order,
                                    StagedChunk::Column& out) {
  size_t bytes = 0;
  for (const std::string_view value : values) bytes += value.size();
  out.text.reserve(bytes);
  out.ends.Fill(order.size(), 0, static_cast<int64_t>(bytes), [&](size_t i) {
    out.text.append(values[order[i]]);
    return out.text.size();
  });
  return StageNulls(values.size(), nulls, order, out);
}

bool FitNumbers(const std::vector<__int128>& values) {
  // One bit less than 64 bits: codes and their base, which are differences, must fit too.
  constexpr __int128 kBound = __int128{1} << 62;
  return std::all_of(values.begin(), values.end(),
                     [](__int128 value) { return value > -kBound && value < kBound; });
}

StagedTable::ColumnRange StageWide(const std::vector<__int128>& values, const std::vector<uint8_t>& nulls,
                                   const std::vector<uint32_t>& order, StagedChunk::Column& out) {
  out.plain.reserve(values.size());
  for (const uint32_t row : order) out.plain.push_back(values[row]);
  return StageNulls(values.size(), nulls, order, out);
}

StagedTable::ColumnRange Stage(const std::vector<int64_t>& values, const std::vector<uint8_t>& nulls,
                               const std::vector<uint32_t>& order, StagedChunk::Column& out) {
  StagedTable::ColumnRange range{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0,
                                 0};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!nulls.empty() && nulls[i]) {
      ++range.nulls;
      continue;
    }
    range.min = std::min(range.min, values[i]);
    range.max = std::max(range.max, values[i]);
  }
  range.values = values.size() - range.nulls;
  if (range.values == 0) range.min = range.max = 0;
  if (range.nulls > 0) {
    out.nulls.resize(values.size());
    for (size_t i = 0; i < order.size(); ++i) out.nulls[i] = nulls[order[i]];
  }
  out.numbers.Fill(order.size(), range.min, range.max, [&](size_t i) { return values[order[i]]; });
  return range;
}

}  // namespace

absl::Status StagedTable::Charge(const StagedChunk& chunk) {
  const uint64_t chunk_bytes = chunk.held_bytes();
  uint64_t bytes = held_bytes_.fetch_add(chunk_bytes) + chunk_bytes;
  for (const auto& strings : strings_) bytes += strings == nullptr ? 0 : strings->held_bytes();
  if (bytes <= bytes_max_) return absl::OkStatus();
  return UserError(
      sqlstate::kOutOfMemory,
      absl::StrFormat(
          "the rows for table \"%s\" take more than the %d MiB that a load may take of its client",
          schema_.name, bytes_max_ >> 20),
      -1, "load them in parts, each of which adds its rows; or raise nam.load_mib_max");
}

absl::Status StagedTable::Append(const ColumnBatch& batch) {
  if (batch.rows() == 0) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Check(batch));
  std::vector<uint32_t> partition_of, order, numbers;
  PartitionRows(batch, partition_of);
  auto chunk = std::make_unique<StagedChunk>();
  chunk->place = batch.place();
  OrderByPartition(partition_of, partitions_, chunk->partition_start, order);
  chunk->columns.resize(batch.column_count());
  std::vector<ColumnRange> ranges(batch.column_count());
  std::vector<int64_t> widened;
  std::vector<uint8_t> wide(batch.column_count());
  for (size_t c = 0; c < batch.column_count(); ++c) {
    const auto& column = batch.column(c);
    const Form form = FormOf(schema_.columns[c].type);
    if (form == Form::kNumber) {
      ranges[c] = Stage(column.numbers, column.nulls, order, chunk->columns[c]);
      continue;
    }
    if (form == Form::kWide && schema_.columns[c].type.kind == TypeKind::kDecimal &&
        FitNumbers(column.wide)) {
      widened.assign(column.wide.begin(), column.wide.end());
      ranges[c] = Stage(widened, column.nulls, order, chunk->columns[c]);
      continue;
    }
    if (form == Form::kWide) {
      wide[c] = 1;
      ranges[c] = StageWide(column.wide, column.nulls, order, chunk->columns[c]);
      continue;
    }
    if (!strings_[c]->Number(column.strings, column.nulls, numbers)) {
      ranges[c] = StageTexts(column.strings, column.nulls, order, chunk->columns[c]);
      continue;
    }
    widened.assign(numbers.begin(), numbers.end());
    ranges[c] = Stage(widened, column.nulls, order, chunk->columns[c]);
  }
  NAM_RETURN_IF_ERROR(Charge(*chunk));
  const MutexLock lock(mutex_);
  for (size_t c = 0; c < ranges.size(); ++c) {
    ColumnRange& all = ranges_[c];
    if (ranges[c].values > 0) {
      all.min = all.values == 0 ? ranges[c].min : std::min(all.min, ranges[c].min);
      all.max = all.values == 0 ? ranges[c].max : std::max(all.max, ranges[c].max);
    }
    wide_[c] |= wide[c];
    all.nulls += ranges[c].nulls;
    all.values += ranges[c].values;
  }
  rows_ += batch.rows();
  const auto behind =
      std::ranges::upper_bound(chunks_, chunk->place, {}, [](const auto& other) { return other->place; });
  chunks_.insert(behind, std::move(chunk));
  return absl::OkStatus();
}

StagedTable::ColumnRange StagedTable::RangeOf(size_t column) const {
  return ranges_[column];
}

uint64_t StagedTable::Distinct(size_t column) const {
  const ColumnRange& range = ranges_[column];
  const uint64_t spread = static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
  if (range.values == 0) return 0;
  if (!Counts(spread)) return std::min(range.values, spread == UINT64_MAX ? spread : spread + 1);
  std::vector<bool> seen(spread + 1);
  uint64_t distinct = 0;
  for (const auto& chunk : chunks_) {
    if (distinct == spread + 1) break;  // every value occurs
    const StagedChunk::Column& values = chunk->columns[column];
    const uint32_t rows = chunk->partition_start.back();
    for (uint32_t row = 0; row < rows; ++row) {
      if (!values.nulls.empty() && values.nulls[row]) continue;
      auto&& bit = seen[static_cast<uint64_t>(values.at(row)) - static_cast<uint64_t>(range.min)];
      distinct += !bit;
      bit = true;
    }
  }
  return distinct;
}

bool StagedTable::Unique(size_t column) const {
  constexpr uint64_t kSpreadPerValue = 64;
  const ColumnRange& range = ranges_[column];
  const uint64_t spread = static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
  if (range.values == 0 || spread < range.values - 1 || spread / kSpreadPerValue > range.values) return false;
  std::vector<bool> seen(spread + 1);
  for (const auto& chunk : chunks_) {
    const StagedChunk::Column& values = chunk->columns[column];
    const uint32_t rows = chunk->partition_start.back();
    for (uint32_t row = 0; row < rows; ++row) {
      if (!values.nulls.empty() && values.nulls[row]) continue;
      auto&& bit = seen[static_cast<uint64_t>(values.at(row)) - static_cast<uint64_t>(range.min)];
      if (bit) return false;
      bit = true;
    }
  }
  return true;
}

uint64_t StagedTable::RowsOf(uint32_t partition) const {
  uint64_t rows = 0;
  for (const auto& chunk : chunks_)
    rows += chunk->partition_start[partition + 1] - chunk->partition_start[partition];
  return rows;
}

}  // namespace nam::partitioner
