#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "execution/column.h"

namespace nam::execution {

/// The bytes before the first row of a page: execution/rows/row_layout.h's PageHeader.
inline constexpr uint32_t kPageHeaderBytes = 32;

/// One field of a layout's rows at rest, with everything that leads from a row's number to its value:
///
///     row number = page << rows_shift | place
///     its page   = base + (page << page_shift)
///     its bytes  = its page + kPageHeaderBytes + place · stride
///
/// Separate from the layout, because expressions load fields (Column::kField) and lie below rows.
struct RowField {
  Type type;
  Physical physical = Physical::kInt64;
  /// Bytes in the row. Numbers: 1, 2, 4 or 8 (number = base + unsigned field), or 16 (the number itself) if
  /// their bounds are wider or unknown; kTruth: 1, kFalse or kTrue; kText: 8, the u32 offset in the page and
  /// the u32 bytes. All zero where NULL.
  uint8_t width = 8;
  /// For numbers below 16 bytes. It comes from the plan, so it is the same on all servers.
  int64_t base = 0;
  uint16_t offset = 0;  // in the row
  /// The field is NULL where row[null_byte] & null_mask is not 0. 0: never.
  uint16_t null_byte = 0;
  uint8_t null_mask = 0;
  uint8_t rows_shift = 0;
  uint8_t page_shift = 0;
  uint16_t stride = 0;
  /// For layouts that stay in the process: the field holds the column's codes, with this meaning, and 0 where
  /// NULL. The validity bit marks every NULL; null_code need not be asked.
  const CodeMeaning* meaning = nullptr;

  bool nullable() const { return null_mask != 0; }
  /// `base` is the table's first page.
  const std::byte* PageOf(const std::byte* table, uint32_t number) const {
    return table + (uint64_t{number >> rows_shift} << page_shift);
  }
  const std::byte* RowOf(const std::byte* table, uint32_t number) const {
    return PageOf(table, number) + kPageHeaderBytes +
           uint64_t{number & ((uint32_t{1} << rows_shift) - 1)} * stride;
  }
  bool IsNull(const std::byte* row) const {
    return (std::to_integer<uint8_t>(row[null_byte]) & null_mask) != 0;
  }
  /// The stored value; T has `width` bytes.
  template <typename T>
  T Stored(const std::byte* row) const {
    T value;
    std::memcpy(&value, row + offset, sizeof(T));
    return value;
  }
  /// The text of a kText field that is not NULL. `page` is the row's.
  std::string_view Text(const std::byte* page, const std::byte* row) const {
    return {reinterpret_cast<const char*>(page) + Stored<uint32_t>(row),
            Stored<uint32_t>(row + sizeof(uint32_t))};
  }
};

/// Reads one field of a RowTable's rows by their numbers, as stored. A separate value, so that loops keep all
/// of it in registers whatever they write.
template <typename T>
class StoredAt {
 public:
  StoredAt(const RowField& field, const std::byte* table)
      : first_(table + kPageHeaderBytes + field.offset),
        place_mask_((uint32_t{1} << field.rows_shift) - 1),
        stride_(field.stride),
        rows_shift_(field.rows_shift),
        page_shift_(field.page_shift) {}
  T operator()(uint32_t row) const {
    T value;
    std::memcpy(&value,
                first_ + (uint64_t{row >> rows_shift_} << page_shift_) + (row & place_mask_) * stride_,
                sizeof(T));
    return value;
  }

 private:
  const std::byte* first_;
  uint32_t place_mask_, stride_;
  uint8_t rows_shift_, page_shift_;
};

/// Calls `body` with a zero of the type in which a field of this width is stored, so that loops over fields
/// are compiled for each width.
template <typename Body>
decltype(auto) WithStored(uint8_t width, Body&& body) {
  switch (width) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      NAM_CHECK(width == 16);
      return body(static_cast<unsigned __int128>(0));
  }
}

}  // namespace nam::execution
