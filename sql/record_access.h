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

/// How the rows of one record table that meet a WHERE are found.
struct AccessPath {
  static constexpr int kPrimaryKey = -1;

  std::vector<std::string> keys;  // rows by their whole key; none twice
  /// RecordStorage.parts[index]: rows by ranges of an ordered index; kPrimaryKey: of the whole table, those
  /// in ranges of the key.
  int index = kPrimaryKey;
  std::vector<KeyRange> ranges;           // disjoint, ascending; the whole table is one range without bounds
  std::vector<const plan::Expr*> filter;  // conjuncts that rows found so may still fail; borrowed
  bool ordered = false;                   // rows come in the order that was wished for
  // No keys and no ranges: no row can meet the conditions.

  bool scan() const { return index == kPrimaryKey && !ranges.empty(); }
  bool nothing() const { return keys.empty() && ranges.empty(); }
};

/// What else counts in the choice of a path.
struct AccessWishes {
  /// Indexes that are not complete for this snapshot are not used.
  uint64_t snapshot = ~uint64_t{0};
  /// Columns, the most significant first, in whose ascending order rows would be welcome. Empty: any.
  std::vector<uint32_t> order;
  /// More combinations of points than these are no gain over a range with a filter.
  size_t most_points = 1024;
};

/// Chooses by rule: all columns of the key are given; else the ordered index of which the longest prefix is
/// given, with a range behind it; else one that has the order; else the whole table. A column is given by =
/// and by IN, a range by comparisons with constants and by IS [NOT] NULL. Conjuncts are over columns of table
/// 0.
AccessPath ChooseAccessPath(const proto::Table& table, const partitioner::RecordLayout& layout,
                            const std::vector<plan::Expr>& conjuncts, const AccessWishes& wishes = {});

/// The path in words, for EXPLAIN.
std::string Describe(const proto::Table& table, const AccessPath& path);

}  // namespace nam::sql
