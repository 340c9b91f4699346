#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataset/generator.h"
#include "partitioner/column_batch.h"
#include "ssb/schema.h"

namespace nam::ssb {

/// Scale factor 1 has 6,001,215 lineorder rows.
using GeneratorOptions = dataset::GeneratorOptions;

/// The benchmark's data. It combines the specification's text and the original generator (dbgen):
///  - row counts: exactly dbgen's for every integral scale factor (see LineCounts); 200,000 x (1 + floor log2
///    SF) parts from SF 1 on; below, everything in proportion, at least one row each;
///  - values: dbgen's domains and formulas; customers whose key is a multiple of three never order; the
///    random streams differ from dbgen's, except lines per order;
///  - dates: see CalendarDay.
/// Thread-safe. Options must be valid.
class Generator final : public dataset::Generator {
 public:
  explicit Generator(const GeneratorOptions& options);

  const std::vector<dataset::Table>& tables() const override { return Tables(); }
  /// Orders for lineorder.
  uint64_t Units(size_t table) const override { return units_[table]; }
  uint64_t Rows(size_t table) const override;

 private:
  void FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                partitioner::ColumnBatch& batch) const override;
  void FillCustomer(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillSupplier(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillPart(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillDate(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillLineorder(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;

  std::array<uint64_t, kAllTables.size()> units_;
  mutable std::atomic<uint64_t> lineorder_rows_ = 0;  // 0: not counted yet
};

}  // namespace nam::ssb
