#include "partitioner/record_row.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/check.h"
#include "types/numeric.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

constexpr uint32_t kMostDigitsOf8Bytes = 18;

using Unsigned = unsigned __int128;

/// The bias that makes a number of this width non-negative.
Unsigned SignBit(uint32_t bytes) {
  return Unsigned{1} << (8 * bytes - 1);
}

void PutNumber(__int128 number, uint32_t bytes, char* to) {
  Unsigned n = static_cast<Unsigned>(number) + SignBit(bytes);
  NAM_CHECK(bytes == 16 || n < SignBit(bytes) * 2, "a number is wider than its column");
  for (uint32_t i = bytes; i-- > 0; n >>= 8) to[i] = static_cast<char>(static_cast<uint8_t>(n & 0xff));
}

__int128 GetNumber(const std::byte* from, uint32_t bytes) {
  Unsigned n = 0;
  for (uint32_t i = 0; i < bytes; ++i) n = n << 8 | static_cast<uint8_t>(from[i]);
  return static_cast<__int128>(n - SignBit(bytes));
}

void PutValue(const Value& value, uint32_t bytes, char* to) {
  if (value.type.kind == TypeKind::kNumeric) return PutNumber(NumericKey(value.unpacked()), bytes, to);
  if (PhysicalOf(value.type) != Physical::kText) return PutNumber(value.number, bytes, to);
  const bool counted = value.type.kind == TypeKind::kBytes;
  const size_t size = value.text.size();
  NAM_CHECK(size + (counted ? kLengthBytes : 0) <= bytes, "a text is longer than its column");
  std::memcpy(to, value.text.data(), size);
  if (!counted) return;
  to[bytes - 2] = static_cast<char>(static_cast<uint8_t>(size >> 8));
  to[bytes - 1] = static_cast<char>(static_cast<uint8_t>(size & 0xff));
}

std::optional<Numeric> GetNumeric(const RecordLayout::Field& field, const std::byte* row) {
  return NumericOfKey(GetNumber(row + field.offset, field.bytes),
                      std::to_integer<int>(row[field.scale_offset]));
}

Value GetValue(const RecordLayout::Field& field, const std::byte* row) {
  const std::byte* const from = row + field.offset;
  if (field.type.kind == TypeKind::kNumeric)
    return Value::OfNumeric(GetNumeric(field, row).value_or(Numeric()));
  if (PhysicalOf(field.type) != Physical::kText) return {field.type, false, GetNumber(from, field.bytes), {}};
  return {field.type, false, 0, std::string(StoredText(field.type.kind, from, field.bytes))};
}

}  // namespace

std::string_view StoredText(TypeKind kind, const std::byte* from, uint32_t bytes) {
  const auto* text = reinterpret_cast<const char*>(from);
  if (kind != TypeKind::kBytes) return {text, strnlen(text, bytes)};
  const uint32_t most = bytes - kLengthBytes;
  const uint32_t size =
      std::to_integer<uint32_t>(from[most]) << 8 | std::to_integer<uint32_t>(from[most + 1]);
  return {text, std::min(size, most)};
}

uint32_t MostTextBytesOf(const proto::Type& type) {
  const uint32_t bytes = BytesOfColumn(type);
  return ColumnTypeOf(type).kind == TypeKind::kBytes ? bytes - kLengthBytes : bytes;
}

uint32_t BytesOfColumn(const proto::Type& type) {
  switch (ColumnTypeOf(type).kind) {
    case TypeKind::kBool:
      return 1;
    case TypeKind::kInteger:
      return type.precision();
    case TypeKind::kDecimal:
      return type.precision() <= kMostDigitsOf8Bytes ? 8 : 16;
    case TypeKind::kDate:
      return 4;
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
    case TypeKind::kTime:
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return 8;
    case TypeKind::kInterval:
    case TypeKind::kNumeric:
    case TypeKind::kUuid:
      return 16;
    case TypeKind::kBytes:
      return std::max(type.precision(), kLengthBytes);
    case TypeKind::kString:
      return type.precision() > 0 ? type.precision() : type.length();
    default:
      break;
  }
  NAM_CHECK(false, "not a type of a record table");
  return 0;
}

std::vector<uint32_t> KeyColumnsOf(const proto::Table& table) {
  std::vector<uint32_t> columns;
  for (const std::string& name : table.record().primary_key()) {
    const auto found = std::find_if(table.columns().begin(), table.columns().end(),
                                    [&](const proto::Column& column) { return column.name() == name; });
    NAM_CHECK(found != table.columns().end(), "a table's key names a column that it does not have");
    columns.push_back(static_cast<uint32_t>(found - table.columns().begin()));
  }
  return columns;
}

RecordLayout::RecordLayout(const proto::Table& table) {
  for (const proto::Column& column : table.columns()) {
    fields_.push_back({ColumnTypeOf(column.type()), BytesOfColumn(column.type())});
    if (fields_.back().type.kind == TypeKind::kNumeric)
      numerics_.push_back(static_cast<uint32_t>(fields_.size() - 1));
  }
  std::vector<bool> in_key(fields_.size());
  for (const uint32_t key : KeyColumnsOf(table)) {
    in_key[key] = true;
    fields_[key].offset = key_bytes_;
    key_bytes_ += fields_[key].bytes;
  }
  int null_bits = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!in_key[i] && table.columns(static_cast<int>(i)).nullable())
      fields_[i].null_bit = static_cast<int>(8 * key_bytes_) + null_bits++;
  }
  row_bytes_ = key_bytes_ + static_cast<uint32_t>(null_bits + 7) / 8;
  const auto add_scale = [this](Field& field) {
    if (field.type.kind == TypeKind::kNumeric) field.scale_offset = row_bytes_++;
  };
  for (const uint32_t key : KeyColumnsOf(table)) add_scale(fields_[key]);
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (in_key[i]) continue;
    fields_[i].offset = row_bytes_;
    row_bytes_ += fields_[i].bytes;
    add_scale(fields_[i]);
  }
}

std::string RecordLayout::Encode(std::span<const Value> values) const {
  NAM_CHECK(values.size() == fields_.size());
  std::string row(row_bytes_, '\0');
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& column = fields_[i];
    if (!values[i].null) {
      PutValue(values[i], column.bytes, row.data() + column.offset);
      if (column.type.kind == TypeKind::kNumeric)
        row[column.scale_offset] = static_cast<char>(values[i].unpacked().scale);
      continue;
    }
    NAM_CHECK(column.nullable(), "a column that is never NULL is");
    char& bits = row[static_cast<size_t>(column.null_bit) / 8];
    bits = static_cast<char>(static_cast<uint8_t>(bits) | 1 << (column.null_bit % 8));
  }
  return row;
}

std::vector<Value> RecordLayout::Decode(std::span<const std::byte> row) const {
  NAM_CHECK(row.size() >= row_bytes_);
  std::vector<Value> values;
  values.reserve(fields_.size());
  for (const Field& column : fields_) {
    values.push_back(column.nullable() && column.IsNull(row.data()) ? Value::Null(column.type)
                                                                    : GetValue(column, row.data()));
  }
  return values;
}

bool RecordLayout::HasNumbers(std::span<const std::byte> row) const {
  return std::all_of(numerics_.begin(), numerics_.end(), [&](uint32_t column) {
    const Field& field = fields_[column];
    return (field.nullable() && field.IsNull(row.data())) || GetNumeric(field, row.data()).has_value();
  });
}

void RecordLayout::DescribeKey(proto::RecordPart& index) const {
  uint32_t bytes = 0;
  index.clear_pieces();
  for (const uint32_t c : index.columns()) {
    const Field& column = fields_[c];
    proto::KeyPiece& piece = *index.add_pieces();
    piece.set_offset(column.offset);
    piece.set_bytes(column.bytes);
    piece.set_nullable(nullable(c));
    if (column.nullable()) piece.set_null_bit(static_cast<uint32_t>(column.null_bit));
    bytes += column.bytes + nullable(c);
  }
  index.set_key_bytes(bytes);
}

std::string RecordLayout::IndexKey(std::span<const std::byte> row, std::span<const uint32_t> columns) const {
  const auto* bytes = reinterpret_cast<const char*>(row.data());
  std::string key;
  for (const uint32_t c : columns) {
    const Field& column = fields_[c];
    if (nullable(c)) key.push_back(column.IsNull(row.data()) ? 1 : 0);
    key.append(bytes + column.offset, column.bytes);
  }
  return key;
}

void RecordLayout::Append(uint32_t column, const Value& value, std::string& bytes) const {
  const size_t at = bytes.size();
  bytes.resize(at + fields_[column].bytes);
  PutValue(value, fields_[column].bytes, bytes.data() + at);
}

void AppendNumericKey(__int128 key, std::string& bytes) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(key));
  PutNumber(key, sizeof(key), bytes.data() + at);
}

std::string SuccessorOfPrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

}  // namespace nam::partitioner
