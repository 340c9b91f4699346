#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "execution/sort/sorter.h"
#include "tests/execution/tuples.h"

/// Orders of rows, and rows in these orders.
namespace nam::execution {

struct Sorting {
  plan::Schema schema;
  std::vector<OrderSlot> order;
  std::unique_ptr<const RowsPlan> plan;
  bool texts = false;  // whether there are any
};

inline bool StandsBefore(const std::vector<OrderSlot>& order, const Tuple& a, const Tuple& b) {
  for (const OrderSlot& key : order) {
    const Cell &x = a[key.slot], &y = b[key.slot];
    if (x.null || y.null) {
      if (x.null != y.null) return x.null == key.nulls_first;
      continue;
    }
    if (x != y) return (x < y) != key.descending;
  }
  return false;
}

inline std::vector<Tuple> Sorted(std::vector<Tuple> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// The rows of sealed pages.
inline std::vector<Tuple> RowsOf(const RowsPlan& plan, std::span<const std::span<const std::byte>> pages,
                                 uint64_t attempt) {
  std::vector<Tuple> rows;
  for (const std::span<const std::byte> page : pages) {
    EXPECT_TRUE(plan.layout().CheckPage(page, attempt).ok());
    PageHeader header;
    std::memcpy(&header, page.data(), sizeof(header));
    for (uint32_t place = 0; place < header.rows; ++place) {
      Tuple& row = rows.emplace_back();
      for (size_t i = 0; i < plan.schema().size(); ++i) {
        const Column column = {.kind = Column::Kind::kField,
                               .width = plan.layout().field(i).width,
                               .physical = plan.layout().field(i).physical,
                               .base = page.data(),
                               .field = &plan.layout().field(i)};
        row.push_back(CellOf(column, place));
      }
    }
  }
  return rows;
}

}  // namespace nam::execution
