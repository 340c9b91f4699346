#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "execution/chunk.h"

namespace nam::execution {

/// Columns of one chunk along positions of it, in any order and any number of times, as columns of another:
///
///     input   column a: rows A    column b: flat       output  a: rows A[positions]   b: rows positions
///
/// Copies only row numbers. One task.
class ColumnsAlong {
 public:
  /// `input_row_sets`: an upper bound of distinct row sets among the input's columns.
  explicit ColumnsAlong(uint32_t input_row_sets) { sources_.reserve(input_row_sets); }

  /// Sets columns 0, 1, … of `out` to the slots of `in` along positions[from, end), at these places of the
  /// output. Its row sets from `first_set` on are for the input's, one each. Places before `from` keep their
  /// values.
  void Gather(const Chunk& in, std::span<const uint32_t> slots, const uint32_t* positions, uint32_t from,
              uint32_t end, size_t first_set, Chunk& out) {
    sources_.clear();
    for (size_t i = 0; i < slots.size(); ++i) {
      Column& column = out.columns()[i];
      column = in.column(slots[i]);
      if (column.kind == Column::Kind::kConstant) continue;
      if (column.rows == nullptr) {
        column.rows = positions;
        continue;
      }
      const auto known = std::find(sources_.begin(), sources_.end(), column.rows);
      const size_t set = first_set + static_cast<size_t>(known - sources_.begin());
      NAM_CHECK(set < out.row_sets());
      uint32_t* const rows = out.row_set(set);
      if (known == sources_.end()) {
        for (uint32_t place = from; place < end; ++place) rows[place] = column.rows[positions[place]];
        sources_.push_back(column.rows);
      }
      column.rows = rows;
    }
  }

 private:
  std::vector<const uint32_t*> sources_;  // row sets of the input that the output already has
};

}  // namespace nam::execution
