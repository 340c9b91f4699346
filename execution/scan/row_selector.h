#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "execution/column.h"
#include "execution/expression/code_condition.h"
#include "execution/join/direct_table.h"
#include "execution/scan/code_select.h"
#include "storage/block.h"

namespace nam::execution {

/// A probe of a unique direct table by a column of the streamed table: a row passes if its key is there. The
/// build side's payload is fetched later, for the remaining rows.
struct KeyLookup {
  const DirectTable* table = nullptr;
  uint32_t slot = 0;  // among the scan's columns
  /// If the streamed table is split by the column as the build side is by its key: the keys of a partition
  /// are all in part (partition / divisor) % parts. Otherwise parts is 0.
  uint32_t parts = 0;
  uint32_t divisor = 1;
};

/// Counts of rows that conditions have tested.
struct ConditionCounts {
  struct Lookup {
    uint64_t rows = 0;  // whose keys were looked up
    uint64_t found = 0;
  };
  uint64_t dropped = 0;  // by conditions on the table alone, including rows of skipped blocks
  std::vector<Lookup> lookups;

  void Add(const ConditionCounts& more);
};

/// A column that a scan reads, as one group of chains encodes it.
struct ScanColumn {
  uint32_t number = 0;  // in the table's blocks
  const CodeMeaning* meaning = nullptr;
};

/// A condition on the codes of one of the scan's columns, for one group of chains.
struct SlotCondition {
  uint32_t slot = 0;
  CodeCondition codes;
};

/// Selects the rows of a block that meet all conditions on its own codes: filters, and look-ups of its keys
/// in join tables. Rows go through one condition after the other, 1,024 at a time, as a selection vector; the
/// order follows from what each was seen to drop and to cost. First, zones and, in a sorted column, binary
/// search cut away what cannot pass. For the blocks of one group of chains. One thread.
class RowSelector {
 public:
  /// `sort_column` is the number of the column by which blocks are sorted, -1 if they are not. Conditions,
  /// meanings and tables outlive the selector. Tables of look-ups are complete.
  RowSelector(std::span<const ScanColumn> columns, std::span<const SlotCondition> conditions,
              std::span<const KeyLookup> lookups, int sort_column);

  /// The range of the sort column's codes that may pass.
  struct CodeRange {
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;
  };
  CodeRange SortCodes() const;

  /// Begins a block, which stays until its last row has been tested. False if none of its rows passes.
  bool Start(const storage::BlockView& block);
  /// Whether untested rows of the block are left.
  bool more() const { return next_ < end_; }
  /// Tests the next 1,024 rows and writes the numbers of those that pass, into kChunkRows places; returns
  /// their number.
  uint32_t Next(uint32_t* rows);
  /// The rows that conditions have tested since the last call, in first conditions and later ones.
  struct Work {
    uint64_t first_rows = 0;
    uint64_t later_rows = 0;
  };
  Work TakeWork();
  /// Since construction. A row that an earlier condition has dropped reaches no later one, so counts depend
  /// on the order that the selector has chosen.
  const ConditionCounts& counts() const { return counts_; }

 private:
  struct Step {
    enum class Kind : uint8_t { kRange, kSet, kLookup };
    Kind kind;
    uint32_t number;                      // the column's
    int lookup_number = -1;               // the lookup's; -1: a condition
    CodePage page = {};                   // the block's
    bool in_this_block = true;            // false: zones or sorting have decided it
    uint64_t low = 0, high = UINT64_MAX;  // bounds of passing codes
    KeyLookup lookup = {};                // kLookup
    CodeTest test = {};                   // the block's
    double cost_ns = 1;
    double seen = 0, passed = 0;  // rows, old ones weigh less
    double rank() const;
  };
  struct Zoned {
    uint32_t number;
    const CodeCondition* codes;
  };
  Step& Add(Step::Kind kind, uint32_t number, double passing, double cost_ns);
  void AddLookup(const KeyLookup& lookup, int number, const ScanColumn& column);
  bool CutBySorting(const Step& step);
  bool MayPass(const Step& step, const storage::ColumnZone& zone) const;
  void Order();
  void CountDropped(const Step& step, uint64_t rows);
  std::vector<Step> steps_;  // in their order of application
  std::vector<Zoned> conditions_;
  const int sort_column_;
  uint32_t next_ = 0, end_ = 0;  // rows of the block
  uint32_t windows_until_order_ = 1;
  Work work_;
  ConditionCounts counts_;
};

}  // namespace nam::execution
