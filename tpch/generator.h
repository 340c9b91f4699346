#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataset/generator.h"
#include "partitioner/column_batch.h"
#include "tpch/order_rows.h"
#include "tpch/schema.h"

namespace nam::tpch {

/// Scale factor 1 has 6,001,215 rows of lineitem.
using GeneratorOptions = dataset::GeneratorOptions;

/// The benchmark's data, by the specification's clauses 4.2.2 and 4.2.3:
///  - row counts: exactly dbgen's for every integral scale factor, proportional at others, at least one row;
///  - values: the specification's domains and formulas; the random streams differ from dbgen's, except
///    lines per order;
///  - text: see TextPool.
/// Below scale factor 0.0004 a part's four suppliers are not all different. Thread-safe. Options must be
/// valid.
class Generator final : public dataset::Generator {
 public:
  explicit Generator(const GeneratorOptions& options);

  const std::vector<dataset::Table>& tables() const override { return Tables(); }
  /// Orders for lineitem, parts for partsupp; otherwise rows.
  uint64_t Units(size_t table) const override { return units_[table]; }
  uint64_t Rows(size_t table) const override;
  ReferredRows ReferredByOrders() const;

 private:
  void FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                partitioner::ColumnBatch& batch) const override;
  void FillSupplier(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillCustomer(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillPart(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillPartsupp(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;

  std::array<uint64_t, kAllTables.size()> units_;
  mutable std::atomic<uint64_t> lineitem_rows_ = 0;  // 0: not counted yet
};

}  // namespace nam::tpch
