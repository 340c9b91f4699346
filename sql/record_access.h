#pragma once

#include <string>
#include <vector>

#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "proto/table.pb.h"

namespace nam::sql {

/// Keys of rows, or of an index, from `low` on and below `high`, in the order of bytes.
struct KeyRange {
  std::string low;
  std::string high;  // empty: no bound
  bool operator==(const KeyRange&) const = default;
};

/// A path that leads to all rows of one record table that meet a WHERE.
struct AccessPath {
  static constexpr int kPrimaryKey = -1;

  std::vector<std::string> keys;  // rows by their whole key; no duplicates
  /// RecordStorage.parts[index]: rows by ranges of an ordered index; kPrimaryKey: rows of the whole table in
  /// ranges of the key.
  int index = kPrimaryKey;
  std::vector<KeyRange> ranges;           // disjoint, ascending; the whole table is one range without bounds
  std::vector<const plan::Expr*> filter;  // conjuncts that the path does not ensure; borrowed
  bool ordered = false;                   // rows come in the wished order
  // No keys and no ranges: no row can meet the conditions.

  bool scan() const { return index == kPrimaryKey && !ranges.empty(); }
  bool nothing() const { return keys.empty() && ranges.empty(); }
};

/// Further criteria for a path.
struct AccessWishes {
  /// Excludes indexes that are not complete for this snapshot.
  uint64_t snapshot = ~uint64_t{0};
  /// A wish for ascending order by these columns, the most significant first. Empty: any order.
  std::vector<uint32_t> order;
  /// The most combinations of key values to look up one by one. Beyond it a range with a filter is as good.
  size_t most_points = 1024;
};

/// Chooses by rule: all columns of the key are given; else the ordered index with the longest given prefix,
/// and a range after it; else one that has the order; else the whole table. A column is given by = and by IN,
/// a range by comparisons with constants and by IS [NOT] NULL. Conjuncts are over columns of table 0.
AccessPath ChooseAccessPath(const proto::Table& table, const partitioner::RecordLayout& layout,
                            const std::vector<plan::Expr>& conjuncts, const AccessWishes& wishes = {});

/// Describes the path, for EXPLAIN.
std::string Describe(const proto::Table& table, const AccessPath& path);

}  // namespace nam::sql
