#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "execution/budget_array.h"
#include "execution/chunk.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// The results of one call for some rows, by their number among them. One task's, which reuses it.
class WindowResults {
 public:
  enum class Form : uint8_t {
    kRow,     // a value of another row: keeps its number, whatever the type
    kNarrow,  // numbers of 64 bits
    kWide,    // of 128
    kTruth,
    kText,   // a run of bytes of `texts`
    kViews,  // a text of some row
  };
  /// kRow: `slot` of `table` holds the other rows' values. The table outlives this.
  WindowResults(Form form, const RowTable& table, uint32_t slot, MemoryBudget& budget);

  Form form() const { return form_; }
  /// Makes room for so many rows. Invalidates previous results.
  absl::Status Begin(uint64_t rows);

  void SetRow(uint64_t at, uint32_t row) { rows_[at] = row; }
  void SetNull(uint64_t at) { nulls_[at] = 1; }
  void SetNumber(uint64_t at, __int128 number) {
    nulls_[at] = 0;
    if (form_ == Form::kNarrow) {
      narrow_[at] = static_cast<int64_t>(number);
    } else {
      wide_[at] = number;
    }
  }
  void SetTruth(uint64_t at, uint8_t truth) { truths_[at] = truth; }
  void SetView(uint64_t at, std::string_view text) {
    nulls_[at] = 0;
    views_[at] = text;
  }

  /// Appends to the bytes that texts are runs of.
  absl::Status AddText(std::string_view text);
  /// The same with bytes that are already there.
  absl::Status RepeatText(uint64_t begin, uint64_t end);
  uint64_t text_bytes() const { return text_bytes_; }
  void SetText(uint64_t at, uint64_t begin, uint64_t end) {
    nulls_[at] = 0;
    texts_[at] = {begin, end - begin};
  }

  /// Returns the results [first, first + count), at most kChunkRows, as a column. Valid until the next call
  /// of any method.
  Column Read(uint64_t first, uint32_t count);

 private:
  struct Run {
    uint64_t begin, bytes;
  };
  const Form form_;
  const RowTable& table_;
  const uint32_t slot_;
  BudgetArray<uint32_t> rows_;
  BudgetArray<int64_t> narrow_;
  BudgetArray<__int128> wide_;
  BudgetArray<uint8_t> truths_;
  BudgetArray<Run> texts_;
  BudgetArray<std::string_view> views_;
  BudgetArray<uint8_t> nulls_;
  BudgetArray<char> bytes_;
  uint64_t text_bytes_ = 0;
  std::unique_ptr<std::string_view[]> read_;  // kText: of the column
};

}  // namespace nam::execution
