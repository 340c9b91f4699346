#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/unique_fd.h"
#include "tests/session/file_session.h"

/// COPY … TO, and COPY of its output back in.
namespace nam::testing {
namespace {

/// The bytes that COPY … TO STDOUT sends.
class Output final : public session::RowReceiver {
 public:
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch&) override { return absl::InternalError("a row"); }
  absl::Status Write(std::string_view bytes) override {
    text.append(bytes);
    return absl::OkStatus();
  }
  std::string text;
};

class CopyToTest : public FileSession {
 protected:
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string OutputOf(const std::string& sql) {
    Output output;
    const auto result = cluster_.session().Execute(sql, output);
    EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
    return output.text;
  }
  size_t Files() const {
    const std::filesystem::path path(folder_.File(""));
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

TEST_F(CopyToTest, RowsBecomeAFile) {
  Command("create table t (id int, name text, born date) with (storage = columnar)");
  Command("insert into t values (1, 'Ada', '1815-12-10'), (2, null, null), (3, 'a, \"b\"', '2000-01-01')");
  const std::string path = folder_.File("t.csv");
  EXPECT_EQ(Command(absl::StrCat("copy (select * from t order by id) to '", path, "' (header)")), "COPY 3");
  EXPECT_EQ(TextOf(path), "id,name,born\n1,Ada,1815-12-10\n2,,\n3,\"a, \"\"b\"\"\",2000-01-01\n");
  EXPECT_EQ(OutputOf("copy (select * from t order by id) to stdout"),
            "1\tAda\t1815-12-10\n2\t\\N\t\\N\n3\ta, \"b\"\t2000-01-01\n");
  EXPECT_EQ(
      OutputOf("copy (select name, id from t where id < 3 order by id) to stdout csv header force quote "
               "name"),
      "name,id\n\"Ada\",1\n,2\n");
  EXPECT_EQ(OutputOf("copy (select 1 where false) to stdout (format csv, header)"), "?column?\n");
  EXPECT_EQ(
      OutputOf("copy (values (1, 'x y')) to stdout (format csv, force_quote *, quote '''', delimiter ' ')"),
      "'1' 'x y'\n");
  EXPECT_EQ(ErrorOf("copy t to stdout").sqlstate, "0A000") << "a client that takes none";
}

TEST_F(CopyToTest, ATableMayBeOfRecords) {
  Command("create table t (id int primary key, name text, note text)");
  Command("create table without_key (a int)");
  Command("insert into t values (1, 'one', null)");
  Command("insert into without_key values (7)");
  EXPECT_EQ(OutputOf("copy t (name, id) to stdout"), "one\t1\n");
  EXPECT_EQ(OutputOf("copy without_key to stdout"), "7\n") << "without the hidden key";
  Command("begin");
  Command("insert into t values (2, 'two', 'mine')");
  EXPECT_EQ(OutputOf("copy (select * from t order by id) to stdout (null '-')"), "1\tone\t-\n2\ttwo\tmine\n");
  Command("rollback");
  EXPECT_EQ(OutputOf("copy t to stdout csv"), "1,one,\n");
}

TEST_F(CopyToTest, NumericsKeepTheirScales) {
  const std::string path = folder_.File("n.csv");
  for (const char* const storage : {"columnar", "record"}) {
    SCOPED_TRACE(storage);
    for (const char* const table : {"n", "m"}) {
      Command(absl::StrCat("drop table if exists ", table));
      const bool columnar = storage == std::string("columnar");
      Command(absl::StrCat("create table ", table, " (id int", columnar ? "" : " primary key",
                           ", x numeric, y numeric not null) with (storage = ", storage, ")"));
    }
    Command("insert into n values (1, 1.0, 1), (2, '1.00', -0.50), (3, null, 1e-10), (4, 1 / 3.0, 12e3)");
    Command(absl::StrCat("copy n to '", path, "' (format csv)"));
    Command(absl::StrCat("copy m from '", path, "' (format csv)"));
    for (const char* const table : {"n", "m"}) {
      EXPECT_EQ(OutputOf(absl::StrCat("copy (select * from ", table, " order by id) to stdout csv")),
                "1,1.0,1\n2,1.00,-0.50\n3,,0.0000000001\n4,0.33333333333333333333,12000\n");
      EXPECT_EQ(
          OutputOf(absl::StrCat("copy (select id from ", table, " where x = 1.000 order by id) to stdout")),
          "1\n2\n");
    }
    EXPECT_EQ(OutputOf("copy (select count(distinct x), sum(x), max(y) from m) to stdout csv"),
              "2,2.33333333333333333333,12000\n");
  }
  EXPECT_EQ(ErrorOf("insert into n values (5, 'abc', 1)").sqlstate, "22P02");
}

TEST_F(CopyToTest, TimestampsAreOfTheSessionsZone) {
  Command("create table t (at timestamptz) with (storage = columnar)");
  Command("insert into t values ('2024-07-01 12:00:00+00')");
  Command("set timezone = 'Europe/Berlin'");
  EXPECT_EQ(OutputOf("copy t to stdout"), "2024-07-01 14:00:00+02\n");
}

TEST_F(CopyToTest, AFailureLeavesTheOldFile) {
  Command("create table t (n bigint) with (storage = columnar)");
  Command("insert into t select i from generate_series(1, 300000) g (i)");
  const std::string path = Write("old.csv", "old");
  EXPECT_EQ(ErrorOf(absl::StrCat("copy (select 1 / (n - 299999) from t) to '", path, "'")).sqlstate, "22012");
  EXPECT_EQ(TextOf(path), "old");
  EXPECT_EQ(Files(), 1u) << "nothing is left behind";
  cluster_.session().Cancel();
  EXPECT_EQ(ErrorOf(absl::StrCat("copy t to '", path, "'")).sqlstate, "57014");
  EXPECT_EQ(TextOf(path), "old");
  EXPECT_EQ(ErrorOf("copy t to '/nowhere/t.csv'").sqlstate, "58P01");
  EXPECT_EQ(ErrorOf("copy t to '/tmp'").sqlstate, "42809");
  EXPECT_EQ(Command(absl::StrCat("copy t to '", path, "'")), "COPY 300000");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(CopyToTest, APipeThatStandsStillEndsWithTheStatementsTime) {
  Command("create table t (n bigint) with (storage = columnar)");
  Command("create table r (n bigint)");
  Command("insert into t select i from generate_series(1, 100000) g (i)");
  Command("insert into r values (1)");
  const std::string pipe = folder_.File("pipe.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Command("set statement_timeout = 100");
  for (const char* const table : {"t", "r"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat("copy ", table, " to '", pipe, "'")).sqlstate, "57014") << "no reader";
    EXPECT_EQ(ErrorOf(absl::StrCat("copy ", table, " from '", pipe, "'")).sqlstate, "57014") << "no writer";
  }
  EXPECT_EQ(ErrorOf(absl::StrCat("copy t from '", folder_.File("t.csv"), "' (on_error ignore, rejects '",
                                 pipe, "')"))
                .sqlstate,
            "57014");
  const UniqueFd reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(ErrorOf(absl::StrCat("copy t to '", pipe, "'")).sqlstate, "57014")
      << "a reader that reads nothing";
  std::string unread(1 << 16, '\0');
  while (read(reader.get(), unread.data(), unread.size()) > 0) {
  }
  Command("set statement_timeout = 0");
  EXPECT_EQ(Command(absl::StrCat("copy r to '", pipe, "'")), "COPY 1");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"100000"}}));
}

TEST_F(CopyToTest, TblFilesTakeOnlyTextsThatTheyCanHold) {
  Command("create table t (id int, name text) with (storage = columnar)");
  Command("insert into t values (1, 'plain \"x\"'), (2, null)");
  const std::string path = folder_.File("t.tbl");
  EXPECT_EQ(Command(absl::StrCat("copy (select * from t order by id) to '", path, "'")), "COPY 2");
  EXPECT_EQ(TextOf(path), "1|plain \"x\"\n2|\n");
  for (const char* const text : {"a|b", "", "a\nb"}) {
    const SqlError error = ErrorOf(absl::StrCat("copy (select '", text, "') to '", path, "'"));
    EXPECT_EQ(error.sqlstate, "22P04") << text;
    EXPECT_EQ(error.hint, "write FORMAT csv");
  }
}

/// Random values of every type, as SQL writes them.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  std::string Text() {
    const char* const pieces[] = {"a", ",", "\"",  "''",  "\\", "\n",   "\r", "\t",
                                  "|", " ", "\\N", "\\.", "ä",  "NULL", "t"};
    std::string text;
    for (uint64_t n = random_() % 5; n > 0; --n) text += pieces[random_() % std::size(pieces)];
    return absl::StrCat("'", text, "'");
  }
  std::string Row() {
    const std::vector<std::string> values = {
        absl::StrCat(Number(-32768, 32767)),
        absl::StrCat(Number(INT32_MIN, INT32_MAX)),
        absl::StrCat("'", Number(INT64_MIN, INT64_MAX), "'"),
        Pick({"true", "false"}),
        absl::StrCat(Number(-99999, 99999), ".", Number(10, 99)),
        absl::StrCat("'", Number(1, 9), Number(100000000000000000, 999999999999999999),
                     Number(100000000000000000, 999999999999999999), ".5'"),
        Pick({"'NaN'", "'inf'", "'-inf'", "1e308", "-0.1", "4.9e-324", "0.30000000000000004"}),
        Pick({"'NaN'", "'-Infinity'", "1e38", "0.1", "-7"}),
        absl::StrCat("date '2000-01-01' + ", Number(-700000, 2900000)),
        Pick({"'00:00:00'", "'23:59:59.999999'", "'12:30'"}),
        absl::StrCat("timestamp '1999-12-31 23:59:59.5' + interval '", Number(-1000000, 1000000), " hours'"),
        absl::StrCat("timestamptz '1969-07-20 20:17:40.123456+00' + interval '", Number(-90000, 90000),
                     " min'"),
        Pick({"'1 mon -2 days 03:04:05.000006'", "'-1 year'", "'0'", "'100 days'"}),
        Pick({"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"}),
        Pick({"'\\x'", "'\\x00ff5c2c22'"}),
        Pick({"'ab'", "''", "'a,\"b'"}),
        Text(),
        Text()};
    std::vector<std::string> row;
    for (const std::string& value : values) row.push_back(random_() % 8 == 0 ? "null" : value);
    return absl::StrCat("(", absl::StrJoin(row, ", "), ")");
  }

 private:
  int64_t Number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  std::string Pick(const std::vector<std::string>& values) { return values[random_() % values.size()]; }

  std::mt19937_64 random_;
};

constexpr char kEveryTypeColumns[] =
    "(a smallint, b int, c bigint, d boolean, e decimal(9,2), f decimal(38,1), g double precision, h real, "
    "i date, j time, k timestamp, l timestamptz, m interval, n uuid, o bytea, p char(5), q varchar(40), r "
    "text)";

TEST_F(CopyToTest, RowsOfEveryTypeComeBack) {
  const std::vector<std::string> ways = {"'.csv'",
                                         "'.txt'",
                                         "'.csv' (header, force_quote *)",
                                         "'.csv.gz'",
                                         "'.txt.zst'",
                                         "'.csv' (delimiter ';', quote '''', null 'NULL')",
                                         "'.csv' (escape '\\', null 't')",
                                         "'.x' (format text, delimiter '|', null '-', header)",
                                         "'.x' (format csv, compression zstd)"};
  uint64_t seed = 0;
  for (const char* const storage : {"columnar", "record"}) {
    for (const std::string& way : ways) {
      SCOPED_TRACE(absl::StrCat("seed ", ++seed, ", ", storage, ", ", way));
      RandomValues values(seed);
      for (const char* const table : {"t", "u"}) {
        Command(absl::StrCat("drop table if exists ", table));
        Command(
            absl::StrCat("create table ", table, " ", kEveryTypeColumns, " with (storage = ", storage, ")"));
      }
      std::vector<std::string> rows;
      for (int i = 0; i < 40; ++i) rows.push_back(values.Row());
      Command(absl::StrCat("insert into t values ", absl::StrJoin(rows, ", ")));
      const std::string path = absl::StrCat("'", folder_.File("file"), way.substr(1));
      std::string back = path;
      if (const size_t forced = back.find(", force_quote *"); forced != std::string::npos)
        back.erase(forced, std::string(", force_quote *").size());
      EXPECT_EQ(Command(absl::StrCat("copy t to ", path)), "COPY 40");
      EXPECT_EQ(Command(absl::StrCat("copy u from ", back)), "COPY 40");
      TextRows before = Rows("select * from t"), after = Rows("select * from u");
      std::sort(before.begin(), before.end());
      std::sort(after.begin(), after.end());
      ASSERT_EQ(before, after);
    }
  }
}

}  // namespace
}  // namespace nam::testing
