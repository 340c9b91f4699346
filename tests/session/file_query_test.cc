#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalog/attachment.h"
#include "storage/row_bytes.h"
#include "tests/session/file_session.h"

/// Files in a query's FROM.
namespace nam::testing {
namespace {

constexpr char kPeopleWithHeights[] =
    "id,name,born,height\n1,Ada,1815-12-10,1.5\n2,Grace,1906-12-09,1.6\n3,,,\n";

class FileQueryTest : public FileSession {
 protected:
  /// The memory that loads and tables hold, and how many tables there are.
  size_t Tables() { return cluster_.attachment().catalog().ListTables()->size(); }
  const std::string people_ = Write("people.csv", kPeopleWithHeights);
};

TEST_F(FileQueryTest, FilesMeetTables) {
  Command("create table scores (who text, score int) with (storage = columnar)");
  Command("insert into scores values ('Ada', 7), ('Grace', 9), ('Ada', 3)");
  Command("create table rows (id int primary key, note text)");
  Command("insert into rows values (1, 'first')");
  EXPECT_EQ(Rows(absl::StrCat("select name, sum(score) from scores join '", people_,
                              "' p on p.name = who group by name order by 1")),
            (TextRows{{"Ada", "10"}, {"Grace", "9"}}));
  EXPECT_EQ(Rows(absl::StrCat("select note, name from rows r join '", people_, "' p on p.id = r.id")),
            (TextRows{{"first", "Ada"}}));
  EXPECT_EQ(Command(absl::StrCat("insert into scores select name, id from '", people_, "' where id = 2")),
            "INSERT 0 1");
  EXPECT_EQ(Command(absl::StrCat("insert into rows select id, name from '", people_, "' where id > 1")),
            "INSERT 0 2");
  EXPECT_EQ(Rows("select count(*), sum(score) from scores"), (TextRows{{"4", "21"}}));
  EXPECT_EQ(Tables(), 3u) << "and that of the transactions";
}

TEST_F(FileQueryTest, ManyFilesAreOneTable) {
  std::string text = "n,s\n";
  for (int i = 0; i < 30'000; ++i) absl::StrAppend(&text, i, ",text ", i % 1000, "\n");
  for (const char* const name : {"part1.csv", "part2.csv", "part3.csv"}) Write(name, text);
  const std::string pattern = folder_.File("part*.csv");
  EXPECT_EQ(Rows(absl::StrCat("select count(*), sum(n), count(distinct s) from '", pattern, "'")),
            (TextRows{{"90000", "1349955000", "1000"}}));
}

TEST_F(FileQueryTest, CodesKeepTheirLeadingZeros) {
  const std::string path = Write("zip.csv", "zip,n,balance\n01234,0,0.5\n1234,-007,7\n");
  EXPECT_EQ(Rows(absl::StrCat("select zip, n + 1, balance * 2 from '", path, "' order by zip")),
            (TextRows{{"01234", "1", "1"}, {"1234", "-6", "14"}}));
  std::string text = "code\n";
  while (text.size() < 3 << 20) absl::StrAppend(&text, text.size(), "\n");
  const SqlError late =
      ErrorOf(absl::StrCat("select count(*) from '", Write("late.csv", text + "007\n"), "'"));
  EXPECT_EQ(late.sqlstate, "22P02");
  EXPECT_TRUE(absl::StrContains(late.message, "\"007\" is not written as the first rows are"))
      << late.message;
}

TEST_F(FileQueryTest, DatesBehindTheFirstRowsAreOfTheirOrder) {
  std::string text = "d\n";
  while (text.size() < 3 << 20) absl::StrAppend(&text, "2020-12-31\n");
  const std::string path = Write("late.csv", text + "01/02/2020\n");
  EXPECT_EQ(ErrorOf(absl::StrCat("select max(d) from '", path, "'")).sqlstate, "22P02")
      << "is it in January, or in February?";
}

TEST_F(FileQueryTest, TwoThousandColumnsAreRead) {
  std::string names, values, texts;
  for (int c = 0; c < 2'000; ++c) {
    absl::StrAppend(&names, c == 0 ? "" : ",", "c", c);
    absl::StrAppend(&values, c == 0 ? "" : ",", c);
    absl::StrAppend(&texts, c == 0 ? "" : ",", c % 2 == 0 ? absl::StrCat("text ", c) : "0.5");
  }
  EXPECT_EQ(Rows(absl::StrCat("select c0 + c1999, c1000 from '",
                              Write("wide.csv", absl::StrCat(names, "\n", values, "\n")), "'")),
            (TextRows{{"1999", "1000"}}));
  EXPECT_EQ(Rows(absl::StrCat("select c1998, c1999, count(*) from '",
                              Write("texts.csv", absl::StrCat(names, "\n", texts, "\n", texts, "\n")),
                              "' group by 1, 2")),
            (TextRows{{"text 1998", "0.5", "2"}}));
}

TEST_F(FileQueryTest, RowsOfTheMostColumnsAreStoredAndRead) {
  constexpr int kColumns = storage::kColumnsMax;
  std::string names = "c0", values = "9223372036854775807";
  for (int c = 1; c < kColumns; ++c) {
    absl::StrAppend(&names, ",c", c);
    absl::StrAppend(&values, ",9223372036854775807");
  }
  const std::string text = absl::StrCat(names, "\n", values, "\n");
  Command(absl::StrCat("create table widest as from '", Write("widest.csv", text), "'"));
  EXPECT_EQ(Rows(absl::StrCat("select c0, c", kColumns - 1, " from widest order by c1")),
            (TextRows{{"9223372036854775807", "9223372036854775807"}}));
  const std::string copy = folder_.File("copy.csv");
  Command(absl::StrCat("copy widest to '", copy, "' with (format csv, header)"));
  std::ifstream in(copy);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
  const std::string wider = Write("wider.csv", absl::StrCat(names, ",one\n", values, ",1\n"));
  const SqlError error = ErrorOf(absl::StrCat("create table wider as from '", wider, "'"));
  EXPECT_EQ(error.sqlstate, "54000") << error.message;
  EXPECT_TRUE(absl::StrContains(error.message, "at most 4000 columns, not 4001")) << error.message;
}

TEST_F(FileQueryTest, TheSampleMayBeLarger) {
  std::string text = "n\n";
  while (text.size() < 3 << 20) absl::StrAppend(&text, "17\n");
  const std::string path = Write("late.csv", text + "x\n");
  EXPECT_EQ(ErrorOf(absl::StrCat("select max(n) from '", path, "'")).sqlstate, "22P02");
  EXPECT_EQ(Rows(absl::StrCat("select max(n) from read_csv('", path, "', sample_size => -1)")),
            (TextRows{{"x"}}));
  EXPECT_EQ(Rows(absl::StrCat("select max(n) from read_csv('", path, "', types => 'n text')")),
            (TextRows{{"x"}}));
}

TEST_F(FileQueryTest, ParquetIsNotRead) {
  const SqlError error =
      ErrorOf(absl::StrCat("select * from '", Write("p.parquet", std::string("PAR1\0\n\1PAR1", 10)), "'"));
  EXPECT_EQ(error.sqlstate, "0A000");
  EXPECT_TRUE(absl::StrContains(error.message, "Parquet")) << error.message;
}

TEST_F(FileQueryTest, AFileIsReadAnewByEachStatement) {
  const std::string query = absl::StrCat("select count(*) from '", people_, "'");
  EXPECT_EQ(Rows(query), (TextRows{{"3"}}));
  Write("people.csv", absl::StrCat(kPeopleWithHeights, "4,Kurt,1906-04-28,1.7\n"));
  EXPECT_EQ(Rows(query), (TextRows{{"4"}}));
}

TEST_F(FileQueryTest, ErrorsNameTheFileAndTheLine) {
  EXPECT_EQ(ErrorOf("select * from '/nowhere/a.csv'").sqlstate, "58P01");
  const SqlError directory = ErrorOf("select * from '/'");
  EXPECT_EQ(directory.sqlstate, "42809");
  EXPECT_EQ(directory.message, "cannot read \"/\": Is a directory");
  EXPECT_EQ(directory.hint, "") << "COPY could not read it either";
  std::string text = "n\n";
  while (text.size() < 3 << 20) absl::StrAppend(&text, text.size(), "\n");
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::string path = Write("late.csv", text + "x\n");
  const SqlError error = ErrorOf(absl::StrCat("select sum(n) from '", path, "'"));
  EXPECT_EQ(error.sqlstate, "22P02");
  EXPECT_TRUE(absl::StrContains(error.message, absl::StrCat("late.csv:", lines + 1, ": column n")))
      << error.message;
  EXPECT_TRUE(absl::StrContains(error.hint, "all_varchar")) << error.hint;
  EXPECT_EQ(ErrorOf("select * from ''").sqlstate, "42601");
  EXPECT_EQ(ErrorOf("delete from 'x.csv'").sqlstate, "42601");
  EXPECT_EQ(ErrorOf("insert into 'x.csv' values (1)").sqlstate, "42601");
}

TEST_F(FileQueryTest, ExplainTellsOfTheFile) {
  const TextRows plan = Rows(absl::StrCat("explain select count(*) from '", people_, "'"));
  EXPECT_TRUE(std::any_of(plan.begin(), plan.end(), [](const auto& line) {
    return absl::StrContains(line[0], "read_csv('") && absl::StrContains(line[0], "people.csv')");
  }));
  EXPECT_EQ(Command(absl::StrCat("explain analyze select count(*) from '", people_, "'")), "EXPLAIN");
}

}  // namespace
}  // namespace nam::testing
