#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataset/counter_random.h"
#include "dataset/order_keys.h"
#include "partitioner/column_batch.h"
#include "tpch/part_suppliers.h"

namespace nam::tpch {

/// Days since 1970-01-01: 1992-01-01, the first of an order, and 1995-06-17, the benchmark's today.
inline constexpr int64_t kStartDate = 8035, kCurrentDate = 9298;
/// Orders fall on so many days, 1992-01-01 … 1998-08-02: 151 days later is 1998-12-31.
inline constexpr uint32_t kOrderDays = 2406;

/// How many rows there are of what orders refer to.
struct ReferredRows {
  uint64_t customers = 1;
  uint64_t parts = 1;
  uint64_t suppliers = 1;
  uint64_t clerks = 1;
};

/// Orders and their lines, each of which may be made without the other. A value.
class OrderRows {
 public:
  static constexpr uint32_t kLinesMax = 7;

  /// `key` is of the orders' random words; `key_offset` is added to their keys.
  OrderRows(uint64_t key, const ReferredRows& referred, uint64_t key_offset = 0)
      : key_(key), referred_(referred), key_offset_(key_offset) {}

  /// Rows of orders with these numbers, counted from 0, which `batch` has none of yet.
  void FillOrders(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  /// Likewise the rows of lineitem of these orders.
  void FillLineitem(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;

 private:
  struct Line {
    int64_t part_key, supp_key, quantity, extended_price, discount, tax;
    int64_t ship_date, commit_date, receipt_date;
    bool shipped;  // by the benchmark's today
    std::string_view return_flag, ship_instruct, ship_mode;
  };

  int64_t KeyOf(uint64_t number) const {
    return static_cast<int64_t>(dataset::SparseKey(number + 1) + key_offset_);
  }
  dataset::RowRandom RandomOf(uint64_t number) const { return {key_, number}; }
  Line MakeLine(const dataset::RowRandom& random, int64_t order_date, uint32_t line) const;

  uint64_t key_;
  ReferredRows referred_;
  uint64_t key_offset_;
};

}  // namespace nam::tpch
