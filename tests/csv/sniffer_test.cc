#include "csv/sniffer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

class SnifferTest : public ::testing::Test {
 protected:
  /// `name:kind`, kinds by their first letters; then `header` and the delimiter if it is no comma.
  std::string Of(const std::string& text, SniffOptions options = {}, Dialect dialect = Dialect::Csv()) {
    const std::string path = folder_.File("a.csv");
    std::ofstream(path, std::ios::binary) << text;
    const auto columns = Sniff(path, options, dialect);
    if (!columns.ok()) return SqlErrorOf(columns.status())->sqlstate;
    std::string out;
    for (const SniffedColumn& column : *columns) {
      static constexpr const char* kKinds[] = {"none", "bool",      "whole", "number",
                                               "date", "timestamp", "text"};
      out += column.name + ":" + kKinds[static_cast<size_t>(column.kind)] + " ";
    }
    if (dialect.header) out += "header ";
    if (dialect.delimiter != ',') out += dialect.delimiter;
    return out;
  }

  const TempFolder folder_;
};

TEST_F(SnifferTest, KindsHoldAllValues) {
  EXPECT_EQ(Of("id,Name,born,balance,seen,ok,empty\n1,Ada,1815-12-10,1.5,2020-01-02 03:04:05,true,\n"
               "-2,,2024-02-29,-7,2020-01-02T03:04:05.25,FALSE,\n"),
            "id:whole name:text born:date balance:number seen:timestamp ok:bool empty:none header ");
  EXPECT_EQ(Of("1,2020-01-01\n2.5,2020-01-01 10:00\n"), "column1:number column2:timestamp ");
  EXPECT_EQ(Of("1\nx\n"), "column1:text ");
  EXPECT_EQ(Of("2020-01-01\n7\n"), "column1:text ");
  EXPECT_EQ(Of("12345678901234567890,1e5\n"), "column1:number column2:number ")
      << "no whole number of 64 bits";
  EXPECT_EQ(Of("2020-01-01,2020-01-01 10:00,1\n2020-02-30,2020-01-01 25:61:00,1e999\n"),
            "column1:text column2:text column3:text ")
      << "no such day, time or number";
  EXPECT_EQ(Of("nan,inf,0x10,1_0\n"), "column1:text column2:text column3:text column4:text ");
}

TEST_F(SnifferTest, HeadersAreToldFromRows) {
  EXPECT_EQ(Of("a,b\nx,y\nz,w\n"), "a:text b:text header ");
  EXPECT_EQ(Of("a,b\nx,y\na,w\n"), "column1:text column2:text ") << "a comes again";
  EXPECT_EQ(Of("a,a\n1,2\n"), "column1:text column2:text ") << "names differ";
  EXPECT_EQ(Of("1,2\n3,4\n"), "column1:whole column2:whole ");
  EXPECT_EQ(Of("x,y\n"), "column1:text column2:text ");
  EXPECT_EQ(Of("x,y\n", {.header = true}), "x:none y:none header ");
  EXPECT_EQ(Of("a,a\n1,2\n", {.header = true}), "a:whole a_2:whole header ");
  EXPECT_EQ(Of("a,b\n1,2\n", {.header = false}), "column1:text column2:text ");
}

TEST_F(SnifferTest, NamesAreUtf8) {
  EXPECT_EQ(Of("\xc3\xa9,b\n1,2\n"), "\xc3\xa9:whole b:whole header ");
  EXPECT_EQ(Of("\xff,b\n1,2\n"), "22021");
  EXPECT_EQ(Of(std::string("x\0y,b\n1,2\n", 10)), "22021");
  EXPECT_EQ(Of(std::string("\xff\xfe"
                           "a\0\n\0"
                           "1\0\n\0",
                           10)),
            "22021");
}

TEST_F(SnifferTest, DelimitersAreFound) {
  EXPECT_EQ(Of("a;b\n1;2,5\n"), "a:whole b:text header ;");
  EXPECT_EQ(Of("a\tb\tc\n1\t2\t3\n"), "a:whole b:whole c:whole header \t");
  EXPECT_EQ(Of("a,\"b;c;d\"\n1,2\n"), "a:whole b;c;d:whole header ");
  EXPECT_EQ(Of("a;b\n1;2\n", {.delimiter_given = true}), "a;b:text header ");
}

TEST_F(SnifferTest, TblFilesHaveADelimiterMore) {
  Dialect tbl = Dialect::Csv();
  tbl.delimiter = '|';
  tbl.quote = tbl.escape = '\0';
  EXPECT_EQ(Of("1|it\"s|\n2|b|\n", {.delimiter_given = true}, tbl), "column1:whole column2:text |");
}

TEST_F(SnifferTest, WhatCannotBeToldIsRefused) {
  EXPECT_EQ(Of(""), "22P04");
  EXPECT_EQ(Of("\n\n"), "22P04");
  EXPECT_EQ(Of("1,2\n3\n"), "22P04");
  EXPECT_EQ(Of("1,\"2\n3,4\n"), "22P04");
}

}  // namespace
}  // namespace nam::csv
