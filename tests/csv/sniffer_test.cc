#include "csv/sniffer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

class SnifferTest : public ::testing::Test {
 protected:
  SnifferTest() { dialect_.quotes_begin_fields = true; }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.File(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// The files are called 0.csv, 1.csv, …
  absl::StatusOr<SniffedFiles> SniffFiles(const std::vector<std::string>& texts, SniffOptions options,
                                          Dialect& dialect) {
    std::vector<std::string> paths;
    for (const std::string& text : texts) paths.push_back(Write(absl::StrCat(paths.size(), ".csv"), text));
    return Sniff(paths, options, dialect);
  }
  /// `name:form` of each column; then `header` if the first file has one, and the delimiter if it is no
  /// comma.
  std::string OfFiles(const std::vector<std::string>& texts, SniffOptions options, Dialect dialect) {
    const absl::StatusOr<SniffedFiles> files = SniffFiles(texts, options, dialect);
    if (!files.ok()) return SqlErrorOf(files.status())->sqlstate;
    static constexpr const char* kForms[] = {
        "none", "bool",      "whole",         "wide",          "number", "date",      "date_dmy",  "date_mdy",
        "time", "timestamp", "timestamp_dmy", "timestamp_mdy", "zoned",  "zoned_dmy", "zoned_mdy", "text"};
    std::string out;
    for (const SniffedColumn& column : files->columns)
      absl::StrAppend(&out, column.name, ":", kForms[static_cast<size_t>(column.form)], " ");
    if (files->files[0].header) out += "header ";
    if (dialect.delimiter != ',') out += dialect.delimiter;
    return out;
  }
  std::string Of(const std::string& text, SniffOptions options = {}) {
    return OfFiles({text}, options, dialect_);
  }
  std::string OfAll(const std::vector<std::string>& texts, SniffOptions options = {}) {
    return OfFiles(texts, options, dialect_);
  }
  SqlError ErrorOf(const std::vector<std::string>& texts, SniffOptions options = {}) {
    Dialect dialect = dialect_;
    const absl::Status status = SniffFiles(texts, options, dialect).status();
    return SqlErrorOf(status).value_or(SqlError{});
  }
  /// The columns that each file's fields go to.
  std::string PlacesOf(const std::vector<std::string>& texts, SniffOptions options = {}) {
    Dialect dialect = dialect_;
    const absl::StatusOr<SniffedFiles> files = SniffFiles(texts, options, dialect);
    if (!files.ok()) return std::string(files.status().message());
    std::string out;
    for (const SniffedFile& file : files->files) {
      absl::StrAppend(&out, file.header ? "header" : "rows", ":");
      for (const int column : file.columns) absl::StrAppend(&out, column);
      out += " ";
    }
    return out;
  }

  const TempFolder folder_;
  Dialect dialect_ = Dialect::Csv();
};

TEST_F(SnifferTest, FormsReadAllValues) {
  EXPECT_EQ(Of("id,Name,born,balance,seen,ok,empty\n1,Ada,1815-12-10,1.5,2020-01-02 03:04:05,true,\n"
               "-2,,2024-02-29,-7,2020-01-02T03:04:05.25,FALSE,\n"),
            "id:whole name:text born:date balance:number seen:timestamp ok:bool empty:none header ");
  EXPECT_EQ(Of("1,2020-01-01\n2.5,2020-01-01 10:00\n"), "column0:number column1:timestamp ");
  EXPECT_EQ(Of("2020-01-01\n7\n"), "2020-01-01:whole header ");
  EXPECT_EQ(Of("a,zip,tel\n1,01234,0049301234\n2,50100,+4930123\n"), "a:whole zip:text tel:text header ");
  EXPECT_EQ(Of("id,big\n1,12345678901234567890\n2,12345678901234567891\n"), "id:whole big:wide header ");
  EXPECT_EQ(Of("d,t,z,y\n31/12/2020,10:30,2020-01-02 03:04:05Z,yes\n"),
            "d:date_dmy t:time z:zoned y:bool header ");
}

TEST_F(SnifferTest, AnEmptyQuotedFieldIsNoText) {
  EXPECT_EQ(Of("a,b,c\n1,\"\",x\n\"2\",5,\"\"\n"), "a:whole b:whole c:text header ");
}

TEST_F(SnifferTest, AFirstRowUnlikeTheOthersHasNames) {
  EXPECT_EQ(Of("a,b\n1,x\nz,w\n"), "a:text b:text header ");
  EXPECT_EQ(Of("id,2019,2020\n1,2.5,3\n"), "id:whole 2019:number 2020:whole header ");
  EXPECT_EQ(Of("1,2\n2020-01-01,x\n"), "1:date 2:text header ");
  EXPECT_EQ(Of("id,id\n1,2\n"), "id:whole id_1:whole header ");
  EXPECT_EQ(Of(",a,b\n0,1,x\n1,2,y\n"), "column0:whole a:whole b:text header ") << "as pandas writes it";
  EXPECT_EQ(Of("a,b,\n1,2,\n3,4,\n"), "a:whole b:whole column2:none header ");
  EXPECT_EQ(Of(",,\n1,2,3\n"), "column0:whole column1:whole column2:whole header ");
  EXPECT_EQ(Of("1,2\n3,4\n"), "column0:whole column1:whole ");
  EXPECT_EQ(Of("2019,2020\n1,2\n"), "column0:whole column1:whole ") << "nothing tells them from rows";
  EXPECT_EQ(Of("t,f\ntrue,false\n"), "column0:bool column1:bool ");
  EXPECT_EQ(Of("Ada,1\nKurt,2\n"), "column0:text column1:whole ");
}

TEST_F(SnifferTest, AValueOfTheSameFamilyIsNoName) {
  EXPECT_EQ(Of("007,a\n12,b\n34,c\n"), "column0:text column1:text ");
  EXPECT_EQ(Of("1.5,a\n2,b\n"), "column0:number column1:text ");
  EXPECT_EQ(Of("2020-01-01 10:00,a\n2020-01-02,b\n"), "column0:timestamp column1:text ");
  EXPECT_EQ(Of("31/12/2020,a\n2020-01-02,b\n"), "column0:text column1:text ");
}

TEST_F(SnifferTest, TextsAloneHaveNamesAboveThem) {
  EXPECT_EQ(Of("a,b\nx,y\nz,w\n"), "a:text b:text header ");
  EXPECT_EQ(Of("name,city\nAda,London\nname,Paris\n"), "name:text city:text header ") << "name comes again";
  EXPECT_EQ(Of("name\nAda\n"), "name:text header ");
  EXPECT_EQ(Of("a,b\n,\n"), "a:none b:none header ");
}

TEST_F(SnifferTest, ALoneRowIsAHeaderIfItHasTextsOnly) {
  EXPECT_EQ(Of("a,b\n"), "a:none b:none header ");
  EXPECT_EQ(Of("a,b"), "a:none b:none header ");
  EXPECT_EQ(Of("1,2\n"), "column0:whole column1:whole ");
  EXPECT_EQ(Of("Ada,1815-12-10\n"), "column0:text column1:date ");
}

TEST_F(SnifferTest, TheHeaderMayBeGiven) {
  EXPECT_EQ(Of("1,2\n", {.header = true}), "1:none 2:none header ");
  EXPECT_EQ(Of("a,b\n1,2\n", {.header = false}), "column0:text column1:text ");
}

TEST_F(SnifferTest, LongRowsAreReadToo) {
  const std::string word(3 << 20, 'x');
  EXPECT_EQ(Of(absl::StrCat("a,b\n", word, ",1\ny,2\n")), "a:text b:whole header ");
  EXPECT_EQ(Of(absl::StrCat("a,b\n\"", word, "\n", word, "\",1\ny,2\n")), "a:text b:whole header ");
  EXPECT_EQ(Of(absl::StrCat("\n\na,b\n1,2\n")), "a:whole b:whole header ") << "blank lines are no rows";
}

TEST_F(SnifferTest, NamesAreMadeUnique) {
  EXPECT_EQ(Of("a,a,a_1,A\n1,2,3,4\n"), "a:whole a_1:whole a_1_1:whole a_2:whole header ");
  EXPECT_EQ(Of("column1,,x\n1,2,3\n"), "column1:whole column1_1:whole x:whole header ");
  EXPECT_EQ(Of("1,1,1,1,1,1,1,1,1,1,1\n").substr(0, 15), "column00:whole ");
  EXPECT_EQ(Of("first name, last name ,\" x \"\ny,z,1\n"), "first name:text last name:text x:whole header ");
  EXPECT_EQ(Of("a,   \n1,2\n"), "a:whole column1:whole header ");
}

TEST_F(SnifferTest, NamesAreUtf8) {
  EXPECT_EQ(Of("\xc3\xa9,b\n1,2\n"), "\xc3\xa9:whole b:whole header ");
  EXPECT_EQ(Of("\xff,b\n1,2\n"), "22021");
  EXPECT_EQ(Of(std::string("x\0y,b\n1,2\n", 10)), "22021");
}

TEST_F(SnifferTest, Utf16IsToldWhateverItsColumns) {
  const auto wide = [](const std::string& text, bool little) {
    std::string out;
    for (const char c : text) out += little ? std::string{c, '\0'} : std::string{'\0', c};
    return out;
  };
  for (const char* const text : {"a\n1\n", "a,b,c\n1,2,3\n", "1;2\n3;4\n", "name\n"}) {
    for (const std::string& file : {"\xff\xfe" + wide(text, true), "\xfe\xff" + wide(text, false),
                                    wide(text, true), wide(text, false)}) {
      const SqlError error = ErrorOf({file});
      EXPECT_EQ(error.sqlstate, "22021") << text;
      EXPECT_TRUE(absl::StrContains(error.hint, "iconv -f UTF-16")) << error.hint;
    }
  }
}

TEST_F(SnifferTest, DelimitersAndEscapesAreFound) {
  EXPECT_EQ(Of("a;b\n1;2,5\n"), "a:whole b:text header ;");
  EXPECT_EQ(Of("a\tb\tc\n1\t2\t3\n"), "a:whole b:whole c:whole header \t");
  EXPECT_EQ(Of("a,\"b;c;d\"\n1,2\n"), "a:whole b;c;d:whole header ");
  EXPECT_EQ(Of("a;b\n1;2\n", {.delimiter_given = true}), "a;b:text header ");
  EXPECT_EQ(Of("a;\"b\nc\"\n1;2\n"), "a:whole b\nc:whole header ;");
  EXPECT_EQ(Of("n,y\n\"say \\\"hi\\\", ok\",1\n\"x\",2\n"), "n:text y:whole header ");
}

TEST_F(SnifferTest, TblFilesHaveADelimiterMore) {
  Dialect tbl = Dialect::Csv();
  tbl.delimiter = '|';
  tbl.quote = tbl.escape = '\0';
  EXPECT_EQ(OfFiles({"1|it\"s|\n2|b|\n"}, {.delimiter_given = true}, tbl), "column0:whole column1:text |");
}

TEST_F(SnifferTest, WhatCannotBeToldIsRefused) {
  EXPECT_EQ(Of(""), "22P04");
  EXPECT_EQ(Of("\n\n"), "22P04");
  EXPECT_EQ(Of("1,\"2\n3,4\n"), "22P04");
  const SqlError ragged = ErrorOf({"1,2\n3,4\n\n3\n"});
  EXPECT_EQ(ragged.sqlstate, "22P04");
  EXPECT_TRUE(absl::StrContains(ragged.message, "0.csv:4: ")) << ragged.message;
}

TEST_F(SnifferTest, ColumnsOfSeveralFilesGoByName) {
  EXPECT_EQ(OfAll({"a,b\n1,x\n", "b,a\ny,2\n"}), "a:whole b:text header ");
  EXPECT_EQ(PlacesOf({"a,b\n1,x\n", "b,a\ny,2\n"}), "header:01 header:10 ");
  const SqlError missing = ErrorOf({"a,b\n1,x\n", "a\n2\n"});
  EXPECT_EQ(missing.sqlstate, "22P04");
  EXPECT_EQ(missing.message, "1.csv has no column \"b\", which 0.csv has");
  EXPECT_TRUE(absl::StrContains(missing.hint, "union_by_name")) << missing.hint;
  EXPECT_EQ(ErrorOf({"a,b\n1,x\n", "a,b,c\n2,y,3\n"}).message,
            "1.csv has a column \"c\", which 0.csv has not");
  EXPECT_EQ(ErrorOf({"name,city\nA,B\n", "C,D\nE,F\n"}).message,
            "1.csv has a column \"c\", which 0.csv has not");
}

TEST_F(SnifferTest, ColumnsMayBeThoseOfAllFiles) {
  const SniffOptions all{.union_by_name = true};
  EXPECT_EQ(OfAll({"a,b\n1,x\n", "b,c\ny,2\n"}, all), "a:whole b:text c:whole header ");
  EXPECT_EQ(PlacesOf({"a,b\n1,x\n", "b,c\ny,2\n"}, all), "header:01 header:12 ");
  EXPECT_EQ(OfAll({"1,x\n", "2\n"}, all), "column0:whole column1:text ");
}

TEST_F(SnifferTest, FilesWithoutNamesGoByPlace) {
  EXPECT_EQ(PlacesOf({"1,x\n", "2,y\n"}), "rows:01 rows:01 ");
  EXPECT_EQ(OfAll({"a,b\n1,x\n", "2,y\n3,z\n"}), "a:whole b:text header ");
  EXPECT_EQ(PlacesOf({"a,b\n1,x\n", "2,y\n3,z\n"}), "header:01 rows:01 ") << "its first row is none of names";
  EXPECT_EQ(OfAll({"2,y\n3,z\n", "a,b\n1,x\n"}), "a:whole b:text ");
  EXPECT_EQ(ErrorOf({"1,x\n", "2,y,3\n"}).sqlstate, "22P04");
  EXPECT_EQ(ErrorOf({"1,x\n", "a,b\n1,x\n", "b,a\nx,1\n"}).sqlstate, "22P04");
}

TEST_F(SnifferTest, FormsAreThoseOfAllFiles) {
  EXPECT_EQ(OfAll({"a,b\n1,x\n", "a,b\n2.5,y\n"}), "a:number b:text header ");
  EXPECT_EQ(OfAll({"a\n1\n", "a\nq\n"}), "a:text header ");
  EXPECT_EQ(OfAll({"d\n01/02/2020\n", "d\n12/31/2020\n"}), "d:date_mdy header ");
  EXPECT_EQ(OfAll({"a,b\n", "a,b\n2,y\n"}), "a:whole b:text header ");
  EXPECT_EQ(OfAll({"", "a,b\n2,y\n", "\n"}), "a:whole b:text ") << "a file without a row has no columns";
}

}  // namespace
}  // namespace nam::csv
