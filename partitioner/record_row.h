#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "proto/table.pb.h"
#include "types/value.h"

/// The memory format of a record table's row: fixed size, key first.
///
///     ├ key columns, in the primary key's order ┼ NULL bits ┼ scales ┼ the others, in the table's order ┤
///
///     scales      1 byte for each numeric of the key, in the primary key's order
///     NULL bits   bit i of byte i / 8: the i-th nullable column is NULL; its bytes are then zero
///     boolean     1 byte                      smallint, integer, bigint   2, 4, 8 bytes
///     date        4 bytes                     decimal(p, s)               8 bytes up to 18 digits, else 16
///     timestamp   8 bytes                     char(n), varchar(n)         4n bytes, the text zero-padded
///     uuid        16 bytes                    bytea                       the bytes zero-padded, then their
///     numeric     16 bytes of its key, then 1 of                          length in 2 bytes
///                 its scale (of the key's: above)
///
/// Numbers are big-endian with the sign bit flipped, so that bytes are ordered like values (a text contains
/// no zero byte): memcmp compares keys. Equal numerics have equal keys, whatever their scales: 1.0 and 1.00
/// are one key.
///
/// The key of an ordered index is likewise a string of bytes, and several rows may have the same one:
///
///     ├ its columns; each nullable one after a byte: 0, or 1 if it is NULL ┤
namespace nam::partitioner {

/// Decodes a stored number of as many bytes as `Unsigned` has. For decoders of many rows.
template <typename Unsigned>
std::make_signed_t<Unsigned> StoredNumber(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little && sizeof(Unsigned) <= 8);
  Unsigned n = 0;
  std::memcpy(&n, from, sizeof(n));
  if constexpr (sizeof(n) == 2) n = __builtin_bswap16(n);
  if constexpr (sizeof(n) == 4) n = __builtin_bswap32(n);
  if constexpr (sizeof(n) == 8) n = __builtin_bswap64(n);
  return static_cast<std::make_signed_t<Unsigned>>(n ^ Unsigned{1} << (8 * sizeof(n) - 1));
}
/// Decodes a stored number of 16 bytes.
inline __int128 StoredWideNumber(const std::byte* from) {
  uint64_t low = 0;
  std::memcpy(&low, from + 8, 8);
  return static_cast<__int128>(static_cast<unsigned __int128>(StoredNumber<uint64_t>(from)) << 64 |
                               __builtin_bswap64(low));
}

/// The length after the bytes of a bytea; it distinguishes values that differ only in trailing zeros.
inline constexpr uint32_t kLengthBytes = 2;

/// The text or bytea in a field of `bytes` bytes.
std::string_view StoredText(TypeKind kind, const std::byte* from, uint32_t bytes);

/// Bytes of a column in a row, without the scale of a numeric.
uint32_t BytesOfColumn(const proto::Type& type);
/// The longest value of a column of text or bytea, in bytes.
uint32_t MostTextBytesOf(const proto::Type& type);

/// Positions of the primary key's columns, the most significant first.
std::vector<uint32_t> KeyColumnsOf(const proto::Table& table);

/// The layout of one table's rows. Immutable; any thread. Borrows nothing.
class RecordLayout {
 public:
  /// Requires that the table's columns and primary key are set.
  explicit RecordLayout(const proto::Table& table);

  uint32_t key_bytes() const { return key_bytes_; }
  uint32_t row_bytes() const { return row_bytes_; }

  /// The place of a column in a row.
  struct Field {
    Type type;
    uint32_t bytes = 0;
    uint32_t offset = 0;
    uint32_t scale_offset = 0;  // of a numeric's scale
    int null_bit = -1;          // counted from the row's first byte; -1: never NULL
    bool nullable() const { return null_bit >= 0; }
    bool IsNull(const std::byte* row) const {
      return (static_cast<uint8_t>(row[null_bit / 8]) >> (null_bit % 8) & 1) != 0;
    }
  };
  const Field& field(uint32_t column) const { return fields_[column]; }

  /// Takes one value per column of the table, as Assign (partitioner/assigned_value.h) leaves them.
  std::string Encode(std::span<const Value> values) const;
  std::vector<Value> Decode(std::span<const std::byte> row) const;
  /// False: a numeric of the row is no number, as in damaged memory.
  bool HasNumbers(std::span<const std::byte> row) const;

  /// Fills in the key description of an ordered index over index.columns.
  void DescribeKey(proto::RecordPart& index) const;
  /// The key of a row in an ordered index over `columns`.
  std::string IndexKey(std::span<const std::byte> row, std::span<const uint32_t> columns) const;

  /// Appends the bytes that a column's non-NULL value has in keys.
  void Append(uint32_t column, const Value& value, std::string& bytes) const;
  /// True if a NULL byte precedes the column in an index.
  bool nullable(uint32_t column) const { return fields_[column].nullable(); }
  uint32_t bytes(uint32_t column) const { return fields_[column].bytes; }

 private:
  std::vector<Field> fields_;
  std::vector<uint32_t> numerics_;  // columns
  uint32_t key_bytes_ = 0;
  uint32_t row_bytes_ = 0;
};

/// Appends the 16 bytes that numerics of this NumericKey have in keys.
void AppendNumericKey(__int128 key, std::string& bytes);

/// The least string greater than all strings with `prefix`; empty if there is none.
std::string SuccessorOfPrefix(std::string prefix);

}  // namespace nam::partitioner
