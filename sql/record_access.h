#pragma once

#include <string>
#include <vector>

#include "proto/catalog.pb.h"
#include "sql/expression.h"
#include "sql/record_row.h"

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

  std::vector<std::string> keys;    // rows by their whole key; none twice
  int index = kPrimaryKey;          // what ranges are of: the key, or RecordStorage.parts[index]
  std::vector<KeyRange> ranges;     // disjoint, ascending; the whole table is one range without bounds
  std::vector<const Expr*> filter;  // conjuncts that rows found so may still fail; borrowed
  // No keys and no ranges: no row can meet the conditions.
};

/// Chooses by rule: all columns of the key are given; else the longest prefix of the key or of an ordered
/// index that is given, with a range behind it; else the whole table. A column is given by = and by IN, a
/// range by comparisons with constants and by IS [NOT] NULL. Conjuncts are over columns of table 0.
AccessPath ChooseAccessPath(const proto::Table& table, const RecordLayout& layout,
                            const std::vector<Expr>& conjuncts);

}  // namespace nam::sql
