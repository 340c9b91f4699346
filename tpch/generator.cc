#include "tpch/generator.h"

#include <algorithm>

#include "dataset/counter_random.h"
#include "dataset/line_counts.h"
#include "dataset/vocabulary.h"
#include "tpch/order_rows.h"
#include "tpch/part_suppliers.h"
#include "tpch/text_pool.h"

namespace nam::tpch {
namespace {

constexpr uint64_t kRegionKey = 1, kNationKey = 2;  // for their random words
constexpr uint32_t kCommentLengthMin = 31, kRegionCommentLengthMax = 115, kNationCommentLengthMax = 114;

// -- The tables with the same rows at every scale factor.

void FillRegion(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) {
  for (uint64_t row = first; row < first + count; ++row) {
    batch.column(0).numbers.push_back(static_cast<int64_t>(row));
    batch.column(1).strings.push_back(dataset::Regions()[row]);
    batch.column(2).strings.push_back(
        PoolText(dataset::RowRandom(kRegionKey, row).Word(0), kCommentLengthMin, kRegionCommentLengthMax));
  }
  batch.set_rows(count);
}

void FillNation(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) {
  const auto regions = dataset::Regions();
  for (uint64_t row = first; row < first + count; ++row) {
    const dataset::Nation& nation = dataset::Nations()[row];
    batch.column(0).numbers.push_back(static_cast<int64_t>(row));
    batch.column(1).strings.push_back(nation.name);
    batch.column(2).numbers.push_back(std::find(regions.begin(), regions.end(), nation.region) -
                                      regions.begin());
    batch.column(3).strings.push_back(
        PoolText(dataset::RowRandom(kNationKey, row).Word(0), kCommentLengthMin, kNationCommentLengthMax));
  }
  batch.set_rows(count);
}

}  // namespace

Generator::Generator(const GeneratorOptions& options) : dataset::Generator(options) {
  const auto set = [&](Table table, uint64_t units) { units_[table] = units; };
  const auto scaled = [&](double rows) { return dataset::ScaledRows(rows, options.scale_factor); };
  set(kRegion, 5);
  set(kNation, 25);
  set(kSupplier, scaled(10'000));
  set(kCustomer, scaled(150'000));
  set(kPart, scaled(200'000));
  set(kPartsupp, Units(kPart));
  set(kOrders, scaled(1'500'000));
  set(kLineitem, Units(kOrders));
}

uint64_t Generator::Rows(size_t table) const {
  if (table == kPartsupp) return kSuppliersPerPart * Units(table);
  if (table != kLineitem) return Units(table);
  uint64_t rows = lineitem_rows_.load(std::memory_order_relaxed);
  if (rows == 0) {
    rows = dataset::CountLines(0, Units(table));  // the same for every thread
    lineitem_rows_.store(rows, std::memory_order_relaxed);
  }
  return rows;
}

ReferredRows Generator::ReferredByOrders() const {
  return {.customers = Units(kCustomer),
          .parts = Units(kPart),
          .suppliers = Units(kSupplier),
          .clerks = dataset::ScaledRows(1'000, options().scale_factor)};
}

void Generator::FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                         partitioner::ColumnBatch& batch) const {
  const OrderRows orders(Key(kOrders), ReferredByOrders());
  switch (static_cast<Table>(table)) {
    case kRegion:
      return FillRegion(first_unit, unit_count, batch);
    case kNation:
      return FillNation(first_unit, unit_count, batch);
    case kSupplier:
      return FillSupplier(first_unit, unit_count, batch);
    case kCustomer:
      return FillCustomer(first_unit, unit_count, batch);
    case kPart:
      return FillPart(first_unit, unit_count, batch);
    case kPartsupp:
      return FillPartsupp(first_unit, unit_count, batch);
    case kOrders:
      return orders.FillOrders(first_unit, unit_count, batch);
    case kLineitem:
      return orders.FillLineitem(first_unit, unit_count, batch);
  }
}

}  // namespace nam::tpch
