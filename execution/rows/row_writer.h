#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "execution/expression/program.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {

/// Writes tuples of chunks as rows, column by column. Codes of numbers, and codes of a field's own meaning,
/// are copied without a load. One thread and one page at a time.
class RowWriter {
 public:
  /// Field i of the layout is output i of the program. Both outlive the writer.
  RowWriter(const RowLayout& layout, const Program& program);

  /// Continues in this page, which the caller owns: a new one, or one that has rows already. Its place 0 has
  /// this row number.
  void Open(std::byte* page, uint32_t first_row_number);
  /// Appends the selected tuples from rows[done] on, as many as fit, and adds them to `done`. Their row
  /// numbers go to numbers[0 …), if that is not nullptr. False: the frame has the error. The page is full if
  /// `done` is still below rows.count.
  ///
  /// A row lies in one page with its texts. A text of more than kTextBytesMax, or a row that fits no long
  /// page, is refused with 54000 (docs/operations.md). A number outside of the plan's bounds, or a NULL where
  /// the plan has none, is XX000.
  bool Append(Frame& frame, const Chunk& chunk, Selection rows, uint32_t& done, uint32_t* numbers);
  /// How large the next page must be, after Append has found the page full: page_bytes(), or the size of a
  /// long page, for a row that fits no other.
  uint32_t next_page_bytes() const { return next_page_bytes_; }

 private:
  /// rows[done] and later ones, at most `most`.
  Selection Next(Selection rows, uint32_t done, uint32_t most);
  /// Finds the source of each field's values. False: the frame has the error.
  bool Evaluate(Frame& frame, const Chunk& chunk, Selection rows);
  /// The column whose codes are copied; nullptr: the field is evaluated.
  const Column* CodesFor(size_t field, const Chunk& chunk) const;
  /// The number of rows that fit the page with their texts. 0: the next one needs another page, or the frame
  /// has the error.
  uint32_t RowsThatFit(Frame& frame, Selection rows);
  /// For a row of so many bytes that does not fit any page of the layout's size. The frame may have the
  /// error.
  void WantLongPage(Frame& frame, uint32_t position, uint64_t bytes);
  bool WritePairs(std::byte* first, Selection rows);
  /// False if a value does not fit the field.
  bool WriteField(size_t field, std::byte* first, Selection rows);

  const RowLayout& layout_;
  const Program& program_;
  std::vector<std::optional<uint32_t>> slots_;  // by field: the slot that its output is
  std::vector<size_t> texts_;                   // fields
  std::byte* page_ = nullptr;
  uint32_t first_row_number_ = 0;
  uint32_t next_page_bytes_;
  // For one call.
  std::vector<const Column*> codes_;    // by field: copied from here …
  std::vector<const Vector*> vectors_;  // … or else from here
  std::vector<uint32_t> positions_;     // the rest of a chunk without a selection
  std::vector<uint64_t> bytes_;         // by row, with its texts
};

}  // namespace nam::execution
