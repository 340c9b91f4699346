#include "bench/shuffle_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/table_metadata.h"

namespace nam::bench {
namespace {

/// Small enough that threads share a table evenly, and large enough that claiming one is cheap.
constexpr size_t kChunkRows = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<ShuffleTable>> ShuffleTable::Make(std::shared_ptr<const proto::Table> table,
                                                                 std::vector<uint32_t> columns,
                                                                 const execution::DictionaryLoader& load) {
  auto made = std::make_unique<ShuffleTable>();
  made->widths_ = partitioner::WidthsOf(*table, 0);
  made->texts_.resize(static_cast<size_t>(table->columns_size()));
  for (const uint32_t column : columns) {
    const proto::Column& of = table->columns(static_cast<int>(column));
    if (of.nullable()) return absl::InvalidArgumentError(absl::StrCat(of.name(), " may be NULL"));
    if (!of.encoding().has_dictionary()) continue;
    NAM_ASSIGN_OR_RETURN(made->texts_[column].dictionary, load(*table, column, /*group=*/0));
  }
  made->table_ = std::move(table);
  made->columns_ = std::move(columns);
  return made;
}

absl::Status ShuffleTable::Append(const partitioner::ColumnBatch& batch) {
  for (size_t first = 0; first < batch.rows(); first += kChunkRows) {
    const size_t rows = std::min(kChunkRows, batch.rows() - first);
    NAM_RETURN_IF_ERROR(AppendRows(batch, first, static_cast<uint32_t>(rows)));
  }
  return absl::OkStatus();
}

absl::Status ShuffleTable::AppendRows(const partitioner::ColumnBatch& batch, size_t first, uint32_t rows) {
  Chunk& chunk = chunks_.emplace_back();
  chunk.rows = rows;
  chunk.columns.resize(widths_.size());
  for (const uint32_t column : columns_) {
    const uint8_t width = widths_[column];
    std::vector<std::byte>& codes = chunk.columns[column];
    codes.resize(size_t{rows} * width);
    for (uint32_t row = 0; row < rows; ++row) {
      NAM_ASSIGN_OR_RETURN(const uint64_t code, CodeOf(batch.column(column), first + row, column));
      std::memcpy(codes.data() + size_t{row} * width, &code, width);  // little-endian
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ShuffleTable::CodeOf(const partitioner::ColumnBatch::Column& column, size_t row,
                                              uint32_t number) {
  const proto::Column& of = table_->columns(static_cast<int>(number));
  const auto base = static_cast<uint64_t>(of.encoding().base());
  Text& text = texts_[number];
  if (text.dictionary == nullptr) {
    const int64_t value = column.numbers[row];
    if (value < of.min() || value > of.max())
      return absl::DataLossError(absl::StrCat(of.name(), " is not what was loaded"));
    return static_cast<uint64_t>(value) - base;
  }
  const auto [known, fresh] = text.codes.try_emplace(std::string(column.strings[row]), 0);
  if (fresh) {
    const std::optional<size_t> entry = text.dictionary->Find(column.strings[row]);
    if (!entry) return absl::DataLossError(absl::StrCat(of.name(), " is not what was loaded"));
    known->second = *entry - base;
  }
  return known->second;
}

}  // namespace nam::bench
