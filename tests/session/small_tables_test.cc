#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "session/missing_server_errors.h"
#include "tests/session/file_session.h"

/// Record tables that are empty or small, and what is said of tables whose memory server is gone.
namespace nam::testing {
namespace {

class SmallTablesTest : public FileSession {
 protected:
  uint64_t UsedBytes() const { return cluster_.UsedBytes(); }
};

TEST_F(SmallTablesTest, AnEmptyRecordTableTakesLittleMemory) {
  constexpr int kTables = 20;
  constexpr uint64_t kTableBytes = 144 << 10, kIndexBytes = 32 << 10;
  Command("create table first (id int primary key)");
  Command("insert into first values (1)");  // makes the state of transactions
  const uint64_t before = UsedBytes();
  for (int t = 0; t < kTables; ++t)
    Command(
        absl::StrCat("create table t", t, " (id bigint primary key, name varchar(20), n numeric(12, 2))"));
  EXPECT_LE(UsedBytes() - before, kTables * kTableBytes);
  const uint64_t with_tables = UsedBytes();
  Command("create index t0_name on t0 (name)");
  Command("create index t1_n on t1 (n)");
  EXPECT_LE(UsedBytes() - with_tables, 2 * kIndexBytes);
  for (const auto& server : cluster_.memory())
    EXPECT_GE(server->used_bytes(), kTables * kTableBytes / 4) << "all servers have some";
}

TEST_F(SmallTablesTest, RecordTablesGrowFromSmallExtents) {
  Command("create table t (id int primary key, name text, n int)");
  Command("create table u (id int primary key, name text, n int)");
  Command("create index t_n on t (n)");
  for (int first = 0; first < 30'000; first += 5'000) {
    Command(absl::StrCat("insert into t select i, 'name ' || i, i % 1000 from generate_series(", first + 1,
                         ", ", first + 5'000, ") g (i)"));
    Command(absl::StrCat("insert into u select i, 'other ' || i, i % 7 from generate_series(", first / 10 + 1,
                         ", ", first / 10 + 500, ") g (i)"));
  }
  EXPECT_EQ(Rows("select count(*), count(distinct id), sum(id), min(name), max(n) from t"),
            (TextRows{{"30000", "30000", "450015000", "name 1", "999"}}));
  EXPECT_EQ(Rows("select count(*), sum(id), max(n) from u"), (TextRows{{"3000", "4501500", "6"}}));
  EXPECT_EQ(Rows("select id from t where n = 17 order by id limit 3"),
            (TextRows{{"17"}, {"1017"}, {"2017"}}));
  EXPECT_EQ(Rows("select name from t where id = 29999"), (TextRows{{"name 29999"}}));
  EXPECT_EQ(Rows("select count(*) from t join u on t.id = u.id where t.n = u.n"), (TextRows{{"6"}}));
  Command("delete from t where id % 3 = 0");
  Command("create index t_name on t (name)");
  EXPECT_EQ(
      Rows("select count(*) from t where name like 'name 2%'"),
      Rows("select count(*) from generate_series(1, 30000) g (i) where i % 3 <> 0 and 'name ' || i like "
           "'name 2%'"));
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"20000"}}));
}

TEST(MissingServerErrors, ARecordTableIsNotToBeLoadedAgain) {
  proto::Cluster cluster;
  for (uint32_t id = 1; id <= 2; ++id) {
    proto::Member& member = *cluster.add_members();
    member.set_id(id);
    member.set_role(proto::ROLE_MEMORY);
    member.set_storage(id);
    member.set_alive(id == 1);
  }
  for (const bool record : {true, false}) {
    auto table = std::make_shared<proto::Table>();
    table->set_name("t");
    if (record) table->mutable_record()->set_row_bytes(8);
    proto::ServerUsage& usage = *table->add_usage();
    usage.set_server(2);
    usage.set_blocks(3);
    const auto missing = session::FindMissingServer({table}, cluster);
    ASSERT_TRUE(missing.has_value());
    const SqlError error = *SqlErrorOf(session::MissingServerError(*missing, cluster));
    EXPECT_EQ(error.sqlstate, "XX001");
    EXPECT_EQ(error.hint, record ? "drop it, and create it again" : "load it again, or drop it");
  }
}

}  // namespace
}  // namespace nam::testing
