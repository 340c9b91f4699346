#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"

namespace nam::csv {

struct Field {
  std::string_view text;
  bool null = false;
};

/// Splits rows into fields. Belongs to one thread; reused for one portion of a file after the other.
class RowSplitter {
 public:
  explicit RowSplitter(const Dialect& dialect) : dialect_(dialect) {}

  /// `portion`: whole rows, except the line end of a file's last one. It stays valid while fields are used.
  /// `last`: no other portion of the file follows.
  void Begin(std::string_view portion, bool last);
  /// The next row's fields, which are views into the portion, or into memory that lasts until the next Begin.
  /// False if there is none, or at the end-of-copy marker, a line `\.` (a text in files without quotes).
  /// 22P04 if the row or a field has no end, if rows follow the marker, or a carriage return stands where no
  /// line ends.
  absl::StatusOr<bool> Next(std::vector<Field>& fields);
  /// About Next's last row: the number of the portion's lines before it, and its text.
  uint64_t lines_before() const { return lines_before_; }
  std::string_view row() const { return row_; }
  /// row() without its line end.
  std::string_view line() const {
    return WithoutReturn(row_.substr(0, row_.size() - (row_.ends_with('\n') ? 1 : 0)));
  }

 private:
  absl::Status NextCsv(std::vector<Field>& fields);
  /// A field with a quote at `at_`, anywhere in it. `begin`: where the field begins.
  absl::Status QuotedField(size_t begin, std::vector<Field>& fields);
  /// A field that begins with the quote at `at_`, where no other quote counts. `begin`: with blanks before
  /// it.
  absl::Status FieldBegunByQuote(size_t begin, std::vector<Field>& fields);
  bool AtFieldEnd() const;
  absl::Status NextText(std::vector<Field>& fields);
  std::string_view Unescaped(std::string_view field);
  std::string_view Keep(std::string text);

  /// Whether the line at `at_` is no row.
  bool AtComment() const {
    return dialect_.comment != Dialect::kNoComment && at_ < portion_.size() &&
           portion_[at_] == dialect_.comment;
  }

  /// Of the end-of-copy marker that begins at `at_`, with its line end; 0: it is none.
  size_t MarkerBytes() const;

  const Dialect dialect_;
  std::string_view portion_;
  bool last_ = true;          // of the file's portions
  bool has_returns_ = false;  // the portion has: otherwise fields are not searched for them
  size_t at_ = 0;
  uint64_t lines_ = 0;  // that end before at_
  uint64_t lines_before_ = 0;
  std::string_view row_;
  std::deque<std::string> kept_;
};

}  // namespace nam::csv
