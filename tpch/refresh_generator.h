#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "dataset/generator.h"
#include "tpch/generator.h"

namespace nam::tpch {

/// Data of the refresh functions (2.5 … 2.7): three tables for each of n pairs RF1, RF2:
///
///     orders.tbl.u1, lineitem.tbl.u1   new orders and their lines: RF1 inserts them
///     delete.1                         keys of as many existing orders: RF2 deletes these with their lines
///
/// A pair has 1,500 orders per scale factor. New orders use keys that Generator leaves free. No order is
/// deleted by two pairs, and no inserted order is deleted. Thread-safe.
class RefreshGenerator final : public dataset::Generator {
 public:
  /// INVALID_ARGUMENT if the options are invalid, or if there are not enough orders for the pairs.
  static absl::StatusOr<std::unique_ptr<RefreshGenerator>> Make(const GeneratorOptions& options,
                                                                uint64_t pairs);

  const std::vector<dataset::Table>& tables() const override { return tables_; }
  uint64_t Units(size_t table) const override;
  uint64_t Rows(size_t table) const override;

 private:
  enum Part : size_t { kNewOrders = 0, kNewLines = 1, kDeletedKeys = 2, kParts = 3 };

  RefreshGenerator(const GeneratorOptions& options, uint64_t pairs);
  void FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                partitioner::ColumnBatch& batch) const override;
  /// The first order's number of the pair that the table belongs to.
  uint64_t FirstOrder(size_t table) const { return table / kParts * orders_per_pair_; }

  const tpch::Generator base_;
  const uint64_t orders_per_pair_;
  std::vector<dataset::Table> tables_;
};

}  // namespace nam::tpch
