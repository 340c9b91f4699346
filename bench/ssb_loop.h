#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "fabric/fabric.h"
#include "ssb/schema.h"
#include "types/value.h"

namespace nam::bench {

/// Four of the queries, hand-written: one pass over dense arrays in row order, dimensions as arrays by key,
/// with a share of the rows and separate sums per thread. No partitions, no skipping, no SIMD beyond the
/// compiler's. Nearly the bare machine.
///
///     a row   Q1.1  date 2, quantity 1, discount 1, extended price 4                   8 bytes
///             Q2.1  part 4, supplier 2, date 2, revenue 4                             12
///             Q3.1  customer 4, supplier 2, date 2, revenue 4                         12
///             Q4.1  customer 4, part 4, supplier 2, date 2, revenue 4, supply cost 4  20
class SsbLoop {
 public:
  struct Answer {
    std::vector<std::vector<Value>> rows;  // columns as in the SQL text; in any order
    double elapsed_ms = 0;                 // includes starting and joining threads
  };

  /// Q1.1, Q2.1, Q3.1, Q4.1.
  static bool Has(std::string_view query);
  /// Supplier keys have two bytes.
  static bool Fits(double scale_factor) { return scale_factor <= 32; }

  static absl::StatusOr<std::unique_ptr<SsbLoop>> Load(fabric::Fabric& fabric,
                                                       const dataset::Generator& generator,
                                                       const dataset::WorkOptions& work);
  /// Requires Has(query).
  Answer Run(std::string_view query, int threads) const;

 private:
  using Sums = std::vector<int64_t>;
  using Batch = partitioner::ColumnBatch;

  explicit SsbLoop(fabric::Fabric& fabric) : fabric_(fabric) {}
  absl::Status LoadTable(const dataset::Generator& generator, ssb::Table table,
                         const dataset::WorkOptions& work);
  absl::Status Take(ssb::Table table, const Batch& batch);
  void TakeCustomer(const Batch& batch);
  void TakeSupplier(const Batch& batch);
  void TakePart(const Batch& batch);
  void TakeDate(const Batch& batch);
  void TakeLineorder(const Batch& batch);
  int16_t DayOf(int64_t date_key) const;

  /// Calls `body(first, last, sums)` for each thread's share of the rows; returns the total sums.
  template <typename Body>
  Sums InParallel(int threads, size_t groups, const Body& body) const;
  Sums RunQ11(int threads) const;
  Sums RunQ21(int threads) const;
  Sums RunQ31(int threads) const;
  Sums RunQ41(int threads) const;

  fabric::Fabric& fabric_;

  // Dimensions, by key.
  std::vector<int8_t> customer_nation_, customer_region_;
  std::vector<int8_t> supplier_nation_, supplier_region_;
  std::vector<int8_t> part_manufacturer_, part_category_;
  std::vector<int16_t> part_brand_;
  // Days count from the first one of the date table.
  std::vector<int16_t> day_of_key_;  // by date key less kFirstDateKey
  std::vector<int8_t> year_;         // less kFirstYear, by day
  // Lineorder.
  std::vector<int32_t> customer_, part_;
  std::vector<uint16_t> supplier_;
  std::vector<int16_t> day_;
  std::vector<int8_t> quantity_, discount_;
  std::vector<int32_t> extended_price_, revenue_, supply_cost_;
  size_t rows_ = 0;
  std::atomic<size_t> rows_taken_ = 0;  // places for loading threads
};

}  // namespace nam::bench
