#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "tests/cluster/oracle.h"
#include "tests/random_joins/draw.h"

namespace nam::testing {

/// Columns of one family have values that can be equal: they are joined with each other, whatever their types
/// and widths.
enum class Family : uint8_t { kNumber, kWideNumber, kText, kDate, kBool };

/// A column of every table.
struct RandomColumn {
  const char* name;
  Type type;
  Family family;
};

/// `id` is unique, `k` an integer, `l` a bigint of the same values, `j` a bigint of large ones, `n` and `m`
/// decimals of different scales, `s` and `t` texts of different lengths, `c` a char(6), `d` a date, `b` a
/// boolean, `v` a measure that no join compares.
const std::vector<RandomColumn>& RandomColumns();

/// A set of tables t0, t1, …: empty ones, small ones, some of many chunks and pages; keys evenly spread,
/// skewed, or with a heavy hitter; NULLs in some columns. Decimals are multiples of 1/4 and 1/8, so that
/// doubles hold them, their products and their sums exactly.
class RandomTables {
 public:
  RandomTables(uint64_t seed, uint64_t set);

  const std::vector<SmallTable>& tables() const { return tables_; }
  uint64_t rows() const;
  /// Replaces the cluster's tables.
  absl::Status LoadInto(catalog::Attachment& attachment) const;
  /// The same for SQLite, with indexes, since it joins by loops.
  void LoadInto(class SqlitePeer& sqlite) const;
  /// One line per table: its rows, and their layout.
  std::string Describe() const;

 private:
  struct Layout {
    uint32_t block_bytes = 0;
    uint32_t pointer_group = 0;
  };
  static SmallTable Make(Draw& draw, const std::string& name, uint64_t rows, uint64_t domain);

  std::vector<SmallTable> tables_;
  std::vector<Layout> layouts_;  // of each table
};

}  // namespace nam::testing
