#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "computeserver/batch.h"
#include "computeserver/code_select.h"
#include "computeserver/filter.h"
#include "computeserver/join_table.h"
#include "storage/block.h"

namespace nam::computeserver {

/// A probe of a unique join table by a column of the table that is streamed: a row passes if its key is
/// there. What the build side has to say is fetched later, for the rows that are left.
struct KeyLookup {
  const JoinTable* table = nullptr;
  plan::ColumnRef column;
  /// If the streamed table is split by the column as the join table is by its key: the keys of a partition
  /// are all in part (partition / divisor) % parts. Otherwise parts is 0.
  uint32_t parts = 0;
  uint32_t divisor = 1;
};

/// Chooses the rows of a block that meet all conditions on its own codes: filters, and look-ups of its keys
/// in join tables. Rows go through one condition after the other, 1,024 at a time, as a selection vector;
/// which comes first follows from what each has been seen to drop and to cost. Before that, zones and, in a
/// sorted column, binary search cut away what cannot pass. One thread.
class RowSelector {
 public:
  /// `filters` are on codes of `table`; `lookups` by its columns; `sort_column` is -1 if its blocks are not
  /// sorted. All that is referred to outlives the selector.
  RowSelector(const ColumnSpace& space, const std::vector<std::unique_ptr<Filter>>& filters,
              const std::vector<KeyLookup>& lookups, int sort_column);

  /// The codes of the sort column outside of which no row passes.
  struct CodeRange {
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;
  };
  CodeRange SortCodes() const;

  /// Begins a block whose columns are the space's sources. False if none of its rows passes.
  bool Start(const storage::BlockView& block);
  /// Rows of the block that have not been looked at yet.
  bool more() const { return next_ < end_; }
  /// Writes the numbers of those among the next 1,024 rows that pass; their number.
  uint32_t Next(uint32_t* rows);
  /// How many rows the conditions have looked at since the last call, first conditions and later ones.
  struct Work {
    uint64_t first_rows = 0;
    uint64_t later_rows = 0;
  };
  Work TakeWork();

 private:
  struct Step {
    enum class Kind : uint8_t { kRange, kSet, kLookup };
    Kind kind;
    const ColumnSpace::Column* column;
    int number;                           // of the column
    bool in_this_block = true;            // false: zones or sorting have decided it
    uint64_t low = 0, high = UINT64_MAX;  // what passes has such a code
    std::vector<uint32_t> set;            // kSet: a bit for each code
    KeyLookup lookup;                     // kLookup
    CodeTest test;                        // of the block
    double cost_ns = 1;
    double seen = 0, passed = 0;  // rows, old ones count less
    double rank() const;
  };
  bool CutBySorting(const Step& step);
  bool MayPass(const Step& step, const storage::ColumnZone& zone) const;
  void Order();
  std::vector<Step> steps_;  // in the order in which they are applied
  std::vector<const Filter*> filters_;
  const int sort_column_;
  uint32_t next_ = 0, end_ = 0;  // rows of the block
  uint32_t windows_until_order_ = 1;
  Work work_;
};

}  // namespace nam::computeserver
