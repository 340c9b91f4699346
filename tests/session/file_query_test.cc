#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalog/attachment.h"
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

TEST_F(FileQueryTest, AFileIsQueriedByItsName) {
  EXPECT_EQ(Rows(absl::StrCat("select name, born, height * 2 from '", people_, "' where id < 3 order by id")),
            (TextRows{{"Ada", "1815-12-10", "3"}, {"Grace", "1906-12-09", "3.2"}}));
  EXPECT_EQ(Rows(absl::StrCat("select count(*), count(people.name) from '", people_, "'")),
            (TextRows{{"3", "2"}}))
      << "it is called as the file is";
  EXPECT_EQ(Rows(absl::StrCat("select p.n from '", people_, "' as p (i, n) where i = 2")),
            (TextRows{{"Grace"}}));
  EXPECT_EQ(Rows(absl::StrCat("FROM '", people_, "' LIMIT 1")),
            (TextRows{{"1", "Ada", "1815-12-10", "1.5"}}));
  EXPECT_EQ(Rows(absl::StrCat("select a.id, b.id from '", people_, "' a, '", people_,
                              "' b where a.id = b.id + 1 order by 1")),
            (TextRows{{"2", "1"}, {"3", "2"}}));
  EXPECT_EQ(Rows(absl::StrCat(
                "with p as (select * from '", people_,
                "') select substring('abc' from 'b'), max(id) from p where name is distinct from 'x'")),
            (TextRows{{"b", "3"}}));
  EXPECT_EQ(Tables(), 0u) << "no catalog has such a table";
}

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

TEST_F(FileQueryTest, TablesAreMadeOfFiles) {
  EXPECT_EQ(Command(absl::StrCat("create table t as from '", people_, "'")), "SELECT 3");
  EXPECT_EQ(Command(absl::StrCat("create table u as select * from '", people_, "'")), "SELECT 3");
  EXPECT_EQ(
      Command(absl::StrCat("create table v as select id, upper(name) n from '", people_, "' where id < 3")),
      "SELECT 2");
  EXPECT_EQ(Rows("select * from t order by id"), Rows("select * from u order by id"));
  EXPECT_EQ(Rows("select n from v order by id"), (TextRows{{"ADA"}, {"GRACE"}}));
}

TEST_F(FileQueryTest, ReadCsvTakesArguments) {
  const std::string path = Write("odd.txt", "1;'a;b'\n2;-\n");
  EXPECT_EQ(
      Rows(absl::StrCat("select column1 + 1, column2 from read_csv('", path,
                        "', delimiter => ';', quote => '''', nullstr => '-', header => false) order by 1")),
      (TextRows{{"2", "a;b"}, {"3", "NULL"}}));
  EXPECT_EQ(
      Rows(absl::StrCat("select id || '!' from read_csv('", people_, "', all_varchar => true) order by 1")),
      (TextRows{{"1!"}, {"2!"}, {"3!"}}));
  EXPECT_EQ(ErrorOf("select * from read_csv('x', speed => 1)").sqlstate, "22023");
}

TEST_F(FileQueryTest, ManyFilesAreOneTable) {
  std::string text = "n,s\n";
  for (int i = 0; i < 30'000; ++i) absl::StrAppend(&text, i, ",text ", i % 1000, "\n");
  for (const char* const name : {"part1.csv", "part2.csv", "part3.csv"}) Write(name, text);
  const std::string pattern = folder_.File("part*.csv");
  EXPECT_EQ(Rows(absl::StrCat("select count(*), sum(n), count(distinct s) from '", pattern, "'")),
            (TextRows{{"90000", "1349955000", "1000"}}));
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

TEST_F(FileQueryTest, PreparedQueriesReadTheFileWhenTheyRun) {
  Command(absl::StrCat("prepare p (int) as select name from '", people_, "' where id = $1"));
  EXPECT_EQ(Rows("execute p(2)"), (TextRows{{"Grace"}}));
  EXPECT_EQ(Rows("execute p(1)"), (TextRows{{"Ada"}}));
}

TEST_F(FileQueryTest, ACopyMayBeOfAFile) {
  const std::string out = folder_.File("out.csv");
  EXPECT_EQ(Command(absl::StrCat("copy (select name from '", people_, "' where id = 1) to '", out, "'")),
            "COPY 1");
  EXPECT_EQ(Rows(absl::StrCat("select * from read_csv('", out, "', header => false)")), (TextRows{{"Ada"}}));
}

}  // namespace
}  // namespace nam::testing
