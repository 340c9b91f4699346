#include "partitioner/row_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "partitioner/table_schema.h"
#include "types/sql_error.h"
#include "types/text_bytes.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

constexpr uint64_t kBytesOfNumber = 16, kBytesOfPlace = 8;

}  // namespace

RowBytes::RowBytes(const proto::Table& table)
    : table_(table.name()),
      is_record_(table.has_record()),
      fine_bytes_(table.has_record() ? kRowBytesMax : kTextBytesMax) {
  for (int c = 0; c < table.columns_size(); ++c) {
    const proto::Column& column = table.columns(c);
    if (column.hidden()) continue;  // NULL, and never read
    if (FormOf(TypeOf(column.type()).value_or(Type::Null())) != Form::kText) {
      without_texts_ += kBytesOfNumber;
      continue;
    }
    without_texts_ += kBytesOfPlace;
    most_ += table.has_record() ? MostTextBytesOf(column.type()) : 0;
    names_.push_back(column.name());
    texts_.push_back(static_cast<size_t>(c));
  }
  most_ += without_texts_;
}

absl::Status RowBytes::Check(const ColumnBatch& batch, size_t first, size_t rows) const {
  for (size_t row = first; row < first + rows; ++row) {
    uint64_t bytes = without_texts_;
    for (const size_t c : texts_) bytes += batch.column(c).strings[row].size();
    if (bytes > fine_bytes_) NAM_RETURN_IF_ERROR(CheckLong(batch, row, bytes));
  }
  return absl::OkStatus();
}

absl::Status RowBytes::CheckLong(const ColumnBatch& batch, size_t row, uint64_t bytes) const {
  const auto size = [&](size_t column) { return batch.column(column).strings[row].size(); };
  const auto longest =
      std::max_element(texts_.begin(), texts_.end(), [&](size_t a, size_t b) { return size(a) < size(b); });
  const std::string& column = names_[static_cast<size_t>(longest - texts_.begin())];
  if (!is_record_ && size(*longest) > kTextBytesMax) {
    return UserError(sqlstate::kLimitExceeded,
                     absl::StrCat("text is too long for table ", Quote(table_), ": size ", size(*longest),
                                  ", maximum size ", kTextBytesMax),
                     -1,
                     absl::StrCat("it is in column ", Quote(column), "; cut long texts into several rows"));
  }
  const uint64_t most = is_record_ ? kRowBytesMax : storage::kLongRowBytesMax;
  if (bytes <= most) return absl::OkStatus();
  return UserError(
      sqlstate::kLimitExceeded,
      absl::StrCat("row is too big for table ", Quote(table_), ": size ", bytes, ", maximum size ", most), -1,
      absl::StrCat(
          "column ", Quote(column), " has ", size(*longest),
          " bytes of it: queries keep a row with its texts in one piece; cut long texts into several "
          "rows",
          is_record_ ? ", or keep them in a table WITH (storage = columnar)" : ""));
}

}  // namespace nam::partitioner
