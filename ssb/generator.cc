#include "ssb/generator.h"

#include <cmath>

#include "dataset/line_counts.h"
#include "ssb/calendar.h"

namespace nam::ssb {
namespace {

uint64_t PartCount(double scale_factor) {
  if (scale_factor < 1) return dataset::ScaledRows(200'000, scale_factor);
  return 200'000 * (1 + static_cast<uint64_t>(std::ilogb(scale_factor)));  // ilogb is floor(log2), exactly
}

}  // namespace

Generator::Generator(const GeneratorOptions& options) : dataset::Generator(options) {
  const auto set = [&](Table table, uint64_t units) { units_[table] = units; };
  set(Table::kCustomer, dataset::ScaledRows(30'000, options.scale_factor));
  set(Table::kSupplier, dataset::ScaledRows(2'000, options.scale_factor));
  set(Table::kPart, PartCount(options.scale_factor));
  set(Table::kDate, kCalendarDays);
  set(Table::kLineorder, dataset::ScaledRows(1'500'000, options.scale_factor));
}

uint64_t Generator::Rows(size_t table) const {
  if (table != kLineorder) return Units(table);
  uint64_t rows = lineorder_rows_.load(std::memory_order_relaxed);
  if (rows == 0) {
    rows = dataset::CountLines(0, Units(table));  // the same for every thread
    lineorder_rows_.store(rows, std::memory_order_relaxed);
  }
  return rows;
}

void Generator::FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                         partitioner::ColumnBatch& batch) const {
  switch (static_cast<Table>(table)) {
    case kCustomer:
      return FillCustomer(first_unit, unit_count, batch);
    case kSupplier:
      return FillSupplier(first_unit, unit_count, batch);
    case kPart:
      return FillPart(first_unit, unit_count, batch);
    case kDate:
      return FillDate(first_unit, unit_count, batch);
    case kLineorder:
      return FillLineorder(first_unit, unit_count, batch);
  }
}

}  // namespace nam::ssb
