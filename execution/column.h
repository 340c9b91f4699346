#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "storage/dictionary.h"
#include "types/type.h"

namespace nam::execution {

struct RowField;  // execution/row_field.h

/// The row number of no row: a missing partner of an outer join. All its columns are NULL.
inline constexpr uint32_t kNullRow = UINT32_MAX;

/// The meaning of a stored column's codes: one for each version of a table, column and group of chains that
/// were encoded together. Owned by the prepared stage, immutable, shared by its threads. Chunks point to it,
/// so one scan may meet several dictionaries.
struct CodeMeaning {
  Type type;
  uint8_t width = 1;  // of a code: 1, 2, 4 or 8
  /// The column has no codes, but texts or 128-bit numbers (storage/block.h). Only scans see it; they turn it
  /// into an array of values.
  bool plain = false;
  /// Code 0 is NULL. Only tests of codes and loads read this.
  bool null_code = false;
  int64_t base = 0;    // number, or dictionary entry, = base + code
  uint64_t codes = 1;  // an upper bound of codes; 0 if all 64 bits are used
  int64_t min = 0;     // least number that is not NULL; text: least dictionary entry
  int64_t max = 0;
  std::shared_ptr<const storage::Dictionary> dictionary;  // text
  /// Equal ids: equal codes are equal text. 0: no dictionary.
  uint64_t dictionary_id = 0;

  bool IsNull(uint64_t code) const { return null_code && code == 0; }
  int64_t Number(uint64_t code) const { return static_cast<int64_t>(static_cast<uint64_t>(base) + code); }
  std::string_view Text(uint64_t code) const { return (*dictionary)[static_cast<size_t>(Number(code))]; }
};

/// One column of a chunk. Trivially copyable; owns nothing. The value of position p lies at the index
///
///     rows == nullptr ? p : rows[p]
///
/// of an array (kCodes, kValues), or in the row at rest with that number (kField). kConstant has one value
/// for all positions and no index.
struct Column {
  enum class Kind : uint8_t { kCodes, kValues, kField, kConstant };

  Kind kind = Kind::kValues;
  uint8_t width = 8;                     // of a code (kCodes) or of a value's physical form
  Physical physical = Physical::kInt64;  // of the values, also of decoded ones
  const std::byte* base =
      nullptr;  // kCodes, kValues: the array; kField: the table's first page; kConstant: the value
  const uint32_t* rows = nullptr;  // the chunk's; a table's columns share it. May hold kNullRow
  const uint8_t* nulls = nullptr;  // kValues, kConstant: one byte an index, 1 where NULL; nullptr: no NULLs
  const CodeMeaning* meaning = nullptr;  // kCodes
  const RowField* field = nullptr;       // kField

  uint32_t IndexOf(uint32_t position) const { return rows == nullptr ? position : rows[position]; }
};

/// The bytes of one value in arrays of the physical form: numbers as they are, kText as std::string_view,
/// kTruth as a byte of kFalse, kTrue or kUnknown, which needs no bytes for NULLs.
constexpr uint8_t WidthOf(Physical physical) {
  switch (physical) {
    case Physical::kTruth:
      return 1;
    case Physical::kInt64:
      return 8;
    case Physical::kInt128:
    case Physical::kText:
      return 16;
  }
  return 0;
}

inline constexpr uint8_t kFalse = 0, kTrue = 1, kUnknown = 2;

/// A column of NULLs.
inline Column NullColumn(Physical physical) {
  static constexpr uint8_t kNull = 1;
  static constexpr std::byte kUnknownValue[16] = {std::byte{kUnknown}};
  static constexpr std::byte kNoValue[16] = {};
  return {.kind = Column::Kind::kConstant,
          .width = WidthOf(physical),
          .physical = physical,
          .base = physical == Physical::kTruth ? kUnknownValue : kNoValue,
          .nulls = &kNull};
}

/// Calls `body` with the codes typed by their width, so that loops over them are compiled for each width.
template <typename Body>
decltype(auto) WithCodes(const std::byte* codes, uint8_t width, Body&& body) {
  switch (width) {
    case 1:
      return body(reinterpret_cast<const uint8_t*>(codes));
    case 2:
      return body(reinterpret_cast<const uint16_t*>(codes));
    case 4:
      return body(reinterpret_cast<const uint32_t*>(codes));
    default:
      NAM_CHECK(width == 8);
      return body(reinterpret_cast<const uint64_t*>(codes));
  }
}

/// The code at an index. For tests and per-chunk work: loops use WithCodes.
inline uint64_t CodeAt(const std::byte* codes, uint8_t width, uint32_t index) {
  return WithCodes(codes, width, [index](const auto* c) -> uint64_t { return c[index]; });
}

}  // namespace nam::execution
