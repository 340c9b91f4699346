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

TEST_F(FileQueryTest, RowsComeInTheFilesOrder) {
  std::string text[2];
  for (int i = 0; i < 400'000; ++i) absl::StrAppend(&text[i / 200'000], i, ",", i % 7, ",some text\n");
  Write("o1.csv", text[0]), Write("o2.csv", text[1]);
  const std::string files = folder_.File("o*.csv");
  for (const std::string& from :
       {absl::StrCat("'", files, "'"), absl::StrCat("(select * from '", files, "' where column1 = 3) x")}) {
    const auto rows = Run(absl::StrCat("select column0 from ", from));
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(std::is_sorted(rows->rows.begin(), rows->rows.end(), [](const auto& a, const auto& b) {
      return a[0].number < b[0].number;
    })) << from;
  }
  EXPECT_EQ(Rows(absl::StrCat("select column0 from '", files, "' limit 2 offset 250000")),
            (TextRows{{"250000"}, {"250001"}}));
  EXPECT_EQ(Rows(absl::StrCat("select count(*), sum(column0), min(length(column2)) from '", files, "'")),
            (TextRows{{"400000", "79999800000", "9"}}));
}

TEST_F(FileQueryTest, ALimitStopsReading) {
  std::string text = "n,s\n";
  while (text.size() < 48 << 20) absl::StrAppend(&text, text.size(), ",some text that makes rows long\n");
  const std::string path = Write("long.csv", text + "x,y\n");
  // Of the process, whose other reads are few.
  const auto bytes_read = [] {
    std::ifstream io("/proc/self/io");
    std::string name;
    uint64_t bytes = 0;
    io >> name >> bytes;
    EXPECT_EQ(name, "rchar:");
    return bytes;
  };
  const uint64_t before = bytes_read();
  EXPECT_EQ(Rows(absl::StrCat("select * from '", path, "' limit 1")),
            (TextRows{{"4", "some text that makes rows long"}}));
  EXPECT_EQ(Rows(absl::StrCat("select n from '", path, "' where n > 1000 limit 1")).size(), 1u);
  EXPECT_EQ(Rows(absl::StrCat("select (select s from '", path, "' limit 1)")),
            (TextRows{{"some text that makes rows long"}}));
  EXPECT_LT(bytes_read() - before, 24u << 20) << "some portions, and what is guessed from, of three queries";
  EXPECT_EQ(ErrorOf(absl::StrCat("select max(s) from '", path, "'")).sqlstate, "22P02");
}

TEST_F(FileQueryTest, ARowThatCannotBeReadIsAnErrorBehindTheRowsBeforeIt) {
  std::string text = "n\n";
  while (text.size() < 2 << 20) absl::StrAppend(&text, "17\n");
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const std::string path = Write("late.csv", text + "x\n18\n");
  EXPECT_EQ(Rows(absl::StrCat("select count(*) from (select from '", path, "' limit ", lines - 1, ") l")),
            (TextRows{{absl::StrCat(lines - 1)}}));
  EXPECT_EQ(
      ErrorOf(absl::StrCat("select count(*) from (select from '", path, "' limit ", lines, ") l")).sqlstate,
      "22P02");
}

TEST_F(FileQueryTest, FilesStandInSubqueriesAndMeetThemselves) {
  std::string text = "n,m\n";
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&text, i, ",", i / 2, "\n");
  const std::string path = Write("self.csv", text);
  EXPECT_EQ(
      Rows(absl::StrCat("select count(*), sum(a.n) from '", path, "' a join '", path, "' b on a.n = b.m")),
      (TextRows{{"50000", "624975000"}}));
  EXPECT_EQ(Rows(absl::StrCat("select id, (select max(n) from '", path, "' f where m = p.id) from '", people_,
                              "' p order by id")),
            (TextRows{{"1", "3"}, {"2", "5"}, {"3", "7"}}));
  EXPECT_EQ(Rows(absl::StrCat("select count(*) from '", people_, "' where id in (select m from '", path,
                              "' where n < 5)")),
            (TextRows{{"2"}}));
  EXPECT_EQ(Rows(absl::StrCat("select name from '", people_, "' union all select 'z' from '", path,
                              "' where n = 7 order by 1")),
            (TextRows{{"Ada"}, {"Grace"}, {"z"}, {"NULL"}}));
  EXPECT_EQ(
      Rows(absl::StrCat("select n, rank() over (order by m desc) from '", path, "' order by n limit 1")),
      (TextRows{{"0", "49999"}}));
}

TEST_F(FileQueryTest, LargerTablesDoNotComeToTheSession) {
  Command("create table few (id int) with (storage = columnar)");
  Command("insert into few select i from generate_series(1, 9) g (i)");
  Command("create table many (id int) with (storage = columnar)");
  Command("insert into many select i from generate_series(1, 30000) g (i)");
  const auto scanned_by_servers = [&](const std::string& sql) {
    bool session = false;
    for (const auto& line : Rows(absl::StrCat("explain ", sql))) {
      session = session || absl::StartsWith(line[0], "Session");
      if (absl::StrContains(line[0], "scan read_csv(")) return !session;
    }
    ADD_FAILURE() << sql;
    return false;
  };
  const std::string with = absl::StrCat("select count(*) from '", people_, "' p join ");
  EXPECT_FALSE(scanned_by_servers(with + "few on few.id = p.id"));
  EXPECT_TRUE(scanned_by_servers(with + "many on many.id = p.id"));
  EXPECT_EQ(Rows(with + "few on few.id = p.id"), (TextRows{{"3"}}));
  EXPECT_EQ(Rows(with + "many on many.id = p.id"), (TextRows{{"3"}}));
  EXPECT_EQ(Rows(absl::StrCat("select count(*) from many left join (select id from '", people_,
                              "' union all select id from '", people_, "') f on f.id = many.id")),
            (TextRows{{"30003"}}));
  EXPECT_EQ(Tables(), 2u) << "what was loaded is gone";
}

TEST_F(FileQueryTest, WhatTheSessionCannotHoldServersDo) {
  std::string text = "n\n";
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&text, i, "\n");
  const std::string path = Write("many.csv", text);
  Command("set nam.result_mib_max = 4");
  const std::string query =
      absl::StrCat("select count(*), sum(n) from (select distinct n from '", path, "') d");
  EXPECT_EQ(Rows(query), (TextRows{{"300000", "44999850000"}}));
  const TextRows plan = Rows("explain analyze " + query);
  EXPECT_TRUE(std::any_of(plan.begin(), plan.end(), [](const auto& line) {
    return absl::StrContains(line[0], "Planned anew: the files' rows need more memory than the session has");
  }));
}

/// Cancels the statement when its first rows come.
class CancelsAtOnce final : public session::RowReceiver {
 public:
  explicit CancelsAtOnce(session::Session& session) : session_(session) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch& rows) override {
    rows_ += rows.rows();
    session_.Cancel();
    return absl::OkStatus();
  }
  uint64_t rows() const { return rows_; }

 private:
  session::Session& session_;
  uint64_t rows_ = 0;
};

TEST_F(FileQueryTest, ACancelledQueryReadsNoFurther) {
  std::string text = "n\n";
  while (text.size() < 24 << 20) absl::StrAppend(&text, text.size(), "\n");
  const std::string path = Write("long.csv", text);
  CancelsAtOnce receiver(cluster_.session());
  const auto result = cluster_.session().Execute(absl::StrCat("select n from '", path, "'"), receiver);
  EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "57014") << result.status();
  EXPECT_LT(receiver.rows(), 1'000'000u);
  EXPECT_EQ(Rows(absl::StrCat("select n from '", path, "' limit 1")), (TextRows{{"2"}}));
}

TEST_F(FileQueryTest, CompressedFilesStopAndRunToTheirEnd) {
  std::string text = "n\n";
  for (int i = 0; i < 500'000; ++i) absl::StrAppend(&text, i, "\n");
  const std::string plain = Write("c.csv", text);
  const std::string packed = folder_.File("c.csv.gz");
  Command(absl::StrCat("copy (select n from '", plain, "') to '", packed, "' with (header)"));
  EXPECT_EQ(Rows(absl::StrCat("select n from '", packed, "' limit 1")), (TextRows{{"0"}}));
  EXPECT_EQ(Rows(absl::StrCat("select count(*), sum(n) from '", packed, "'")),
            (TextRows{{"500000", "124999750000"}}));
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

TEST_F(FileQueryTest, PreparedQueriesReadTheFileAsItIsThen) {
  Command(absl::StrCat("prepare p (int) as select name from '", people_, "' where id = $1"));
  EXPECT_EQ(Rows("execute p(2)"), (TextRows{{"Grace"}}));
  Write("people.csv", "id,name\n1,Kurt\n2,Alan\n");
  EXPECT_EQ(Rows("execute p(2)"), (TextRows{{"Alan"}}));
  Write("people.csv", "id,name\n1,7\n");
  EXPECT_EQ(Rows("execute p(1)"), (TextRows{{"7"}}));
}

}  // namespace
}  // namespace nam::testing
