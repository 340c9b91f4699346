#include <algorithm>
#include <array>
#include <string_view>

#include "dataset/counter_random.h"
#include "dataset/line_counts.h"
#include "dataset/order_keys.h"
#include "dataset/vocabulary.h"
#include "ssb/calendar.h"
#include "ssb/generator.h"

namespace nam::ssb {
namespace {

using dataset::CountLines;
using dataset::LineCounts;
using dataset::OrderingCustomer;
using dataset::OrderPriorities;
using dataset::PartPrice;
using dataset::RandomDigits;
using dataset::RowRandom;
using dataset::ShipModes;
using dataset::SparseKey;
using partitioner::ColumnBatch;

/// The columns of a batch, in the schema's order.
struct Columns {
  Columns(ColumnBatch& batch, size_t rows) {
    size_t next = 0;
    const auto numbers = [&] {
      batch.column(next).numbers.resize(rows);
      return batch.column(next++).numbers.data();
    };
    const auto strings = [&] {
      batch.column(next).strings.resize(rows);
      return batch.column(next++).strings.data();
    };
    order_key = numbers();
    line_number = numbers();
    cust_key = numbers();
    part_key = numbers();
    supp_key = numbers();
    order_date = numbers();
    order_priority = strings();
    ship_priority = strings();
    quantity = numbers();
    extended_price = numbers();
    ord_total_price = numbers();
    discount = numbers();
    revenue = numbers();
    supply_cost = numbers();
    tax = numbers();
    commit_date = numbers();
    ship_mode = strings();
  }

  int64_t *order_key, *line_number, *cust_key, *part_key, *supp_key, *order_date;
  std::string_view *order_priority, *ship_priority;
  int64_t *quantity, *extended_price, *ord_total_price, *discount, *revenue, *supply_cost, *tax, *commit_date;
  std::string_view* ship_mode;
};

/// yyyymmdd by day number: 10 KB that stay in the nearest cache.
const std::array<int32_t, kCalendarDays>& DateKeys() {
  static const std::array<int32_t, kCalendarDays> keys = [] {
    std::array<int32_t, kCalendarDays> result;
    std::transform(Calendar().begin(), Calendar().end(), result.begin(),
                   [](const CalendarDay& day) { return day.date_key; });
    return result;
  }();
  return keys;
}

/// The values that the lines of one order share.
struct Order {
  int64_t key;
  int64_t cust_key;
  uint32_t day;
  std::string_view priority;
};

struct KeyRanges {
  uint32_t customers;
  uint32_t suppliers;
  uint32_t parts;
};

/// Fills row `at`; returns the line's part of the order's total price.
int64_t FillLine(const Columns& out, size_t at, const Order& order, uint32_t line, const RowRandom& random,
                 const KeyRanges& ranges) {
  RandomDigits keys = random.Word(1 + 2 * line);
  RandomDigits values = random.Word(2 + 2 * line);
  const uint32_t part = keys.Between(1, ranges.parts);
  const int64_t price = PartPrice(part);
  const int64_t quantity = values.Between(1, 50);
  const int64_t discount = values.Between(0, 10);
  const int64_t tax = values.Between(0, 8);
  const int64_t revenue = price * quantity * (100 - discount) / 100;

  out.order_key[at] = order.key;
  out.line_number[at] = line + 1;
  out.cust_key[at] = order.cust_key;
  out.part_key[at] = part;
  out.supp_key[at] = keys.Between(1, ranges.suppliers);
  out.order_date[at] = DateKeys()[order.day];
  out.order_priority[at] = order.priority;
  out.ship_priority[at] = "0";
  out.quantity[at] = quantity;
  out.extended_price[at] = price * quantity;
  out.discount[at] = discount;
  out.revenue[at] = revenue;
  out.supply_cost[at] = 6 * price / 10;
  out.tax[at] = tax;
  out.commit_date[at] = DateKeys()[order.day + values.Between(30, 90)];
  out.ship_mode[at] = ShipModes()[values.Below(static_cast<uint32_t>(ShipModes().size()))];
  return revenue * (100 + tax) / 100;
}

}  // namespace

void Generator::FillLineorder(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t rows = CountLines(first, count);
  const Columns out(batch, rows);
  const uint64_t key = Key(Table::kLineorder);
  const KeyRanges ranges = {static_cast<uint32_t>(Units(Table::kCustomer)),
                            static_cast<uint32_t>(Units(Table::kSupplier)),
                            static_cast<uint32_t>(Units(Table::kPart))};
  LineCounts line_counts(first);
  size_t at = 0;
  for (uint64_t number = first; number < first + count; ++number) {
    const RowRandom random(key, number);
    RandomDigits digits = random.Word(0);
    const Order order = {
        .key = static_cast<int64_t>(SparseKey(number + 1)),
        .cust_key = OrderingCustomer(digits.Between(1, ranges.customers), ranges.customers),
        .day = digits.Below(kOrderDays),
        .priority = OrderPriorities()[digits.Below(static_cast<uint32_t>(OrderPriorities().size()))],
    };
    const size_t order_start = at;
    const uint32_t lines = line_counts.Next();
    int64_t total = 0;
    for (uint32_t line = 0; line < lines; ++line) total += FillLine(out, at++, order, line, random, ranges);
    std::fill(out.ord_total_price + order_start, out.ord_total_price + at, total);
  }
  batch.set_rows(rows);
}

}  // namespace nam::ssb
