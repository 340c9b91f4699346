#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/session/file_session.h"

/// CREATE TABLE of columnar tables, and COPY … FROM into both kinds.
namespace nam::testing {
namespace {

class CopyTest : public FileSession {
 protected:
  std::string Copy(const std::string& table, const std::string& path, const std::string& options = "") {
    return absl::StrCat("copy ", table, " from '", path, "'", options.empty() ? "" : " with (", options,
                        options.empty() ? "" : ")");
  }
};

constexpr char kPeopleWithBalances[] =
    "id,name,born,balance\n"
    "1,Ada,1815-12-10,12.50\n"
    "2,\"Grace, Hopper\",1906-12-09,-0.05\n"
    "3,,,\n"
    "4,\"say \"\"hi\"\"\",2024-02-29,7\n";

/// The same statements on either kind of table.
class EitherStorage : public CopyTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Create(const std::string& columns) {
    return absl::StrCat("create table people (", columns, ") with (storage = ", GetParam(), ")");
  }
};
INSTANTIATE_TEST_SUITE_P(Storage, EitherStorage, ::testing::Values("columnar", "record"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EitherStorage, ACsvFileBecomesRows) {
  Command(Create("id int, name text, born date, balance decimal(9,2)"));
  EXPECT_EQ(Command(Copy("people", Write("people.csv", kPeopleWithBalances), "header")), "COPY 4");
  EXPECT_EQ(Rows("select * from people order by id"), (TextRows{{"1", "Ada", "1815-12-10", "12.50"},
                                                                {"2", "Grace, Hopper", "1906-12-09", "-0.05"},
                                                                {"3", "NULL", "NULL", "NULL"},
                                                                {"4", "say \"hi\"", "2024-02-29", "7.00"}}));
  EXPECT_EQ(Rows("select count(*), count(name), min(born), sum(balance) from people"),
            (TextRows{{"4", "3", "1815-12-10", "19.45"}}));
}

/// Has the rows of COPY … FROM STDIN.
class ClientWithRows final : public session::RowReceiver {
 public:
  explicit ClientWithRows(std::string rows) : rows_(std::move(rows)) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch&) override { return absl::OkStatus(); }
  std::unique_ptr<csv::ByteSource> Input() override { return std::make_unique<Source>(rows_); }

 private:
  class Source final : public csv::ByteSource {
   public:
    explicit Source(std::string& rows) : rows_(rows) {}
    absl::StatusOr<size_t> Read(char* into, size_t bytes) override {
      const size_t n = rows_.copy(into, std::min<size_t>(bytes, 7));
      rows_.erase(0, n);
      return n;
    }
    const std::string& name() const override { return name_; }
    uint64_t bytes() const override { return 0; }

   private:
    std::string& rows_;
    const std::string name_ = "the client";
  };
  std::string rows_;
};

TEST_P(EitherStorage, TheClientHasTheRowsOfStandardInput) {
  Command(Create("id int, name text"));
  ClientWithRows rows("id,name\n1,Ada\n2,\"Grace\nHopper\"\n");
  const auto copied = cluster_.session().Execute("copy people from stdin with (format csv, header)", rows);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->command, "COPY 2");
  ClientWithRows bad("3,Alan\nx,y\n");
  const auto refused = cluster_.session().Execute("copy people from stdin with (format csv)", bad);
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "the client:2: ")) << refused.status();
  EXPECT_EQ(Rows("select * from people order by id"), (TextRows{{"1", "Ada"}, {"2", "Grace\nHopper"}}));
}

TEST_P(EitherStorage, ColumnsMayBeNamed) {
  Command(Create("id int, name text, age smallint"));
  EXPECT_EQ(ErrorOf(Copy("people (ide)", Write("b.csv", "1\n"))).sqlstate, "42703");
  EXPECT_EQ(Command(Copy("people (age, id)", Write("a.csv", "30,1\n40,2\n"))), "COPY 2");
  EXPECT_EQ(Rows("select id, name, age from people order by id"),
            (TextRows{{"1", "NULL", "30"}, {"2", "NULL", "40"}}));
}

TEST_P(EitherStorage, EveryTypeIsStored) {
  Command(
      Create("id int, a boolean, b double precision, c timestamp, d interval, e uuid, f bytea, g char(3), "
             "h decimal(38,5), i real, j time, k timestamptz, l smallint"));
  EXPECT_EQ(Command(Copy("people",
                         Write("all.csv",
                               "1,t,1.5,2020-01-02 03:04:05.5,1 day 02:00:00,"
                               "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,\\x00ff,ab,"
                               "123456789012345678901234567890.12345,0.25,12:00:00,"
                               "2020-01-02 03:04:05+00,-7\n"
                               "2,,,,,,,,,,,,\n"
                               "3,f,NaN,9999-12-31 23:59:59,-1 mons,00000000-0000-0000-0000-000000000000,,"
                               "\"\",-0.00001,-1e30,00:00:00,1969-12-31 23:59:59+00,7\n"))),
            "COPY 3");
  EXPECT_EQ(
      Rows("select a, b, c, d, e, f, g, h, i, j, l from people order by id"),
      (TextRows{
          {"1", "1.5", "2020-01-02 03:04:05.5", "1 day 02:00:00", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
           "\\x00ff", "ab", "123456789012345678901234567890.12345", "0.25", "12:00:00", "-7"},
          {"NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"},
          {"0", "NaN", "9999-12-31 23:59:59", "-1 mons", "00000000-0000-0000-0000-000000000000", "NULL", "",
           "-0.00001", "-1e+30", "00:00:00", "7"}}));
  const auto ids = [&](const std::string& condition) {
    std::string all;
    for (const auto& row : Rows(absl::StrCat("select id from people where ", condition, " order by id")))
      absl::StrAppend(&all, row[0]);
    return all;
  };
  EXPECT_EQ(ids("a"), "1");
  EXPECT_EQ(ids("not a"), "3");
  EXPECT_EQ(ids("a is null"), "2");
  EXPECT_EQ(ids("b > 1e300"), "3");
  EXPECT_EQ(ids("b = 1.5"), "1");
  EXPECT_EQ(ids("c < timestamp '2021-01-01'"), "1");
  EXPECT_EQ(ids("d < interval '0'"), "3");
  EXPECT_EQ(ids("e = '00000000-0000-0000-0000-000000000000'"), "3");
  EXPECT_EQ(ids("f = '\\x00ff'"), "1");
  EXPECT_EQ(ids("g = 'ab'"), "1");
  EXPECT_EQ(ids("g = ''"), "3");
  EXPECT_EQ(ids("h > 100000000000000000000"), "1");
  EXPECT_EQ(ids("h in (-0.00001, 3)"), "3");
  EXPECT_EQ(ids("h is null"), "2");
  EXPECT_EQ(ids("i < 0"), "3");
  EXPECT_EQ(ids("j >= '11:00'"), "1");
  EXPECT_EQ(ids("k < timestamptz '1970-01-01 00:00:00+00'"), "3");
  EXPECT_EQ(Rows("select count(distinct e), max(h), min(b), max(d), max(k) > min(k), bool_or(a) from people"),
            (TextRows{{"2", "123456789012345678901234567890.12345", "1.5", "1 day 02:00:00", "1", "1"}}));
  for (const char* const column : {"a", "b", "c", "d", "e", "g", "h", "i", "j", "k", "l"}) {
    EXPECT_EQ(
        Rows(absl::StrCat("select count(*) from (select ", column, " from people group by ", column, ") x")),
        (TextRows{{"3"}}))
        << column;
    EXPECT_EQ(Rows(absl::StrCat("select x.id from people x join people y on x.", column, " = y.", column,
                                " order by 1")),
              (TextRows{{"1"}, {"3"}}))
        << column;
  }
}

/// So many different texts that they get no dictionary.
TEST_P(EitherStorage, ManyDifferentTextsAreQueried) {
  constexpr int kRows = 70'000;
  std::string text;
  for (int i = 0; i < kRows; ++i)
    absl::StrAppend(&text, i, ",", i % 10 == 0 ? "" : absl::StrCat("name ", i * 7919 % kRows), ",", i % 3,
                    "\n");
  Command(Create("id int, name text, three int"));
  EXPECT_EQ(Command(Copy("people", Write("many.csv", text))), absl::StrCat("COPY ", kRows));
  EXPECT_EQ(Rows("select count(*), count(name), count(distinct name), min(name), max(name) from people"),
            (TextRows{{"70000", "63000", "63000", "name 1", "name 9999"}}));
  EXPECT_EQ(Rows("select id from people where name = 'name 7919'"), (TextRows{{"1"}}));
  EXPECT_EQ(Rows("select count(*) from people where name is null"), (TextRows{{"7000"}}));
  EXPECT_EQ(Rows("select count(*) from people where name like '%99%' and three = 1"),
            Rows("select count(*) from people where three = 1 and position('99' in name) > 0"));
  EXPECT_EQ(Rows("select name from people where name < 'name 10005' order by name desc limit 2"),
            (TextRows{{"name 10004"}, {"name 10003"}}));
  EXPECT_EQ(Rows("select substr(name, 1, 6), count(*) from people group by 1 order by 1 nulls first limit 2"),
            (TextRows{{"NULL", "7000"}, {"name 1", "10000"}}));
  EXPECT_EQ(Rows("select count(*), sum(x.id - y.id) from people x join people y on x.name = y.name"),
            (TextRows{{"63000", "0"}}));
  EXPECT_EQ(Rows("select x.name, y.name from people x left join people y on y.id = x.id and y.three = 2 "
                 "where x.id between 7 and 9 order by x.id"),
            (TextRows{{"name 55433", "NULL"}, {"name 63352", "name 63352"}, {"name 1271", "NULL"}}));
  EXPECT_EQ(Rows("select name, three from people where id in (10, 11) order by id"),
            (TextRows{{"NULL", "1"}, {"name 17109", "2"}}));
}

TEST_P(EitherStorage, TextAndTblFilesAreRead) {
  Command(Create("id int, name text"));
  EXPECT_EQ(Command(Copy("people", Write("a.txt", "1\ta\\tb\n2\t\\N\n"))), "COPY 2");
  EXPECT_EQ(Rows("select id, name from people order by id"), (TextRows{{"1", "a\tb"}, {"2", "NULL"}}));
  Command("drop table people");
  Command(Create("id int, name text"));
  EXPECT_EQ(Command(Copy("people", Write("a.tbl", "1|it\"s|\n2|b|\n"))), "COPY 2");
  EXPECT_EQ(Rows("select id, name from people order by id"), (TextRows{{"1", "it\"s"}, {"2", "b"}}));
}

TEST_P(EitherStorage, TheFirstBadLineIsNamedAndNothingIsLoaded) {
  Command(Create("id int not null, name varchar(3), born date"));
  struct {
    const char *text, *state, *message;
  } constexpr kBad[] = {
      {"1,a,2020-01-01\nx,b,2020-01-01\ny,c,\n", "22P02", "bad.csv:2: column id: invalid integer: \"x\""},
      {"1,a,2020-01-01\n2,b\n", "22P04", "bad.csv:2: missing data for column \"born\""},
      {"1,a,2020-01-01,\n", "22P04", "bad.csv:1: extra data after last expected column"},
      {"1,\"a\nb\",\n2,abcd,\n", "22001", "bad.csv:3: column name: "},
      {"1,a,2020-02-30\n", "22008", "bad.csv:1: column born: "},
      {"1,a,\n,b,\n", "23502", "bad.csv:2: column id: "},
      {"99999999999,a,\n", "22003", "bad.csv:1: column id: "},
      {"1,\"a,\n", "22P04", "bad.csv:1: unterminated CSV quoted field"},
      {"1,\xff,\n", "22021", "bad.csv:1: column name: "},
  };
  for (const auto& bad : kBad) {
    const SqlError error = ErrorOf(Copy("people", Write("bad.csv", bad.text)));
    EXPECT_EQ(error.sqlstate, bad.state) << bad.text << error.message;
    EXPECT_TRUE(absl::StartsWith(error.message, bad.message)) << error.message;
    EXPECT_EQ(Rows("select count(*) from people"), (TextRows{{"0"}}));
  }
  EXPECT_EQ(ErrorOf(Copy("people", folder_.File("none.csv"))).sqlstate, "58P01");
  EXPECT_EQ(ErrorOf(Copy("nobody", folder_.File("none.csv"))).sqlstate, "42P01");
}

/// Only a line without a character is no row.
TEST_P(EitherStorage, AnEmptyTextAloneIsARowThatLacksFields) {
  Command(Create("id int, name text"));
  EXPECT_EQ(Command(Copy("people", Write("a.csv", "1,a\n\n\r\n2,b\n"))), "COPY 2");
  const SqlError error = ErrorOf(Copy("people", Write("b.csv", "3,c\n\n\"\"\n4,d\n")));
  EXPECT_EQ(error.sqlstate, "22P04");
  EXPECT_TRUE(absl::StartsWith(error.message, "b.csv:3: missing data for column \"name\"")) << error.message;
  EXPECT_EQ(ErrorOf(Copy("people", Write("b.csv", "3|c|\"\"\n"), "delimiter '|'")).sqlstate, "22P04")
      << "an empty text is more than a delimiter at the line's end";
  EXPECT_EQ(Rows("select count(*) from people"), (TextRows{{"2"}}));
}

TEST_P(EitherStorage, BadRowsMayBeLeftOut) {
  Command(Create("id int, name text"));
  const auto result = Run(Copy("people", Write("a.csv", "1,a\nx,b\n3\n4,d\n"), "on_error ignore"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->command, "COPY 2");
  ASSERT_EQ(result->warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(result->warnings[0].message, "2 rows were left out: a.csv:2: column id"))
      << result->warnings[0].message;
  EXPECT_EQ(Rows("select id, name from people order by id"), (TextRows{{"1", "a"}, {"4", "d"}}));
}

TEST_P(EitherStorage, HeadersMayBeMatched) {
  Command(Create("id int, name text"));
  const SqlError error = ErrorOf(Copy("people", Write("a.csv", "name,id\na,1\n"), "header match"));
  EXPECT_EQ(error.sqlstate, "22P04");
  EXPECT_TRUE(absl::StartsWith(error.message, "a.csv:1: column name mismatch")) << error.message;
  EXPECT_EQ(Command(Copy("people (name, id)", Write("a.csv", "name,id\na,1\n"), "header match")), "COPY 1");
}

TEST_P(EitherStorage, ManyRowsOfManyFiles) {
  constexpr int kFiles = 3, kRows = 20'000;
  Command(Create("id int, name text, amount decimal(12,2)"));
  for (int f = 0; f < kFiles; ++f) {
    std::string text = "id,name,amount\n";
    for (int i = 0; i < kRows; ++i) {
      const int id = f * kRows + i;
      absl::StrAppend(&text, id, ",\"n", id % 100, "\n,\",", id % 1000, ".25\n");
    }
    Write(absl::StrCat("part-", f, ".csv"), text);
  }
  EXPECT_EQ(Command(Copy("people", folder_.File("part-*.csv"), "format csv, header")), "COPY 60000");
  EXPECT_EQ(Rows("select count(*), count(distinct id), count(distinct name), sum(amount) from people"),
            (TextRows{{"60000", "60000", "100", "29985000.00"}}));
}

// ─── Columnar tables alone

TEST_F(CopyTest, AColumnarTableHasThePartitionsThatWereAskedFor) {
  Command("create table t (a int, b text, d date) with (partition_by = 'a:4,b:2', sort_by = 'd')");
  const auto table = cluster_.attachment().catalog().GetTable("t");
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE((*table)->has_record());
  EXPECT_EQ((*table)->partitions_size(), 8);
  EXPECT_EQ((*table)->sort_column(), "d");
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, i, ",x", i % 7, ",2024-01-", i % 9 + 10, "\n");
  EXPECT_EQ(Command(Copy("t", Write("t.csv", text))), "COPY 1000");
  EXPECT_EQ(Rows("select count(*), count(distinct b), min(d), max(d) from t where a < 500"),
            (TextRows{{"500", "7", "2024-01-10", "2024-01-18"}}));
  EXPECT_EQ((*cluster_.attachment().catalog().GetTable("t"))->partitions_size(), 8);
}

TEST_F(CopyTest, RowsBehindTheEndOfCopyMarkerAreRefusedWhereverItStands) {
  Command("create table t (a text) with (storage = columnar)");
  // A portion is a mebibyte, and this one.
  std::string text;
  for (int i = 0; i < 131'071; ++i) text += "1234567\n";
  text += "1234\n\\.\n";
  ASSERT_EQ(text.size(), size_t{1} << 20);
  for (const char* const name : {"a.txt", "a.csv"}) {
    EXPECT_EQ(Command(Copy("t", Write(name, text))), "COPY 131072");
    const SqlError error = ErrorOf(Copy("t", Write(name, text + "1\n")));
    EXPECT_EQ(error.sqlstate, "22P04");
    EXPECT_EQ(error.message, absl::StrCat(name, ":131073: rows stand behind the end-of-copy marker \\."));
  }
}

TEST_F(CopyTest, TwoCopiesIntoAnEmptyTableDoNotMeet) {
  Command("create table t (a int) with (storage = columnar)");
  const auto first = cluster_.NewSession(), second = cluster_.NewSession();
  ASSERT_TRUE(second->Execute("select count(*) from t").ok());
  // A pipe delays the first one until the second has finished.
  const std::string pipe = folder_.File("pipe.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  absl::Status waiting;
  std::thread thread([&] { waiting = first->Execute(Copy("t", pipe)).status(); });
  std::ofstream into(pipe);
  EXPECT_TRUE(second->Execute(Copy("t", Write("t.csv", "1\n2\n"))).ok());
  EXPECT_EQ(Rows("select sum(a) from t"), (TextRows{{"3"}}));
  into << "3\n";
  into.close();
  thread.join();
  EXPECT_TRUE(waiting.ok()) << waiting;
  EXPECT_EQ(Rows("select sum(a) from t"), (TextRows{{"6"}}));
}

TEST_F(CopyTest, ATableThatWasReplacedMeanwhileGetsNothing) {
  Command("create table t (a int) with (storage = columnar)");
  const auto first = cluster_.NewSession();
  const std::string pipe = folder_.File("pipe.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  absl::Status waiting;
  std::thread thread([&] { waiting = first->Execute(Copy("t", pipe)).status(); });
  std::ofstream into(pipe);
  Command("drop table t");
  Command("create table t (a int) with (storage = columnar)");
  into << "3\n";
  into.close();
  thread.join();
  ASSERT_TRUE(SqlErrorOf(waiting).has_value()) << waiting;
  EXPECT_EQ(SqlErrorOf(waiting)->sqlstate, "40001");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
}

TEST_P(EitherStorage, RefusedRowsAreKeptInAFile) {
  Command(Create("id int, name text"));
  const std::string bad = folder_.File("bad.csv");
  const auto result = Run(Copy("people", Write("a.csv", "id,name\n1,a\nx,\"b\n,c\"\n2,c,d\n3,d\n4"),
                               absl::StrCat("header, on_error ignore, rejects '", bad, "'")));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->command, "COPY 2");
  std::ifstream file(bad);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "x,\"b\n,c\"\n2,c,d\n4\n")
      << "as they were";
  Write("bad.csv", "old");
  EXPECT_EQ(ErrorOf(Copy("people", Write("b.csv", "1,\"open\n"),
                         absl::StrCat("on_error ignore, rejects '", bad, "'")))
                .sqlstate,
            "22P04");
  std::ifstream old(bad);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "old") << "a COPY that fails leaves it";
  EXPECT_EQ(ErrorOf(Copy("people", folder_.File("a.csv"),
                         absl::StrCat("on_error ignore, rejects '", folder_.File("a.csv"), "'")))
                .sqlstate,
            "22023");
}

// ─── Record tables alone

TEST_F(CopyTest, ALargeCopyIntoRecordsTellsOfColumnarTables) {
  Command("create table t (n int)");
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "1\n";
  const std::string path = Write("a.csv", text);
  const auto result = Run(Copy("t", path, "batch 100000"));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->warnings.size(), 1u);
  EXPECT_EQ(result->warnings[0].sqlstate, "00000");
  EXPECT_TRUE(absl::StrContains(result->warnings[0].message, "columnar"));
}

/// The most memory that this process has had since the last call.
class PeakMemory {
 public:
  PeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }
  uint64_t Bytes() const {
    std::ifstream status("/proc/self/status");
    std::string word;
    uint64_t kib = 0;
    while (status >> word) {
      if (word == "VmHWM:") status >> kib;
    }
    return kib << 10;
  }
};

TEST_F(CopyTest, ALoadTakesNoMoreMemoryThanItMay) {
  constexpr uint64_t kMebibyte = 1 << 20;
  Command("create table t (a bigint, b text) with (storage = columnar)");
  std::string text;
  for (int i = 0; text.size() < 200 * kMebibyte; ++i)
    absl::StrAppend(&text, int64_t{i} * 1'000'000'007, ",this text is another one in every row ", i, "\n");
  const std::string path = Write("large.csv", text);
  std::string().swap(text);
  Command("insert into t values (1, 'old')");
  Command("set nam.load_mib_max = '32MB'");
  const uint64_t before = PeakMemory().Bytes();
  const PeakMemory peak;
  const SqlError error = ErrorOf(Copy("t", path));
  EXPECT_EQ(error.sqlstate, "53200");
  EXPECT_TRUE(absl::StrContains(error.hint, "nam.load_mib_max")) << error.hint;
  EXPECT_LT(peak.Bytes(), before + 96 * kMebibyte);
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"1"}})) << "nothing of it stays";
  EXPECT_EQ(Rows(absl::StrCat("select count(*) > 1000000 from '", path, "'")), (TextRows{{"1"}}))
      << "nothing is loaded for it";
  EXPECT_EQ(ErrorOf("insert into t select i, 'text ' || i from generate_series(1, 3000000) g (i)").sqlstate,
            "53200");
}

}  // namespace
}  // namespace nam::testing
