#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "dataset/table.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

struct GeneratorOptions {
  double scale_factor = 1;  // fractions are fine
  uint64_t seed = 1;        // other data in the same numbers of rows
};

inline constexpr double kScaleFactorMin = 1e-6;
inline constexpr double kScaleFactorMax = 10'000;

/// INVALID_ARGUMENT for a scale factor that is no number or out of range.
absl::Status Validate(const GeneratorOptions& options);

/// `per_scale_factor` rows at scale factor 1, in proportion at others, at least one.
uint64_t ScaledRows(double per_scale_factor, double scale_factor);

/// A benchmark's data. Every row depends on the options and on its number, and on nothing else, so any number
/// of threads may fill batches of any size. Tables are told by their place in tables(). Thread-safe.
class Generator {
 public:
  explicit Generator(const GeneratorOptions& options);
  virtual ~Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  const GeneratorOptions& options() const { return options_; }
  /// In the order in which they are loaded. Lives forever.
  virtual const std::vector<Table>& tables() const = 0;
  /// What Fill counts in: rows, or orders of which each has several rows.
  virtual uint64_t Units(size_t table) const = 0;
  virtual uint64_t Rows(size_t table) const = 0;
  /// Replaces the batch's rows by those of units [first_unit, first_unit + unit_count), in order. The batch
  /// has the table's columns; its text is static, the generator's or its own.
  void Fill(size_t table, uint64_t first_unit, uint64_t unit_count, partitioner::ColumnBatch& batch) const;

 protected:
  /// Of the table's random words.
  uint64_t Key(size_t table) const;
  virtual void FillRows(size_t table, uint64_t first_unit, uint64_t unit_count,
                        partitioner::ColumnBatch& batch) const = 0;

 private:
  const GeneratorOptions options_;
};

}  // namespace nam::dataset
