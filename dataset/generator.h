#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "dataset/table.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

struct GeneratorOptions {
  double scale_factor = 1;  // may be fractional
  uint64_t seed = 1;        // selects other data with the same row counts
};

inline constexpr double kScaleFactorMin = 1e-6;
inline constexpr double kScaleFactorMax = 10'000;

/// INVALID_ARGUMENT if the scale factor is not a number or out of range.
absl::Status Validate(const GeneratorOptions& options);

/// `per_scale_factor` rows at scale factor 1, proportional at others, at least one.
uint64_t ScaledRows(double per_scale_factor, double scale_factor);

/// A benchmark's data. Every row depends only on the options and on its number, so any number of threads may
/// fill batches of any size. Tables are identified by their index in tables(). Thread-safe.
class Generator {
 public:
  explicit Generator(const GeneratorOptions& options);
  virtual ~Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  const GeneratorOptions& options() const { return options_; }
  /// In loading order. Lives forever.
  virtual const std::vector<Table>& tables() const = 0;
  /// The unit of Fill: rows, or orders with several rows each.
  virtual uint64_t Units(size_t table) const = 0;
  virtual uint64_t Rows(size_t table) const = 0;
  /// Replaces the batch's rows by those of units [first_unit, first_unit + unit_count), in order. The batch
  /// has the table's columns. Its text is static, the generator's, or its own.
  void Fill(size_t table, uint64_t first_unit, uint64_t unit_count, partitioner::ColumnBatch& batch) const;

 protected:
  /// The key of the table's random words.
  uint64_t Key(size_t table) const;
  virtual void FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                        partitioner::ColumnBatch& batch) const = 0;

 private:
  const GeneratorOptions options_;
};

}  // namespace nam::dataset
