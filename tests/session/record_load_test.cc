#include "session/record_load.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "session/record_engine.h"
#include "session/saved_records.h"
#include "tests/session/file_session.h"

/// Many rows into empty record tables: loads in portions, which become visible in one moment.
namespace nam::testing {
namespace {

using session::Session;

class RecordLoadTest : public FileSession {
 protected:
  RecordLoadTest() { Command("set nam.transaction_mib_max = '4MB'"); }
  ~RecordLoadTest() override { EXPECT_EQ(Loads(), 0); }

  /// Rows of t: id, name, 10 * id.
  static std::string RowsOf(int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) absl::StrAppend(&text, i, ",name ", i, ",", 10 * i, "\n");
    return text;
  }
  void CreateT() {
    Command(
        "create table t (id int primary key, name varchar(20) not null unique, ten bigint check (ten >= 0), "
        "n serial) with (storage = record)");
    Command("create index t_ten on t (ten)");
  }
  static std::string Copy(const std::string& path, const std::string& options = "") {
    return absl::StrCat("copy t (id, name, ten) from '", path, "'", options.empty() ? "" : " with (", options,
                        options.empty() ? "" : ")");
  }
  /// The command, or the SQLSTATE.
  static std::string Run(Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    if (result.ok()) return result->command;
    const auto error = SqlErrorOf(result.status());
    return error.has_value() ? error->sqlstate : result.status().ToString();
  }
  /// The number of hidden tables that loads fill.
  int Loads() {
    const auto tables = cluster_.attachment().catalog().ListTables();
    EXPECT_TRUE(tables.ok()) << tables.status();
    return static_cast<int>(std::ranges::count_if(
        *tables, [](const proto::Table& table) { return table.name().starts_with("nam.load."); }));
  }
  /// Runs a COPY into t in another session, whose files come by a pipe; calls `meanwhile` when it has become
  /// a load, and then ends the pipe. Returns the command or the SQLSTATE.
  std::string CopyBeside(const std::function<void(Session& loading)>& meanwhile) {
    const auto loading = cluster_.NewSession();
    EXPECT_EQ(Run(*loading, "set nam.transaction_mib_max = '4MB'"), "SET");
    const std::string pipe = folder_.File(absl::StrCat("pipe", pipes_++, ".csv"));
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::string outcome;
    std::thread thread([&] { outcome = Run(*loading, Copy(pipe)); });
    std::ofstream into(pipe);
    for (written_ = 0; Loads() == 0; written_ += 1'000) into << RowsOf(written_, 1'000) << std::flush;
    meanwhile(*loading);
    into.close();
    thread.join();
    return outcome;
  }

  int written_ = 0;  // rows of the last CopyBeside
  int pipes_ = 0;
};

TEST_F(RecordLoadTest, TakesNoMemoryOfATransaction) {
  CreateT();
  EXPECT_EQ(Command(Copy(Write("t.csv", RowsOf(0, 30'000)))), "COPY 30000");
  EXPECT_EQ(Rows("select count(*), sum(id), sum(ten), count(distinct name), count(distinct n) from t"),
            (TextRows{{"30000", "449985000", "4499850000", "30000", "30000"}}));
  EXPECT_EQ(Rows("select id from t where name = 'name 777'"), (TextRows{{"777"}}));
  EXPECT_EQ(Rows("select id from t where ten between 299970 and 299980 order by 1"),
            (TextRows{{"29997"}, {"29998"}}));
  EXPECT_EQ(Rows("select name from t where id in (0, 29999) order by 1"),
            (TextRows{{"name 0"}, {"name 29999"}}));
  EXPECT_EQ(Command("insert into t values (-1, 'one', 1)"), "INSERT 0 1");
  EXPECT_EQ(Rows("select count(*), count(distinct n) from t"), (TextRows{{"30001", "30001"}}))
      << "numbers go on";
  EXPECT_EQ(ErrorOf("insert into t values (-2, 'name 5', 1)").sqlstate, "23505");
  EXPECT_EQ(ErrorOf("insert into t values (29999, 'other', 1)").sqlstate, "23505");
  EXPECT_EQ(Command("update t set ten = ten + 1 where id < 100"), "UPDATE 101");
  EXPECT_EQ(Command("drop index t_ten"), "DROP INDEX");
  const auto other = cluster_.NewSession();
  EXPECT_EQ(Run(*other, "delete from t where id >= 29000"), "DELETE 1000");
  EXPECT_EQ(ErrorOf(Copy(Write("u.csv", RowsOf(40'000, 30'000)))).sqlstate, "54000") << "it has rows";
  Command("drop table t");
}

TEST_F(RecordLoadTest, RowsOfAQueryAreLoadedToo) {
  Command("create table t (id bigint primary key, x double precision) with (storage = record)");
  Command("create table u (x double precision) with (storage = record)");
  EXPECT_EQ(Command("insert into t select i, i / 2.0 from generate_series(1, 20000) g (i)"),
            "INSERT 0 20000");
  EXPECT_EQ(Command("insert into u select x from t"), "INSERT 0 20000") << "a table without a key";
  EXPECT_EQ(Rows("select count(*), sum(x) from u"), (TextRows{{"20000", "100005000"}}));
  Command("begin");
  EXPECT_EQ(ErrorOf("insert into u select x from t").sqlstate, "54000") << "it has rows";
  Command("rollback");
  Command("create table v (id bigint primary key)");
  EXPECT_EQ(ErrorOf("insert into v select i from generate_series(1, 20000) g (i) returning id").sqlstate,
            "54000");
  EXPECT_EQ(
      ErrorOf("insert into v select i from generate_series(1, 20000) g (i) on conflict do nothing").sqlstate,
      "54000");
  EXPECT_EQ(Rows("select count(*) from v"), (TextRows{{"0"}}));
}

TEST_F(RecordLoadTest, AfterAnErrorThereIsNone) {
  CreateT();
  const uint64_t before = cluster_.UsedBytes();
  const std::string many = RowsOf(0, 10'000);
  const std::vector<std::pair<std::string, std::string>> last = {
      {"17,other,1\n", "23505"},      {"-1,name 42,1\n", "23505"},
      {"-1,other,-1\n", "23514"},     {"-1,,1\n", "23502"},
      {"x,other,1\n", "22P02"},       {"-1,a name that is too long,1\n", "22001"},
      {"9999,name 9999,1\n", "23505"}};
  for (const auto& [row, state] : last) {
    const SqlError error = ErrorOf(Copy(Write("bad.csv", many + row)));
    EXPECT_EQ(error.sqlstate, state) << row << error.message;
    EXPECT_TRUE(absl::StrContains(error.message, "bad.csv:10001: ")) << error.message;
    EXPECT_FALSE(absl::StrContains(error.message, "nam.")) << error.message;
    EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}})) << row;
    EXPECT_EQ(Loads(), 0) << row;
  }
  const SqlError primary = ErrorOf(Copy(Write("bad.csv", many + "17,other,1\n")));
  EXPECT_TRUE(absl::StrContains(primary.message, "t_pkey")) << primary.message;
  const SqlError unique = ErrorOf(Copy(Write("bad.csv", many + "-1,name 17,1\n")));
  EXPECT_TRUE(absl::StrContains(unique.message, "t_name_key")) << unique.message;
  EXPECT_LE(cluster_.AwaitUsedBytes(before), before) << "its memory is free";
  const auto skipped = FileSession::Run(Copy(Write("bad.csv", many + "x,other,1\n"), "on_error ignore"));
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ(skipped->command, "COPY 10000");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"10000"}}));
}

TEST_F(RecordLoadTest, ErrorsOfFewRowsNameTheirLineToo) {
  CreateT();
  Command("insert into t values (7, 'seven', 1)");
  Write("part1.csv", RowsOf(10, 3));
  const std::vector<std::pair<std::string, std::string>> rows = {{"7,other,1\n", "t_pkey"},
                                                                 {"11,other,1\n", "t_pkey"},
                                                                 {"1,seven,1\n", "t_name_key"},
                                                                 {"1,other,-1\n", "t_ten_check"}};
  for (const auto& [row, constraint] : rows) {
    Write("part2.csv", "20,twenty,1\n" + row + RowsOf(30, 600));
    const SqlError error = ErrorOf(Copy(folder_.File("part*.csv")));
    EXPECT_TRUE(absl::StrContains(error.message, "part2.csv:2: ")) << error.message;
    EXPECT_TRUE(absl::StrContains(error.message, constraint)) << error.message;
  }
  Write("part2.csv", "20,twenty,1\n7,other,1\n");
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(Copy(folder_.File("part2.csv"), "batch 1")).message, "part2.csv:2: "));
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"2"}})) << "a batch stays";
}

TEST_F(RecordLoadTest, OthersSeeAllRowsOrNone) {
  CreateT();
  const auto other = cluster_.NewSession(), earlier = cluster_.NewSession(), reader = cluster_.NewSession();
  ASSERT_EQ(Run(*earlier, "begin"), "BEGIN");
  ASSERT_EQ(Run(*reader, "begin"), "BEGIN");
  ASSERT_TRUE(reader->Execute("select count(*) from t").ok());
  const std::string outcome = CopyBeside([&](Session&) {
    for (const std::string query :
         {"select count(*) from t", "select count(*) from t where id < 100",
          "select count(*) from t where ten < 100", "select count(*) from t a join t b on a.id = b.id"}) {
      const auto rows = other->Execute(query);
      ASSERT_TRUE(rows.ok()) << query << rows.status();
      EXPECT_EQ(ToText(*rows), (TextRows{{"0"}})) << query;
    }
    ASSERT_EQ(Run(*other, "begin"), "BEGIN") << "a snapshot from amid the load";
  });
  EXPECT_EQ(outcome, absl::StrCat("COPY ", written_));
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{absl::StrCat(written_)}}));
  EXPECT_EQ(Rows("select count(*) from t where id = 5"), (TextRows{{"1"}}));
  for (Session* const session : {other.get(), earlier.get(), reader.get()}) {
    EXPECT_EQ(Run(*session, "select count(*) from t where id = 5"), "40001") << "its snapshot knows no row";
    EXPECT_EQ(Run(*session, "rollback"), "ROLLBACK");
    const auto rows = session->Execute("select count(*) from t");
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(ToText(*rows), (TextRows{{absl::StrCat(written_)}}));
  }
}

/// Whoever commits first wins.
TEST_F(RecordLoadTest, RowsOfOthersAreNotLost) {
  CreateT();
  const auto other = cluster_.NewSession();
  EXPECT_EQ(CopyBeside([&](Session&) {
              EXPECT_EQ(Run(*other, "insert into t values (-1, 'first', 1)"), "INSERT 0 1");
            }),
            "40001");
  EXPECT_EQ(Rows("select id, name from t"), (TextRows{{"-1", "first"}}));
  EXPECT_EQ(Command("update t set ten = 2"), "UPDATE 1") << "the table is open again";
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE");
  ASSERT_EQ(Run(*other, "begin"), "BEGIN");
  ASSERT_EQ(Run(*other, "insert into t values (-1, 'second', 1)"), "INSERT 0 1");
  EXPECT_EQ(CopyBeside([](Session&) {}), absl::StrCat("COPY ", written_)) << "an emptied table is empty";
  EXPECT_EQ(Run(*other, "commit"), "40001");
  EXPECT_EQ(Rows("select count(*), min(id) from t"), (TextRows{{absl::StrCat(written_), "0"}}));
  EXPECT_EQ(Run(*other, "insert into t values (-1, 'second', 1)"), "INSERT 0 1");
}

TEST_F(RecordLoadTest, ATableThatIsAlteredMeanwhileGetsNothing) {
  CreateT();
  EXPECT_EQ(CopyBeside([&](Session&) { Command("create index t_more on t (ten, id)"); }), "40001");
  EXPECT_EQ(CopyBeside([&](Session&) { Command("drop index t_ten"); }), "40001");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
  EXPECT_EQ(CopyBeside([&](Session&) { Command("drop table t"); }), "40001");
  CreateT();
  EXPECT_EQ(CopyBeside([&](Session&) {
              Command("create table c (id int primary key, t int references t (id)) with (storage = record)");
            }),
            "40001");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
}

TEST_F(RecordLoadTest, TablesWithReferencesAreNotLoaded) {
  Command("create table p (id int primary key) with (storage = record)");
  Command("create table c (id int primary key, p int references p) with (storage = record)");
  Command("insert into p values (1)");
  EXPECT_EQ(ErrorOf("insert into c select i, 1 from generate_series(1, 20000) g (i)").sqlstate, "54000");
  Command("delete from p");
  EXPECT_EQ(ErrorOf("insert into p select i from generate_series(1, 20000) g (i)").sqlstate, "54000");
  EXPECT_EQ(Command("insert into p select i from generate_series(1, 2000) g (i)"), "INSERT 0 2000");
  EXPECT_EQ(Command("insert into c select i, i from generate_series(1, 2000) g (i)"), "INSERT 0 2000");
}

TEST_F(RecordLoadTest, IsNotSavedBeforeItsEnd) {
  CreateT();
  Command("create table u (id int primary key) with (storage = record)");
  Command("insert into u values (1), (2)");
  const std::string outcome = CopyBeside([&](Session&) {
    const auto engine = session::MakeRecordEngine(cluster_.attachment());
    const auto saved = session::SaveRecords(cluster_.attachment(), *engine, folder_.File("records.saved"),
                                            {.allow_later_commits = true});
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(saved->TableNames(), "t, u");
    EXPECT_EQ(saved->rows, 2u);
  });
  EXPECT_EQ(outcome, absl::StrCat("COPY ", written_));
  // A loaded table is saved and comes back as any other.
  const auto engine = session::MakeRecordEngine(cluster_.attachment());
  const std::string path = folder_.File("records.saved");
  const auto saved = session::SaveRecords(cluster_.attachment(), *engine, path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->rows, static_cast<uint64_t>(written_) + 2);
  ASSERT_TRUE(session::MarkSaved(cluster_.attachment(), saved->number).ok());
  Command("drop table t");
  Command("drop table u");
  const auto loaded = session::LoadRecords(cluster_.attachment(), *engine, path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Rows("select count(*), count(distinct n) from t"),
            (TextRows{{absl::StrCat(written_), absl::StrCat(written_)}}));
}

TEST_F(RecordLoadTest, ACancelledOneLeavesNothing) {
  CreateT();
  const uint64_t before = cluster_.UsedBytes();
  EXPECT_EQ(CopyBeside([](Session& loading) { loading.Cancel(); }), "57014");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
  EXPECT_EQ(Loads(), 0);
  EXPECT_LE(cluster_.AwaitUsedBytes(before), before);
  EXPECT_EQ(CopyBeside([](Session&) {}), absl::StrCat("COPY ", written_));
}

/// A load closes its table for a moment.
TEST_F(RecordLoadTest, StatementsWaitWhileATableIsClosed) {
  CreateT();
  const auto waiting = cluster_.NewSession(), open = cluster_.NewSession();
  const auto table = cluster_.attachment().catalog().GetTable("t");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(Run(*open, "begin"), "BEGIN");
  ASSERT_EQ(Run(*open, "insert into t values (1, 'one', 1)"), "INSERT 0 1");
  const auto engine = session::MakeRecordEngine(cluster_.attachment());
  proto::ChangeCatalogRequest close;
  proto::FillTable& step = *close.mutable_fill()->add_steps();
  step.set_table("t");
  step.set_allocation((*table)->allocation());
  step.set_member(cluster_.attachment().member().value());
  step.set_load(absl::StrCat("nam.load.", step.member(), ".99"));
  step.set_close(true);
  proto::Table hidden = **table;
  hidden.set_name(step.load());
  hidden.mutable_record()->clear_parts();
  ASSERT_TRUE(engine->CreateTable(hidden, {}).ok());
  ASSERT_TRUE(cluster_.attachment().catalog().ChangeCatalog(close).ok());
  ASSERT_TRUE(engine->AwaitCommits().ok());
  EXPECT_EQ(Run(*open, "commit"), "40001") << "a commit that the load has not waited for";
  EXPECT_EQ(Run(*open, "begin"), "BEGIN");
  EXPECT_EQ(Run(*open, "select count(*) from t"), "40001") << "a transaction does not wait";
  EXPECT_EQ(Run(*open, "rollback"), "ROLLBACK");
  std::vector<std::string> outcomes;
  std::thread thread([&] {
    outcomes.push_back(Run(*waiting, "insert into t values (2, 'two', 2)"));
    outcomes.push_back(Run(*waiting, "select count(*) from t"));
  });
  EXPECT_EQ(Run(*open, "set statement_timeout = '50ms'"), "SET");
  EXPECT_EQ(Run(*open, "select count(*) from t"), "57014");
  EXPECT_TRUE(outcomes.empty());
  step.set_close(false);
  ASSERT_TRUE(cluster_.attachment().catalog().ChangeCatalog(close).ok());
  thread.join();
  ASSERT_TRUE(engine->DropTable(step.load()).ok());
  EXPECT_EQ(outcomes, (std::vector<std::string>{"INSERT 0 1", "SELECT 1"}));
  EXPECT_EQ(Rows("select id from t"), (TextRows{{"2"}}));
}

TEST_F(RecordLoadTest, TellsItsProgress) {
  CreateT();
  std::vector<session::QueryProgress> told;
  cluster_.session().OnProgress([&](const session::QueryProgress& progress) { told.push_back(progress); });
  EXPECT_EQ(Command(Copy(Write("t.csv", RowsOf(0, 30'000)))), "COPY 30000");
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].table, "t");
  EXPECT_EQ(told[0].rows_done, 256u);
  EXPECT_GE(told[0].rows, 256u);
}

}  // namespace
}  // namespace nam::testing
