#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

/// A cluster and SQLite, with the same tables: `items` is analytical, `sales` and `notes` are record tables.
class RecordOracleTest : public ::testing::Test {
 protected:
  RecordOracleTest() : cluster_(InProcessCluster::Options{}) {
    SmallTable items{{"items",
                      {{"item", Type::Integer()}, {"name", Type::String(8)}, {"since", Type::Date(), true}},
                      {{"item", 4}},
                      ""},
                     {}};
    for (int i = 0; i < 12; ++i) {
      items.rows.push_back({Value::Integer(i), Value::String(i % 3 == 0 ? "even" : absl::StrCat("n", i)),
                            i % 4 == 3 ? Value::Null(Type::Date()) : Value::Date(20'000 + i)});
    }
    EXPECT_TRUE(Load(cluster_.attachment(), items, {.block_bytes = 2048, .pointer_group = 4}).ok());
    oracle_.Load(items);
    Ours(
        "create table sales (id int primary key, item int, day date, note varchar(8), amount bigint) "
        "with (storage = record, versions = 2)");
    Ours(
        "create table notes (word varchar(8), n smallint, text varchar(20), primary key (word, n)) "
        "with (storage = record)");
    Ours("create unique index sales_note on sales (note)");
    Theirs(
        "create table sales (id integer primary key, item integer, day text, note text unique, amount "
        "integer)");
    Theirs("create table notes (word text, n integer, text text, primary key (word, n))");
  }

  absl::Status Try(const std::string& statement) { return cluster_.session().Execute(statement).status(); }
  void Ours(const std::string& statement) {
    const absl::Status status = Try(statement);
    ASSERT_TRUE(status.ok()) << statement << "\n" << status;
  }
  void Theirs(const std::string& statement) { ASSERT_TRUE(oracle_.Run(statement).ok()) << statement; }
  void Both(const std::string& statement) {
    Ours(statement);
    Theirs(statement);
  }
  TextRows Rows(const std::string& query) {
    const auto result = cluster_.session().Execute(query);
    EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
    return result.ok() ? ToText(*result) : TextRows();
  }
  void Compare(const std::string& query) {
    const auto expected = oracle_.Run(query);
    ASSERT_TRUE(expected.ok()) << query << "\n" << expected.status();
    const TextRows rows = Rows(query);
    if (absl::StrContains(query, "order by")) {
      ASSERT_EQ(rows, *expected) << query;
    } else {
      ASSERT_EQ(Sorted(rows), Sorted(*expected)) << query;
    }
  }
  std::string SqlState(const std::string& statement) {
    const auto error = SqlErrorOf(Try(statement));
    return error.has_value() ? error->sqlstate : "";
  }

  InProcessCluster cluster_;
  SqliteOracle oracle_;
};

/// Statements that mean the same in both systems.
class RandomStatements {
 public:
  explicit RandomStatements(uint32_t seed) : random_(seed) {}

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  template <typename... Texts>
  std::string One(const Texts&... texts) {
    const std::string all[] = {texts...};
    return all[Pick(sizeof...(texts))];
  }

  std::string Day() { return absl::StrCat("'2024-10-0", 1 + Pick(9), "'"); }
  /// The value differs from all others if conflicts are not wanted.
  std::string Note(bool fresh) {
    return fresh ? absl::StrCat("'f", ++fresh_, "'") : absl::StrCat("'n", Pick(40), "'");
  }
  std::string OrNull(std::string value) { return Pick(5) == 0 ? "null" : value; }

  std::string Change(bool fresh) {
    switch (Pick(10)) {
      case 0:
        return absl::StrCat("delete from sales where ", Condition("sales."), " and ", Condition("sales."));
      case 1:
        return absl::StrCat("update sales set item = ", OrNull(absl::StrCat(Pick(14))),
                            ", amount = amount + 1 where ", Condition("sales."));
      case 2:
        return absl::StrCat("update sales set note = ", OrNull(Note(fresh)), ", day = ", OrNull(Day()),
                            " where id = ", Pick(60));
      case 3:
        return absl::StrCat("delete from notes where word = 'n", Pick(12), "'");
      case 4:
      case 5:
        return absl::StrCat("insert into notes values ('n", Pick(12), "', ", fresh ? 100 + ++fresh_ : Pick(6),
                            ", ", OrNull(absl::StrCat("'", One("a", "b c", "Ü"), Pick(5), "'")), ")");
      default:
        return absl::StrCat("insert into sales values (", fresh ? 100 + ++fresh_ : Pick(60), ", ",
                            OrNull(absl::StrCat(Pick(14))), ", ", OrNull(Day()), ", ", OrNull(Note(fresh)),
                            ", ", Pick(3) == 0 ? "3000000000" : absl::StrCat(Pick(100) - 50), ")");
    }
  }

  std::string Condition(const std::string& of) {
    const std::string item = of + "item", id = of + "id", day = of + "day", note = of + "note",
                      n = absl::StrCat(Pick(14));
    switch (Pick(12)) {
      case 0:
        return item + " = " + n;
      case 1:
        return item + " " + One("<", "<=", ">", ">=") + " " + n;
      case 2:
        return absl::StrCat(item, " between ", Pick(8), " and ", 4 + Pick(8));
      case 3:
        return absl::StrCat(item, " in (", n, ", ", Pick(14), ", ", Pick(14), ")");
      case 4:
        return id + " = " + absl::StrCat(Pick(60));
      case 5:
        return absl::StrCat(id, " in (", Pick(60), ", ", Pick(60), ")");
      case 6:
        return absl::StrCat(id, " ", One("<", ">="), " ", Pick(60));
      case 7:
        return day + " " + One("=", "<", ">=") + " " + Day();
      case 8:
        return One(item, day, note) + One(" is null", " is not null");
      case 9:
        return note + " " + One("=", "<", ">=") + " " + Note(false);
      case 10:
        return note + " like 'n1%'";
      default:
        return absl::StrCat("(", item, " = ", n, " or ", of, "amount < 0)");
    }
  }
  std::string Where(const std::string& of, const std::string& joined) {
    std::string where = joined.empty() ? "" : " where " + joined;
    for (int i = Pick(4); i > 0; --i) where += (where.empty() ? " where " : " and ") + Condition(of);
    return where;
  }

  std::string Query() {
    switch (Pick(8)) {
      case 0:
        return "select * from sales" + Where("sales.", "");
      case 1:
        return absl::StrCat("select id, item, day from sales", Where("sales.", ""), " order by ",
                            One("item", "day", "note", "item nulls last, day"), One("", " desc"),
                            " nulls last, id limit ", Pick(10), One("", " offset 2"));
      case 2:
        return absl::StrCat(
            "select item, count(*), sum(amount), min(day), max(note), count(distinct day) from sales",
            Where("sales.", ""), " group by item", One("", " having count(*) > 1"));
      case 3:
        return "select count(*), sum(amount) from sales s, items i" + Where("s.", "s.item = i.item");
      case 4:
        return "select s.id, i.name, i.since from items i join sales s on s.item = i.item" + Where("s.", "") +
               " order by s.id";
      case 5:
        return "select i.name, count(*), max(s.day) from sales s, items i" +
               Where("s.", "s.item = i.item and " +
                               One("i.name <> 'even'", "i.since > '2024-10-05'", "i.item < s.id")) +
               " group by i.name";
      case 6:
        return "select s.id, n.text, i.item from sales s, notes n, items i" +
               Where("s.", "s.note = n.word and i.name = n.word");
      default:
        return "select a.id, b.id, n.n from sales a, sales b, notes n" +
               Where("a.", "a.item = b.item and a.id < b.id and b.note = n.word");
    }
  }

 private:
  std::mt19937 random_;
  int fresh_ = 0;
};

TEST_F(RecordOracleTest, RandomStatements) {
  const char* const given = std::getenv("NAM_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : std::random_device()();
  SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed));
  RandomStatements random(seed);
  const std::vector<std::string> indexes = {"i1 on sales (item)", "i2 on sales (day, item)",
                                            "i3 on sales (id)", "i4 on notes (word)",
                                            "i5 on sales (note, id)"};
  std::vector<bool> made(indexes.size(), false);
  bool open = false;
  std::vector<std::string> savepoints;  // of the transaction
  const auto go_back = [&](const char* how) {
    const std::string name =
        savepoints[static_cast<size_t>(random.Pick(static_cast<int>(savepoints.size())))];
    Both(how + name);
    while (savepoints.back() != name) savepoints.pop_back();  // the innermost of this name
  };
  for (int i = 0; i < 500 && !HasFatalFailure(); ++i) {
    const int kind = random.Pick(20);
    if (kind == 0 && !open) {
      const auto at = static_cast<size_t>(random.Pick(static_cast<int>(indexes.size())));
      Ours(made[at] ? "drop index " + indexes[at].substr(0, 2) : "create index " + indexes[at]);
      made[at] = !made[at];
    } else if (kind == 1 && !open) {
      Both("begin");
      open = true;
    } else if (kind < 2 && open && (savepoints.empty() || random.Pick(2) == 0)) {
      savepoints.push_back(random.One("a", "b", "c"));
      Both("savepoint " + savepoints.back());
    } else if (kind == 0 && open) {
      go_back("rollback to ");
    } else if (kind == 1 && open) {
      go_back("release ");
      savepoints.pop_back();
    } else if (kind < 4 && open) {
      Both(random.Pick(3) == 0 ? "rollback" : "commit");
      open = false;
      savepoints.clear();
    } else if (kind < 12) {
      const std::string change = random.Change(open && savepoints.empty());
      const absl::Status status = Try(change);
      ASSERT_TRUE(status.ok() || SqlErrorOf(status)->sqlstate == "23505") << change << "\n" << status;
      ASSERT_TRUE(status.ok() || !open || !savepoints.empty()) << change << "\n" << status;
      Theirs(change);
      if (!status.ok() && open) go_back("rollback to ");
      Compare("select * from sales");
      Compare("select * from notes");
    } else {
      Compare(random.Query());
    }
  }
}

TEST_F(RecordOracleTest, AJoinSeesItsTransaction) {
  Ours("insert into sales values (1, 1, null, null, 1), (2, 2, null, null, 1)");
  const auto other = cluster_.NewSession();
  const std::string names = "select i.name from sales s, items i where s.item = i.item order by 1";
  Ours("begin");
  EXPECT_EQ(Rows(names), (TextRows{{"n1"}, {"n2"}}));
  ASSERT_TRUE(other->Execute("update sales set item = 4 where id = 1").ok());
  Ours("insert into sales values (3, 5, null, null, 1)");
  Ours("delete from sales where id = 2");
  EXPECT_EQ(Rows(names), (TextRows{{"n1"}, {"n5"}})) << "its snapshot, and what it wrote itself";
  Ours("commit");
  EXPECT_EQ(Rows(names), (TextRows{{"n4"}, {"n5"}}));
  EXPECT_EQ(cluster_.attachment().catalog().ListTables()->size(), 4u) << "items, sales, notes, and the state";
}

/// Rows that the session finds travel with the plan while they are few; others are scanned.
TEST_F(RecordOracleTest, JoinsByKeysRangesAndIndexes) {
  for (int first = 0; first < 12'000; first += 400) {
    std::vector<std::string> rows;
    for (int id = first; id < first + 400; ++id)
      rows.push_back(absl::StrCat("(", id, ", ", id % 14, ", null, null, ", id % 1'000, ")"));
    Both("insert into sales values " + absl::StrJoin(rows, ", "));
  }
  Ours("create index by_amount on sales (amount)");
  const auto compare = [&] {
    for (const char* const where :
         {"s.id = 77", "s.id in (1, 500, 11999, 20000)", "s.id between 100 and 900", "s.id < 50",
          "s.id >= 11990", "s.amount = 5", "s.amount >= 0", "s.amount < 0", "s.id = 1 and s.id = 2",
          "s.amount between 10 and 12 and s.id > 6000"}) {
      Compare(
          absl::StrCat("select count(*), sum(s.amount), min(i.name) from sales s, items i where s.item = "
                       "i.item and ",
                       where));
    }
    Compare("select count(*), sum(b.amount) from sales a, sales b where a.id = b.id and a.amount < 500");
  };
  compare();
  Both("begin");
  Both("update sales set item = 3 where id = 77");
  Both("delete from sales where id between 100 and 120");
  Both("insert into sales values (20000, 5, null, null, 5), (-1, 5, null, null, -7)");
  compare();
  Both("rollback");
  compare();
}

TEST_F(RecordOracleTest, Errors) {
  Ours("insert into sales values (1, 1, null, 'a', 1), (2, 2, null, null, 1)");
  EXPECT_EQ(SqlState("insert into sales values (3, 1, null, 'a', 1)"), "23505");
  EXPECT_EQ(SqlState("create unique index on sales (amount)"), "23505");
  Ours("create unique index by_amount on sales (amount, id)");
  EXPECT_EQ(SqlState("create index by_amount on notes (n)"), "42P07");
  EXPECT_EQ(SqlState("create index sales on notes (n)"), "42P07");
  EXPECT_EQ(SqlState("drop index nothing"), "42704");
  Ours("drop index if exists nothing");
  const auto explained = [&](const std::string& query) {
    std::string text;
    for (const auto& row : Rows("explain " + query)) text += row[0] + "\n";
    return text;
  };
  EXPECT_TRUE(absl::StrContains(explained("select id from sales where amount > 0"),
                                "     by index by_amount (amount, id), 1 range\n"));
  Ours("drop index by_amount");
  const std::string scan = explained("select id from sales where amount > 0");
  EXPECT_TRUE(absl::StrContains(scan, "     scan of all rows\n")) << scan;
  EXPECT_TRUE(absl::StrContains(scan, " where amount > 0")) << scan;
  const std::string join = explained("select s.id from sales s, items i where s.item = i.item and s.id = 1");
  EXPECT_TRUE(absl::StrContains(join, "Distributed pipelined plan on ")) << join;
  EXPECT_TRUE(absl::StrContains(join, "scan records sales ")) << join;
  EXPECT_TRUE(absl::StrContains(join, "     by key (id), 1 row at most\n")) << join;
}

}  // namespace
}  // namespace nam::testing
