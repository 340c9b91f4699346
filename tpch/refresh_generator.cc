#include "tpch/refresh_generator.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "dataset/line_counts.h"
#include "dataset/order_keys.h"
#include "tpch/order_rows.h"

namespace nam::tpch {
namespace {

constexpr double kOrdersPerPair = 1'500;
/// Offset from an existing order's key to the new order's, past the eight used keys.
constexpr uint64_t kKeyOffset = 8;

dataset::Table NumberedTable(Table table, uint64_t pair) {
  dataset::Table numbered = dataset::MakeTable(Schema(table));
  numbered.file_names = {absl::StrCat(numbered.schema.name, ".tbl.u", pair)};
  return numbered;
}

dataset::Table DeletedKeys(uint64_t pair) {
  return {.schema = {.name = "delete", .columns = {Schema(kOrders).columns[0]}},
          .file_names = {absl::StrCat("delete.", pair)}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RefreshGenerator>> RefreshGenerator::Make(const GeneratorOptions& options,
                                                                         uint64_t pairs) {
  NAM_RETURN_IF_ERROR(dataset::Validate(options));
  const uint64_t orders = tpch::Generator(options).Units(kOrders);
  const uint64_t pairs_max = orders / dataset::ScaledRows(kOrdersPerPair, options.scale_factor);
  if (pairs < 1 || pairs > pairs_max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("there are 1 to %d pairs of refresh functions at scale factor %g, not %d", pairs_max,
                        options.scale_factor, pairs));
  }
  return absl::WrapUnique(new RefreshGenerator(options, pairs));
}

RefreshGenerator::RefreshGenerator(const GeneratorOptions& options, uint64_t pairs)
    : dataset::Generator(options),
      base_(options),
      orders_per_pair_(dataset::ScaledRows(kOrdersPerPair, options.scale_factor)) {
  for (uint64_t pair = 1; pair <= pairs; ++pair) {
    tables_.push_back(NumberedTable(kOrders, pair));
    tables_.push_back(NumberedTable(kLineitem, pair));
    tables_.push_back(DeletedKeys(pair));
  }
}

uint64_t RefreshGenerator::Units(size_t) const {
  return orders_per_pair_;
}

uint64_t RefreshGenerator::Rows(size_t table) const {
  return table % kParts == kNewLines ? dataset::CountLines(FirstOrder(table), orders_per_pair_)
                                     : orders_per_pair_;
}

void RefreshGenerator::FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                                partitioner::ColumnBatch& batch) const {
  const uint64_t first = FirstOrder(table) + first_unit;
  const OrderRows orders(MixBits(~Key(kNewOrders)), base_.ReferredByOrders(), kKeyOffset);
  switch (static_cast<Part>(table % kParts)) {
    case kNewOrders:
      return orders.FillOrders(first, unit_count, batch);
    case kNewLines:
      return orders.FillLineitem(first, unit_count, batch);
    default:
      for (uint64_t number = first; number < first + unit_count; ++number)
        batch.column(0).numbers.push_back(static_cast<int64_t>(dataset::SparseKey(number + 1)));
      batch.set_rows(unit_count);
  }
}

}  // namespace nam::tpch
