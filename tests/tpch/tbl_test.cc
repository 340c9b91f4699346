// Decimals and dates of `.tbl` files, written and read.
#include "dataset/load.h"
#include "dataset/tbl_line.h"
#include "dataset/tbl_writer.h"
#include "gtest/gtest.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/dataset/rows.h"
#include "tpch/generator.h"

namespace nam::tpch {
namespace {

using dataset::Collected;
using dataset::GeneratedText;
using dataset::Lines;
using dataset::Sorted;
using dataset::TestDirectory;

TEST(TblTest, WhatIsWrittenLoadsAsItWas) {
  fabric::FakeFabric fabric;
  const Generator generator({.scale_factor = 0.001});
  const TestDirectory directory;
  const std::vector<size_t> tables(kAllTables.begin(), kAllTables.end());
  const auto written =
      dataset::WriteTbl(fabric, generator, tables, directory.path(), {.work = {.threads = 3}});
  ASSERT_TRUE(written.ok()) << written.status();
  for (const Table table : kAllTables) {
    const std::string text = GeneratedText(generator, table);
    EXPECT_TRUE(directory.Read(Tables()[table].file_names[0]) == text) << table;
    Collected collected(Tables()[table]);
    const auto rows = dataset::LoadTbl(fabric, directory.path(), Tables()[table], collected.sink(), {});
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, generator.Rows(table));
    EXPECT_TRUE(collected.sorted() == Sorted(Lines(text))) << table;
  }
}

/// The error of a supplier line with this balance; empty if none. `read` receives the value in cents.
std::string Balance(const std::string& text, int64_t* read = nullptr) {
  const dataset::TblLineParser parser(Tables()[kSupplier]);
  partitioner::ColumnBatch batch(parser.column_count());
  const auto reason = parser.Parse("1|Supplier#1|x|7|17|" + text + "|none|", batch);
  if (read != nullptr && !reason) *read = batch.column(5).numbers[0];
  return reason.value_or("");
}

TEST(TblTest, Decimals) {
  for (const auto& [text, cents] : std::vector<std::pair<std::string, int64_t>>{{"0.00", 0},
                                                                                {"-0.07", -7},
                                                                                {"12", 1'200},
                                                                                {"12.5", 1'250},
                                                                                {"-999.99", -99'999},
                                                                                {".5", 50},
                                                                                {"7.", 700}}) {
    int64_t read = -1;
    EXPECT_EQ(Balance(text, &read), "") << text;
    EXPECT_EQ(read, cents) << text;
  }
  const std::string no_decimal = " is not a decimal with at most 2 digits after the point";
  for (const std::string text : {"1.234", "1,5", "x", "-", ".", "1.2.3", "+1", "1e5"})
    EXPECT_EQ(Balance(text), "column 6 (s_acctbal): \"" + text + "\"" + no_decimal);
  EXPECT_EQ(Balance(""), "column 6 (s_acctbal): empty instead of a decimal");
  EXPECT_EQ(Balance("12345678901234567.00"),
            "column 6 (s_acctbal): \"12345678901234567.00\" has more than 18 digits");
}

TEST(TblTest, Dates) {
  const dataset::TblLineParser parser(Tables()[kOrders]);
  const auto parse = [&](const std::string& date) {
    partitioner::ColumnBatch batch(parser.column_count());
    return parser.Parse("1|2|F|1.00|" + date + "|1-URGENT|Clerk#1|0|none|", batch).value_or("");
  };
  EXPECT_EQ(parse("1996-02-29"), "");
  EXPECT_EQ(parse("1997-02-29"), "column 5 (o_orderdate): \"1997-02-29\" is not a date");
  EXPECT_EQ(parse("19960229"), "column 5 (o_orderdate): \"19960229\" is not a date");
}

}  // namespace
}  // namespace nam::tpch
