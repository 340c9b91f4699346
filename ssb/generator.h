#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "partitioner/column_batch.h"
#include "ssb/schema.h"

namespace nam::ssb {

struct GeneratorOptions {
  double scale_factor = 1;  // 1 is 6,001,215 lineorder rows; fractions are fine
  uint64_t seed = 1;        // other data in the same numbers of rows
};

inline constexpr double kScaleFactorMin = 1e-6;
inline constexpr double kScaleFactorMax = 10'000;

/// INVALID_ARGUMENT for a scale factor that is no number or out of range.
absl::Status Validate(const GeneratorOptions& options);

/// The benchmark's data. Every row depends on (seed, scale factor, its number) and on nothing else, so any
/// number of threads may fill batches of any size. Where it follows the specification's text and where
/// the original generator (dbgen), and where neither:
///  - row counts: dbgen's to the row for every whole scale factor (see LineCounts); 200,000 x (1 + floor
///    log2 SF) parts from SF 1, and everything in proportion below it, at least one row each;
///  - values: dbgen's domains and formulas; customers whose key divides by three never order; the
///    random streams other than lines per order are not dbgen's;
///  - dates: see CalendarDay.
/// Thread-safe. Options must be valid.
class Generator {
 public:
  explicit Generator(const GeneratorOptions& options);

  const GeneratorOptions& options() const { return options_; }
  /// What Fill counts in: rows, but orders for lineorder.
  uint64_t Units(Table table) const { return units_[static_cast<size_t>(table)]; }
  uint64_t Rows(Table table) const;
  /// Replaces the batch's rows by those of units [first_unit, first_unit + unit_count), in order. The batch
  /// has the table's columns; its text is static or its own.
  void Fill(Table table, uint64_t first_unit, uint64_t unit_count, partitioner::ColumnBatch& batch) const;

 private:
  uint64_t Key(Table table) const;
  void FillCustomer(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillSupplier(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillPart(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillDate(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;
  void FillLineorder(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) const;

  const GeneratorOptions options_;
  std::array<uint64_t, kAllTables.size()> units_;
  mutable std::atomic<uint64_t> lineorder_rows_ = 0;  // 0: not counted yet
};

}  // namespace nam::ssb
