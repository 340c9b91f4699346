#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"

namespace nam::simulation {
namespace {

/// A change of rows costs the messages of the query that finds them, until COMMIT.
class ReadOnceTest : public ::testing::Test {
 protected:
  ReadOnceTest() {
    auto cluster = Cluster::Start(world_, {.memory_servers = 2, .region_bytes = uint64_t{8} << 20});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    client_ = *cluster_->NewClient("client");
    for (const char* table : {"kv", "other"}) {
      Execute(absl::StrCat("create table ", table,
                           " (k bigint primary key, g bigint, v bigint) with (storage = record)"));
      Execute(absl::StrCat("insert into ", table, " select n, n / 2, 0 from generate_series(0, 99) n"));
      Execute(absl::StrCat("create index ", table, "_g on ", table, " (g)"));
    }
    // Tables are open, and the indexes' inner nodes known.
    Execute("begin");
    for (const char* table : {"kv", "other"}) {
      Execute(absl::StrCat("select v from ", table, " where k = 1"));
      Execute(absl::StrCat("select v from ", table, " where g = 1"));
    }
  }
  void Execute(const std::string& sql) {
    const auto result = client_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
  }
  int64_t MessagesOf(const std::string& sql) {
    const int64_t before = world_.TrafficOf("client").messages_out;
    Execute(sql);
    return world_.TrafficOf("client").messages_out - before;
  }

  fabric::sim::World world_{{}};
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

TEST_F(ReadOnceTest, ChangesByKey) {
  const int64_t found = MessagesOf("select v from kv where k = 20");
  EXPECT_GT(found, 0);
  EXPECT_EQ(MessagesOf("update kv set v = v + 1 where k = 21"), found);
  EXPECT_EQ(MessagesOf("delete from kv where k = 22"), found);
  EXPECT_EQ(MessagesOf("select v from kv where k = 23 for update"), found);
  EXPECT_EQ(MessagesOf("update other set v = v + 1 where k = 21"), found);
}

TEST_F(ReadOnceTest, ChangesByAnIndex) {
  const int64_t found = MessagesOf("select v from kv where g = 20");
  EXPECT_GT(found, 0);
  EXPECT_EQ(MessagesOf("update kv set v = v + 1 where g = 21"), found);
  EXPECT_EQ(MessagesOf("delete from kv where g = 22"), found);
  EXPECT_EQ(MessagesOf("update other set v = v + 1 where g = 23"), found);
}

/// Rows that the transaction knows are changed without a message.
TEST_F(ReadOnceTest, ChangesOfRowsThatWereSelected) {
  Execute("select v from kv where g = 30");
  EXPECT_EQ(MessagesOf("update kv set v = v + 1 where g = 30"), MessagesOf("select v from kv where g = 30"));
  // Scans pass rows without keeping them: those that change are read again.
  const int64_t scanned = MessagesOf("select count(*) from kv where v + 0 = 5");
  EXPECT_GT(MessagesOf("update kv set v = 7 where v + 0 = 0"), scanned);
  EXPECT_EQ(client_->session().Execute("select count(*) from kv where v = 7")->rows[0][0].ToString(), "98");
}

/// Servers join the tables: the session finds the rows for them when the query runs.
TEST_F(ReadOnceTest, PlansReadNoRows) {
  const std::string join = "select kv.v from kv, other where kv.k = other.k and kv.g = 40 and other.k = 80";
  EXPECT_EQ(MessagesOf("explain " + join), 0);
  EXPECT_GT(MessagesOf(join), 0);
}

}  // namespace
}  // namespace nam::simulation
