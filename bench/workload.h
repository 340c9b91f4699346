#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/tuple_table.h"
#include "bench/turns.h"
#include "terminal/json_report.h"

namespace nam::bench {

/// A query over one benchmark's tables, with data for one case at a time. Used by one thread.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual size_t cases() const = 0;
  /// `16M tuples, selectivity 0.5`.
  virtual std::string TitleOf(size_t index) const = 0;
  /// The case's settings as columns of the report.
  virtual Json SettingsOf(size_t index) const = 0;
  /// Tuples of all tables, the measure of speed.
  virtual uint64_t TuplesOf(size_t index) const = 0;
  /// A query the same for all cases and all SQL systems.
  virtual std::string sql() const = 0;

  /// Replaces the previous case's data by this case's.
  virtual void Make(size_t index) = 0;
  // Parts of the current case:
  virtual std::vector<TupleTable> tables() const = 0;
  /// Computed without the measured algorithms.
  virtual Rows Expected() const = 0;
  /// Frees the data.
  virtual void Drop() = 0;
};

}  // namespace nam::bench
