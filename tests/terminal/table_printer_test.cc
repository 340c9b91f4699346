#include "terminal/table_printer.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rapidcheck/gtest.h"

namespace nam {
namespace {

using session::ResultSet;

ResultSet Sample() {
  ResultSet result;
  result.columns = {{"name", Type::String()}, {"revenue", Type::Decimal(2)}, {"year", Type::Integer()}};
  result.rows = {{Value::String("Größe"), Value::Decimal(-123456, 2), Value::Integer(1992)},
                 {Value::String("日本"), Value::Null(Type::Decimal(2)), Value::Integer(7)}};
  return result;
}

TEST(TableTest, AlignsByWidthNumbersToTheRight) {
  EXPECT_EQ(Render(Sample(), {}),
            " name  |  revenue | year\n"
            "-------+----------+------\n"
            " Größe | -1234.56 | 1992\n"
            " 日本  |          |    7\n"
            "(2 rows)\n");
}

TEST(TableTest, NullTextFooterAndNoRows) {
  ResultSet result = Sample();
  result.rows.erase(result.rows.begin());
  EXPECT_EQ(Render(result, {.null_text = "NULL"}),
            " name | revenue | year\n------+---------+------\n 日本 |    NULL |    7\n(1 row)\n");
  result.rows.clear();
  EXPECT_EQ(Render(result, {}), " name | revenue | year\n------+---------+------\n(0 rows)\n");
  EXPECT_EQ(Render(result, {.footer = false}), " name | revenue | year\n------+---------+------\n");
}

TEST(TableTest, NothingWithoutColumns) {
  for (const auto format :
       {OutputFormat::kTable, OutputFormat::kCsv, OutputFormat::kJson, OutputFormat::kMarkdown}) {
    EXPECT_EQ(Render(ResultSet{}, {.format = format}), "");
  }
}

TEST(TableTest, ControlCharactersCannotBreakTheTable) {
  ResultSet result;
  result.columns = {{"t\n", Type::String()}};
  result.rows = {{Value::String("a\nb\x1b[2J")}};
  EXPECT_EQ(Render(result, {}), " t\\n\n----------\n a       +\n b\\x1b[2J\n(1 row)\n");
}

TEST(ExpandedTest, OneBlockARow) {
  EXPECT_EQ(Render(Sample(), {.expanded = true}),
            "-[ RECORD 1 ]-\nname    | Größe\nrevenue | -1234.56\nyear    | 1992\n"
            "-[ RECORD 2 ]-\nname    | 日本\nrevenue |\nyear    | 7\n(2 rows)\n");
}

TEST(CsvTest, QuotesAsRfc4180) {
  ResultSet result;
  result.columns = {{"a,b", Type::String()}, {"n", Type::Integer()}};
  result.rows = {{Value::String("say \"hi\", twice"), Value::Integer(1)},
                 {Value::String("two\nlines"), Value::Null(Type::Integer())},
                 {Value::String(""), Value::Integer(-2)},
                 {Value::Null(Type::String()), Value::Integer(3)}};
  EXPECT_EQ(Render(result, {.format = OutputFormat::kCsv}),
            "\"a,b\",n\n\"say \"\"hi\"\", twice\",1\n\"two\nlines\",\n\"\",-2\n,3\n");
}

/// Programs read JSON's numbers as double precision.
TEST(JsonTest, NumbersKeepTheirDigits) {
  const auto json = [](const Value& value) { return JsonValue(value); };
  EXPECT_EQ(json(Value::Integer(int64_t{1} << 53)), "9007199254740992");
  EXPECT_EQ(json(Value::Integer(-(int64_t{1} << 53))), "-9007199254740992");
  EXPECT_EQ(json(Value::Integer((int64_t{1} << 53) + 1)), "\"9007199254740993\"");
  EXPECT_EQ(json(Value::Integer(-(int64_t{1} << 53) - 1)), "\"-9007199254740993\"");
  EXPECT_EQ(json(Value::Integer(0)), "0");
  EXPECT_EQ(json(Value::Decimal(123456789012345, 3)), "123456789012.345");
  EXPECT_EQ(json(Value::Decimal(-123456789012345, 15)), "-0.123456789012345");
  EXPECT_EQ(json(Value::Decimal(1234567890123456, 3)), "\"1234567890123.456\"");
  EXPECT_EQ(json(Value::Decimal(1, 20)), "0.00000000000000000001");
  EXPECT_EQ(json(Value::Double(0.1)), "0.1");
  EXPECT_EQ(json(Value::Double(1e300)), "1e+300");
  EXPECT_EQ(json(Value::Double(0.1 + 0.2)), "0.30000000000000004");
  EXPECT_EQ(json(Value::Double(12345678901234567.0)), "1.2345678901234568e+16") << "any double is a number";
  EXPECT_EQ(json(Value::Double(std::numeric_limits<double>::infinity())), "\"Infinity\"");
  EXPECT_EQ(json(Value::Double(-std::numeric_limits<double>::infinity())), "\"-Infinity\"");
  EXPECT_EQ(json(Value::Double(std::nan(""))), "\"NaN\"");
  ResultSet result;
  result.columns = {{"d", Type::Double()}, {"r", Type::Real()}, {"n", Type::Decimal(0)}};
  result.rows = {{Value::Double(2.5), Value::Real(0.5), Value::Decimal(12345678901234567, 0)},
                 {Value::Null(Type::Double()), Value::Null(Type::Real()), Value::Null(Type::Decimal(0))}};
  EXPECT_EQ(Render(result, {.format = OutputFormat::kJson}),
            "[\n  {\"d\": 2.5, \"r\": 0.5, \"n\": \"12345678901234567\"},\n  {\"d\": null, \"r\": null, "
            "\"n\": null}\n]\n");
}

TEST(JsonTest, NumbersVerbatimAndNamesDistinct) {
  ResultSet result;
  result.columns = {{"sum", Type::Decimal(4)},
                    {"sum", Type::Integer()},
                    {"day", Type::Date()},
                    {"ok", Type::Bool()},
                    {"none", Type::String()}};
  __int128 large = 0;
  for (int i = 0; i < 38; ++i) large = large * 10 + 9;
  result.rows = {{Value::Decimal(12300, 4), Value::Integer(large), Value::Date(0), Value::Bool(true),
                  Value::Null(Type::String())}};
  EXPECT_EQ(Render(result, {.format = OutputFormat::kJson}),
            "[\n  {\"sum\": 1.2300, \"sum_2\": \"99999999999999999999999999999999999999\", \"day\": "
            "\"1970-01-01\", "
            "\"ok\": true, \"none\": null}\n]\n");
  result.rows.clear();
  EXPECT_EQ(Render(result, {.format = OutputFormat::kJson}), "[]\n");
}

RC_GTEST_PROP(JsonTest, AnyStringIsReadBack, (std::string text)) {
  const nlohmann::json parsed = nlohmann::json::parse(JsonString(text));
  RC_ASSERT(parsed.is_string());
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (ascii) RC_ASSERT(parsed.get<std::string>() == text);
}

TEST(JsonTest, RowsOnOneLine) {
  EXPECT_EQ(JsonRows(Sample()), "[[\"Größe\", -1234.56, 1992], [\"日本\", null, 7]]");
}

TEST(MarkdownTest, PipesAreEscaped) {
  ResultSet result;
  result.columns = {{"a|b", Type::String()}, {"n", Type::Integer()}};
  result.rows = {{Value::String("x|y"), Value::Integer(1)}};
  EXPECT_EQ(Render(result, {.format = OutputFormat::kMarkdown}),
            "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1 |\n");
}

TEST(OutputFormatTest, Names) {
  EXPECT_EQ(ParseOutputFormat("markdown").value(), OutputFormat::kMarkdown);
  EXPECT_FALSE(ParseOutputFormat("xml").ok());
}

}  // namespace
}  // namespace nam
