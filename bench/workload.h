#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/tuple_table.h"
#include "bench/turns.h"
#include "terminal/json_report.h"

namespace nam::bench {

/// A query over tables of one benchmark, and the data that it is asked of, one case after the other. Holds
/// the data of one case at a time. Used by one thread.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual size_t cases() const = 0;
  /// `16M tuples, selectivity 0.5`.
  virtual std::string TitleOf(size_t index) const = 0;
  /// The same as columns of the report.
  virtual Json SettingsOf(size_t index) const = 0;
  /// Tuples of all tables, by which speed is told.
  virtual uint64_t TuplesOf(size_t index) const = 0;
  /// Has an answer of a single row, and is the same for all cases and for all that speak SQL.
  virtual std::string sql() const = 0;

  /// Whether MakeBound makes one.
  virtual bool has_bound() const = 0;

  /// Makes the data of a case in place of the one before.
  virtual void Make(size_t index) = 0;
  // What the case that was made last consists of:
  virtual std::vector<TupleTable> tables() const = 0;
  /// Not by the algorithms that are measured.
  virtual Answer Expected() const = 0;
  /// A loop by hand that answers the same, if there is one; holds memory as long as it lives.
  virtual std::optional<Contender> MakeBound() = 0;
  /// Frees the data and what the bound holds.
  virtual void Drop() = 0;
};

}  // namespace nam::bench
