#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "execution/chunk.h"
#include "execution/expression/vector.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// One key of an ORDER BY: a slot of the rows.
struct OrderSlot {
  uint32_t slot = 0;
  bool descending = false;
  bool nulls_first = false;
};

/// A row in an order: rows with a smaller prefix come first; rows with equal ones are compared.
struct OrderedRow {
  uint64_t prefix = 0;
  uint32_t row = 0;
};

/// The order of rows in a table. Rows with equal keys are in any order. Immutable; any thread.
class RowOrder {
 public:
  /// The table outlives the order.
  RowOrder(const RowTable& table, std::span<const OrderSlot> keys)
      : RowOrder(table.layout(), table.page(0), keys) {}
  /// For rows in consecutive pages from `base` on. Both outlive the order.
  RowOrder(const RowLayout& layout, const std::byte* base, std::span<const OrderSlot> keys)
      : layout_(layout), base_(base), keys_(keys.begin(), keys.end()) {}

  bool Before(const OrderedRow& a, const OrderedRow& b) const {
    return a.prefix != b.prefix ? a.prefix < b.prefix : CompareRows(a.row, b.row) < 0;
  }
  /// Whether all keys are equal; NULLs equal each other.
  bool Same(uint32_t a, uint32_t b) const { return CompareRows(a, b) == 0; }
  /// Computes the prefixes of rows whose first key has the values at the selected positions.
  void PrefixesOf(const Vector& values, Selection rows, uint64_t* prefixes) const;
  /// Not for an order without keys, in which all rows are equal.
  const OrderSlot& first() const { return keys_.front(); }
  bool empty() const { return keys_.empty(); }

 private:
  int CompareRows(uint32_t a, uint32_t b) const;
  int CompareKey(const OrderSlot& key, uint32_t a, uint32_t b) const;

  const RowLayout& layout_;
  const std::byte* const base_;
  const std::vector<OrderSlot> keys_;
};

}  // namespace nam::execution
