#include "csv/row_writer.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "csv/row_splitter.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

using Row = std::vector<std::optional<std::string>>;

std::string Written(const std::vector<Row>& rows, const Dialect& dialect,
                    std::vector<bool> force_quote = {}) {
  RowWriter writer(dialect, rows[0].size(), std::move(force_quote));
  std::string text;
  for (const Row& row : rows) {
    for (const auto& field : row) {
      if (!field.has_value()) {
        writer.AddNull(text);
      } else {
        EXPECT_TRUE(writer.Add(*field, text).ok()) << *field;
      }
    }
    writer.EndRow(text);
  }
  return text;
}

std::vector<Row> Read(const std::string& text, const Dialect& dialect) {
  RowSplitter splitter(dialect);
  splitter.Begin(text, /*last=*/true);
  std::vector<Row> rows;
  std::vector<Field> fields;
  while (true) {
    const absl::StatusOr<bool> more = splitter.Next(fields);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.value_or(false)) return rows;
    Row& row = rows.emplace_back();
    for (const Field& field : fields)
      row.push_back(field.null ? std::nullopt : std::optional(std::string(field.text)));
  }
}

TEST(RowWriterTest, CsvQuotesWhatItMust) {
  EXPECT_EQ(Written({{"a", std::nullopt, "", "b c"}}, Dialect::Csv()), "a,,\"\",b c\n");
  EXPECT_EQ(Written({{"say \"hi\"", "a,b", "a\nb", "a\rb"}}, Dialect::Csv()),
            "\"say \"\"hi\"\"\",\"a,b\",\"a\nb\",\"a\rb\"\n");
  EXPECT_EQ(Written({{"\\."}, {"x\\."}}, Dialect::Csv()), "\"\\.\"\nx\\.\n") << "an end marker";
  EXPECT_EQ(Written({{"\\.", "\\"}}, Dialect::Csv()), "\\.,\\\n");
  Dialect dialect = Dialect::Csv();
  dialect.null_text = "nil";
  dialect.escape = '\\';
  EXPECT_EQ(Written({{std::nullopt, "nil", "", "\\ \""}}, dialect), "nil,\"nil\",,\"\\\\ \\\"\"\n");
}

TEST(RowWriterTest, QuotesMayBeForced) {
  EXPECT_EQ(Written({{"a", "b", std::nullopt}}, Dialect::Csv(), {false, true, true}), "a,\"b\",\n");
}

TEST(RowWriterTest, TextHasBackslashes) {
  EXPECT_EQ(Written({{"a\tb\nc\rd\\e\b\f\v", std::nullopt, "\\N", ""}}, Dialect::Text()),
            "a\\tb\\nc\\rd\\\\e\\b\\f\\v\t\\N\t\\\\N\t\n");
  Dialect dialect = Dialect::Text();
  dialect.delimiter = '|';
  EXPECT_EQ(Written({{"a|b", "\t"}}, dialect), "a\\|b|\\t\n");
}

TEST(RowWriterTest, WithoutQuotesSomeTextsAreRefused) {
  Dialect dialect = Dialect::Csv();
  dialect.delimiter = '|';
  dialect.quote = dialect.escape = Dialect::kNoQuote;
  EXPECT_EQ(Written({{"a", "b\"c", std::nullopt}}, dialect), "a|b\"c|\n");
  for (const std::string text : {"a|b", "a\nb", "a\rb", ""}) {
    RowWriter writer(dialect, 2);
    std::string out;
    EXPECT_EQ(SqlErrorOf(writer.Add(text, out))->sqlstate, "22P04") << text;
  }
}

/// Alone on its line it would be the end-of-copy marker of the other formats.
TEST(RowWriterTest, ABackslashAndADotComeBackFromOneColumn) {
  Dialect tbl = Dialect::Csv();
  tbl.quote = tbl.escape = Dialect::kNoQuote;
  const std::vector<Row> rows = {{"\\."}, {"a"}};
  EXPECT_EQ(Written(rows, tbl), "\\.\na\n");
  EXPECT_EQ(Written(rows, Dialect::Csv()), "\"\\.\"\na\n");
  EXPECT_EQ(Written(rows, Dialect::Text()), "\\\\.\na\n");
  for (const Dialect& dialect : {tbl, Dialect::Csv(), Dialect::Text()})
    EXPECT_EQ(Read(Written(rows, dialect), dialect), rows);
}

TEST(RowWriterTest, HeadersHaveNoForcedQuotes) {
  RowWriter writer(Dialect::Csv(), 2, {true, true});
  std::string out;
  EXPECT_TRUE(writer.AddHeader({"a", "b,c"}, out).ok());
  EXPECT_TRUE(writer.Add("1", out).ok());
  EXPECT_EQ(out, "a,\"b,c\"\n\"1\"");
}

Dialect RandomDialect(std::mt19937_64& random) {
  Dialect dialect = random() % 2 == 0 ? Dialect::Csv() : Dialect::Text();
  if (dialect.format == Dialect::Format::kText) {
    if (random() % 2 == 0) dialect.delimiter = '|';
    return dialect;
  }
  dialect.delimiter = ",;|\t "[random() % 5];
  if (random() % 3 == 0) dialect.quote = dialect.escape = '\'';
  if (random() % 3 == 0) dialect.escape = '\\';
  if (random() % 3 == 0) dialect.null_text = "null";
  return dialect;
}

TEST(RowWriterTest, WhatIsWrittenIsReadBack) {
  const std::string pieces[] = {"a", ",", "\"", "'",    "\\",  "\n",  "\r", "\t",
                                "|", ";", " ",  "null", "\\N", "\\.", "ä",  "\r\n"};
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Dialect dialect = RandomDialect(random);
    const size_t columns = 1 + random() % 4;
    std::vector<bool> force_quote;
    for (size_t c = 0; c < columns; ++c) force_quote.push_back(random() % 4 == 0);
    std::vector<Row> rows(1 + random() % 5, Row(columns));
    for (Row& row : rows) {
      for (auto& field : row) {
        if (random() % 5 == 0) continue;
        field.emplace();
        for (uint64_t n = random() % 4; n > 0; --n) *field += pieces[random() % std::size(pieces)];
      }
    }
    const std::string text = Written(rows, dialect, force_quote);
    ASSERT_EQ(Read(text, dialect), rows) << text;
  }
}

}  // namespace
}  // namespace nam::csv
