#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "execution/column.h"

namespace nam::execution {

/// The maximum number of tuples in a chunk.
inline constexpr uint32_t kChunkRows = 1024;

/// Ascending positions of a chunk: positions[0 … count), or 0 … count - 1 if there is no array.
struct Selection {
  const uint32_t* positions = nullptr;
  uint32_t count = 0;

  uint32_t operator[](uint32_t i) const { return positions == nullptr ? i : positions[i]; }
};

/// Calls `body(position)` for each selected position. Two loops, so that neither tests the form.
template <typename Body>
void ForEach(Selection selection, Body&& body) {
  if (selection.positions == nullptr) {
    for (uint32_t i = 0; i < selection.count; ++i) body(i);
  } else {
    for (uint32_t i = 0; i < selection.count; ++i) body(selection.positions[i]);
  }
}

/// Up to kChunkRows tuples that move through a pipeline together.
///
///     columns   0: kCodes rows=A   1: kCodes rows=A   2: kField rows=B   3: kValues rows=nullptr
///     row sets  A: 17 18 40 …      B: 5 kNullRow 5 …
///     selection 0 2 …              ascending positions that are still alive; none: all
///
/// The task that fills it makes it once, for the schema of the plan, and refills it for each chunk. The
/// producer owns the memory behind the columns and keeps it until it is asked again. A filter shortens the
/// selection and copies nothing. Used by one task.
class Chunk {
 public:
  /// Places of a row set, with room for what a vectorized store writes beyond the last row.
  static constexpr uint32_t kRowSetPlaces = 2 * kChunkRows + 16;

  Chunk(size_t columns, size_t row_sets) : columns_(columns) {
    for (size_t i = 0; i < row_sets; ++i) row_sets_.push_back(std::make_unique<RowSet>());
  }

  uint32_t size() const { return size_; }
  /// The alive positions.
  Selection selection() const { return selection_; }
  void SelectAll(uint32_t rows) {
    size_ = rows;
    selection_ = {nullptr, rows};
  }
  /// `positions` are ascending, below size() and live as long as the chunk's columns.
  void Select(const uint32_t* positions, uint32_t count) { selection_ = {positions, count}; }
  /// As `Select`, with the size, for a chunk under construction.
  void Reset(uint32_t rows, Selection selection) {
    size_ = rows;
    selection_ = selection;
  }

  std::vector<Column>& columns() { return columns_; }
  const std::vector<Column>& columns() const { return columns_; }
  const Column& column(uint32_t slot) const { return columns_[slot]; }

  /// Row numbers for the columns of one table; aligned to a cache line.
  uint32_t* row_set(size_t i) { return row_sets_[i]->rows; }
  size_t row_sets() const { return row_sets_.size(); }

 private:
  struct alignas(64) RowSet {
    uint32_t rows[kRowSetPlaces];
  };
  uint32_t size_ = 0;
  Selection selection_;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<RowSet>> row_sets_;
};

}  // namespace nam::execution
