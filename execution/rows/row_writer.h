#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "execution/expression/program.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// Writes tuples of chunks as rows, column by column. Codes of numbers, and codes of a field's own meaning,
/// are written as they are, without a load in between. One thread and one page at a time.
class RowWriter {
 public:
  /// Field i of the layout is output i of the program. Both outlive the writer.
  RowWriter(const RowLayout& layout, const Program& program);

  /// Goes on in this page, which the caller owns: a new one, or one that has rows already. Its place 0 has
  /// this row number.
  void Open(std::byte* page, uint32_t first_row_number);
  /// Appends the selected tuples from rows[done] on, as many as fit, and adds them to `done`. Their row
  /// numbers go to numbers[0 …), if that is not nullptr. False: the frame has the error. The page is full if
  /// `done` is still below rows.count.
  ///
  /// A row lies in one page with its texts: one that fits none is refused with 54000 (docs/operations.md).
  /// A number outside of the plan's bounds, or a NULL where the plan has none, is XX000.
  bool Append(Frame& frame, const Chunk& chunk, Selection rows, uint32_t& done, uint32_t* numbers);

 private:
  /// rows[done] and those behind it, at most `most`.
  Selection Next(Selection rows, uint32_t done, uint32_t most);
  /// Finds for each field where its values come from. False: the frame has the error.
  bool Evaluate(Frame& frame, const Chunk& chunk, Selection rows);
  /// The column whose codes are written as they are; nullptr: it is evaluated.
  const Column* CodesFor(size_t field, const Chunk& chunk) const;
  /// How many of the rows the page takes with their texts. 0: the next one needs another page, or the frame
  /// has the error.
  uint32_t RowsThatFit(Frame& frame, Selection rows);
  bool WritePairs(std::byte* first, Selection rows);
  /// False if a value is none of the field's.
  bool WriteField(size_t field, std::byte* first, Selection rows);

  const RowLayout& layout_;
  const Program& program_;
  std::vector<std::optional<uint32_t>> slots_;  // by field: what its output is a slot of
  std::vector<size_t> texts_;                   // fields
  std::byte* page_ = nullptr;
  uint32_t first_row_number_ = 0;
  // Of one call.
  std::vector<const Column*> codes_;    // by field: written from here …
  std::vector<const Vector*> vectors_;  // … or else from here
  std::vector<uint32_t> positions_;     // what is left of a chunk without a selection
  std::vector<uint64_t> bytes_;         // of each row with its texts
};

}  // namespace nam::execution
