#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataset/counter_random.h"
#include "dataset/order_keys.h"
#include "partitioner/column_batch.h"
#include "tpch/part_suppliers.h"

namespace nam::tpch {

/// Days since 1970-01-01: 1992-01-01, the first order date, and 1995-06-17, the benchmark's current date.
inline constexpr int64_t kStartDate = 8035, kCurrentDate = 9298;
/// The number of order dates, 1992-01-01 … 1998-08-02: 151 days later is 1998-12-31.
inline constexpr uint32_t kOrderDays = 2406;

/// Row counts of the tables that orders refer to.
struct ReferredRows {
  uint64_t customers = 1;
  uint64_t parts = 1;
  uint64_t suppliers = 1;
  uint64_t clerks = 1;
};

/// Generates orders and their lines, each independently. A value.
class OrderRows {
 public:
  static constexpr uint32_t kLinesMax = 7;

  /// `key` selects the orders' random words; `key_offset` is added to their keys.
  OrderRows(uint64_t key, const ReferredRows& referred, uint64_t key_offset = 0)
      : key_(key), referred_(referred), key_offset_(key_offset) {}

  /// Fills in the orders with these numbers, from 0. `batch` must be empty.
  void FillOrders(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  /// Fills in the lineitem rows of these orders.
  void FillLineitem(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;

 private:
  struct Line {
    int64_t part_key, supp_key, quantity, extended_price, discount, tax;
    int64_t ship_date, commit_date, receipt_date;
    bool shipped;  // by the current date
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
