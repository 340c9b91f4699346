#include "csv/row_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "csv/row_end.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

/// A field's text; NULL is `<null>`.
using Rows = std::vector<std::vector<std::string>>;

absl::StatusOr<Rows> Split(const std::string& portion, const Dialect& dialect, bool last = true) {
  RowSplitter splitter(dialect);
  splitter.Begin(portion, last);
  Rows rows;
  std::vector<Field> fields;
  while (true) {
    const absl::StatusOr<bool> more = splitter.Next(fields);
    if (!more.ok()) return more.status();
    if (!*more) return rows;
    std::vector<std::string>& row = rows.emplace_back();
    for (const Field& field : fields) row.push_back(field.null ? "<null>" : std::string(field.text));
  }
}
Rows Csv(const std::string& portion, const Dialect& dialect = Dialect::Csv()) {
  const absl::StatusOr<Rows> rows = Split(portion, dialect);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(Rows());
}
Rows Text(const std::string& portion) {
  return Csv(portion, Dialect::Text());
}

TEST(RowSplitterTest, PlainRows) {
  EXPECT_EQ(Csv("a,b\nc,d\n"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(Csv("a,b\r\nc,d\r\n"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(Csv("a,b\nc,d"), (Rows{{"a", "b"}, {"c", "d"}})) << "the last line need not end";
  EXPECT_EQ(Csv(""), Rows());
  EXPECT_EQ(Csv("a,,\n,\n"), (Rows{{"a", "<null>", "<null>"}, {"<null>", "<null>"}}));
  EXPECT_EQ(Csv("\n"), (Rows{{"<null>"}}));
}

TEST(RowSplitterTest, Quotes) {
  EXPECT_EQ(Csv("\"a,b\",c\n"), (Rows{{"a,b", "c"}}));
  EXPECT_EQ(Csv("\"a\nb\"\n"), (Rows{{"a\nb"}}));
  EXPECT_EQ(Csv("\"say \"\"hi\"\"\"\n"), (Rows{{"say \"hi\""}}));
  EXPECT_EQ(Csv("\"\",x\n"), (Rows{{"", "x"}})) << "an empty text, not NULL";
  EXPECT_EQ(Csv("a\"b,c\"d\n"), (Rows{{"ab,cd"}})) << "a quote may stand anywhere, as in PostgreSQL";
  EXPECT_EQ(Csv("\"a\"b\"c\"\r\n"), (Rows{{"abc"}}));
  EXPECT_EQ(Csv("\"a\r\nb\"\r\n"), (Rows{{"a\r\nb"}}));
}

/// As files in queries have them.
Dialect QuotesBeginFields(char delimiter = ',', char escape = '"') {
  return {.delimiter = delimiter, .escape = escape, .quotes_begin_fields = true};
}

TEST(RowSplitterTest, OnlyAQuoteAtAFieldsBeginQuotes) {
  const Dialect dialect = QuotesBeginFields();
  EXPECT_EQ(Csv("1,5 ft 11\"\n2,\"a,b\"\n3,6 ft 0\"\n", dialect),
            (Rows{{"1", "5 ft 11\""}, {"2", "a,b"}, {"3", "6 ft 0\""}}));
  EXPECT_EQ(Csv("x \"y\" z,O\"Neil\r\n", dialect), (Rows{{"x \"y\" z", "O\"Neil"}}));
  EXPECT_EQ(Csv("\"a\nb\",\"say \"\"hi\"\"\",\"\",\n", dialect),
            (Rows{{"a\nb", "say \"hi\"", "", "<null>"}}));
  EXPECT_EQ(Csv("1, \"x,y\" \n \"z\"\t,\"w\" \r\n", dialect), (Rows{{"1", "x,y"}, {"z", "w"}}))
      << "blanks around quotes are no text";
  EXPECT_EQ(Csv(" a , b \n", dialect), (Rows{{" a ", " b "}})) << "others are";
  EXPECT_EQ(Csv("\"a\\\"b\",c\n", QuotesBeginFields(',', '\\')), (Rows{{"a\"b", "c"}}));
  EXPECT_EQ(Csv("\ta\t\"b\tc\"\n", QuotesBeginFields('\t')), (Rows{{"<null>", "a", "b\tc"}}));
}

TEST(RowSplitterTest, TextBehindAClosingQuoteIsNeverGuessedAt) {
  const Dialect dialect = QuotesBeginFields();
  EXPECT_EQ(Csv("\"Weird Al\" Yankovic,1959\n", dialect), (Rows{{"\"Weird Al\" Yankovic", "1959"}}));
  EXPECT_EQ(Csv("a,\"x\"y\r\nb,z\n", dialect), (Rows{{"a", "\"x\"y"}, {"b", "z"}}));
  for (const char* const unclear : {"\"a,b\" c\n", "\"a\nb\" c\n", "\"a\"\"b\" c\n"})
    EXPECT_FALSE(Split(unclear, dialect).ok()) << unclear;
  EXPECT_FALSE(Split("1,\"abc\n2,x\n", dialect).ok()) << "a quote is open";
}

TEST(RowSplitterTest, CommentsAreNoRows) {
  Dialect dialect = QuotesBeginFields();
  dialect.comment = '#';
  EXPECT_EQ(Csv("#a,\"b\n1,x\n# \"\n\"#\",#2\n#", dialect), (Rows{{"1", "x"}, {"#", "#2"}}));
  EXPECT_EQ(EndOfLastRow("#a,\"b\n1,x\n2,\"y\n", dialect), 10u);
  EXPECT_EQ(EndOfLastRow("1,x\n#\"y", dialect), 4u);
}

TEST(RowSplitterTest, OtherCharacters) {
  Dialect dialect{.delimiter = '|', .quote = '\'', .escape = '\\', .null_text = "NA"};
  EXPECT_EQ(Csv("a|'it\\'s|\\\\ \\n'|NA|'NA'\n", dialect), (Rows{{"a", "it's|\\ \\n", "<null>", "NA"}}));
}

TEST(RowSplitterTest, AnOpenQuoteIsAnError) {
  const absl::Status open = Split("a,\"b\n", Dialect::Csv()).status();
  ASSERT_TRUE(SqlErrorOf(open).has_value());
  EXPECT_EQ(SqlErrorOf(open)->sqlstate, "22P04");
}

TEST(RowSplitterTest, TheTextFormat) {
  EXPECT_EQ(Text("a\tb\n\\N\t\n"), (Rows{{"a", "b"}, {"<null>", ""}}));
  EXPECT_EQ(Text("a\\tb\\\\\\n\\x41\\101\\q\n"), (Rows{{"a\tb\\\nAAq"}}));
  EXPECT_EQ(Text("a\\\nb\tc\n"), (Rows{{"a\nb", "c"}})) << "a line end behind a backslash is data";
  EXPECT_EQ(Text("a\\\r\nb\n"), (Rows{{"a\r"}, {"b"}})) << "so is a carriage return";
  EXPECT_EQ(Text("a\\"), (Rows{{"a"}})) << "as PostgreSQL reads it";
}

std::string ErrorOf(const std::string& portion, const Dialect& dialect, bool last = true) {
  const absl::Status status = Split(portion, dialect, last).status();
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error.has_value() && error->sqlstate == "22P04" ? error->message : status.ToString();
}

TEST(RowSplitterTest, TheEndOfCopyMarkerEndsAFile) {
  constexpr char kBehind[] = "rows stand behind the end-of-copy marker \\.";
  for (const Dialect& dialect : {Dialect::Text(), Dialect::Csv()}) {
    EXPECT_EQ(Csv("a\n\\.\n", dialect), (Rows{{"a"}}));
    EXPECT_EQ(Csv("a\r\n\\.\r\n", dialect), (Rows{{"a"}}));
    EXPECT_EQ(ErrorOf("a\n\\.\nb\n", dialect), kBehind);
    EXPECT_EQ(ErrorOf("a\n\\.\n", dialect, /*last=*/false), kBehind) << "they are in the next portion";
  }
  EXPECT_EQ(Text("a\n\\."), (Rows{{"a"}}));
  for (const char* const within : {"a\\.\n", "\\.a\n", "a\t\\.\n"})
    EXPECT_EQ(ErrorOf(within, Dialect::Text()), "end-of-copy marker is not alone on its line") << within;
  EXPECT_EQ(Text("\\\\.\n"), (Rows{{"\\."}}));
}

TEST(RowSplitterTest, ABackslashAndADotAreATextOfCsvUnlessTheyAreTheMarker) {
  EXPECT_EQ(Csv("\\.,a\n\"\\.\"\na\\.\n\\."), (Rows{{"\\.", "a"}, {"\\."}, {"a\\."}, {"\\."}}));
  EXPECT_EQ(Csv("\"a\n\\.\n\"\n"), (Rows{{"a\n\\.\n"}}));
  EXPECT_EQ(Csv("\\.\nb\n", {.delimiter = '|', .quote = Dialect::kNoQuote}), (Rows{{"\\."}, {"b"}}));
}

TEST(RowSplitterTest, CarriageReturnsEndLinesOrStandInQuotes) {
  constexpr char kUnquoted[] = "unquoted carriage return found in data";
  EXPECT_EQ(ErrorOf("a\rb\n", Dialect::Csv()), kUnquoted);
  EXPECT_EQ(ErrorOf("a\r\r\n", Dialect::Csv()), kUnquoted);
  EXPECT_EQ(ErrorOf("\"a\"\rb\n", Dialect::Csv()), kUnquoted);
  EXPECT_EQ(ErrorOf("a\r\"b\"\n", Dialect::Csv()), kUnquoted);
  EXPECT_EQ(ErrorOf("a\rb|\n", {.delimiter = '|', .quote = Dialect::kNoQuote}), kUnquoted);
  EXPECT_EQ(ErrorOf("a\rb\n", Dialect::Text()), "literal carriage return found in data");
  EXPECT_EQ(Csv("\"a\rb\"\r\nc\r"), (Rows{{"a\rb"}, {"c"}}));
}

TEST(RowSplitterTest, LinesAreCounted) {
  RowSplitter splitter(Dialect::Csv());
  splitter.Begin("a\n\"b\nb\"\nc\n", /*last=*/true);
  std::vector<Field> fields;
  std::vector<uint64_t> lines;
  while (*splitter.Next(fields)) lines.push_back(splitter.lines_before());
  EXPECT_EQ(lines, (std::vector<uint64_t>{0, 1, 3}));
}

class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(seed) {}

  Rows Make() {
    Rows rows(1 + random_() % 20);
    const size_t width = 1 + random_() % 4;
    for (auto& row : rows) {
      for (size_t i = 0; i < width; ++i) row.push_back(random_() % 8 == 0 ? "<null>" : Field());
    }
    return rows;
  }
  std::string Write(const Rows& rows, const Dialect& dialect) {
    std::string out;
    for (const auto& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        if (i > 0) out += dialect.delimiter;
        if (row[i] != "<null>") out += Written(row[i], dialect);
      }
      out += random_() % 4 == 0 ? "\r\n" : "\n";
    }
    return out;
  }
  size_t Below(size_t n) { return random_() % n; }

 private:
  std::string Field() {
    constexpr std::string_view kCharacters = "ab,\"\n\r\\ |'";
    std::string field;
    for (size_t n = random_() % 6; n > 0; --n) field += kCharacters[random_() % kCharacters.size()];
    return field;
  }
  std::string Written(const std::string& field, const Dialect& dialect) {
    const bool plain =
        field.find_first_of(std::string("\n\r") + dialect.delimiter + dialect.quote) == std::string::npos &&
        !field.empty();
    if (plain && random_() % 2 == 0) return field;
    std::string out(1, dialect.quote);
    for (const char c : field) {
      if (c == dialect.quote || c == dialect.escape) out += dialect.escape;
      out += c;
    }
    return out + dialect.quote;
  }

  std::mt19937_64 random_;
};

TEST(RowSplitterTest, WhatIsWrittenIsRead) {
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRows random(seed);
    Dialect dialect;
    if (seed % 3 == 1) dialect.escape = '\\';
    if (seed % 5 == 1) dialect.delimiter = '|';
    dialect.quotes_begin_fields = seed % 2 == 0;
    const Rows rows = random.Make();
    const std::string text = random.Write(rows, dialect);
    ASSERT_EQ(Csv(text, dialect), rows) << text;
  }
}

/// Wherever the text is cut off, the rows before are whole: as many as when it is read from its start.
TEST(RowEndTest, PortionsEndWithRows) {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRows random(seed);
    Dialect dialect;
    if (seed % 3 == 1) dialect.escape = '\\';
    dialect.quotes_begin_fields = seed % 2 == 0;
    const Rows rows = random.Make();
    const std::string text = random.Write(rows, dialect);
    Rows portions;
    for (size_t at = 0; at < text.size();) {
      size_t end = 0;
      for (size_t bytes = 1 + random.Below(20); end == 0; bytes += 5)
        end = EndOfLastRow(std::string_view(text).substr(at, bytes), dialect);
      for (auto& row : Csv(text.substr(at, end), dialect)) portions.push_back(std::move(row));
      at += end;
    }
    ASSERT_EQ(portions, rows) << text;
  }
}

TEST(RowEndTest, AQuoteWithinAFieldHoldsNoRowsTogether) {
  const Dialect dialect = QuotesBeginFields();
  EXPECT_EQ(EndOfLastRow("1,5\"\n2,", dialect), 5u);
  EXPECT_EQ(EndOfLastRow("1,5\"\n2,\"a\nb", dialect), 5u);
  EXPECT_EQ(EndOfLastRow("1, \"a\nb\" \nc", dialect), 10u);
  EXPECT_EQ(EndOfLastRow("\"a\nb", dialect), 0u);
  EXPECT_EQ(EndOfLastRow("\"a\n\"\"b\n\"", dialect), 0u);
  EXPECT_EQ(EndOfLastRow("\"a\" \"b\nc\n", dialect), 9u);
}

TEST(RowEndTest, BackslashesBeforeLineEnds) {
  EXPECT_EQ(EndOfLastRow("a\nb\\\nc", Dialect::Text()), 2u);
  EXPECT_EQ(EndOfLastRow("a\nb\\\\\nc", Dialect::Text()), 6u);
  EXPECT_EQ(EndOfLastRow("\n", Dialect::Text()), 1u);
  EXPECT_EQ(EndOfLastRow("\\\n", Dialect::Text()), 0u);
}

}  // namespace
}  // namespace nam::csv
