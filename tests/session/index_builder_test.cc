#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "catalog/attachment.h"
#include "partitioner/record_row.h"
#include "proto/table.pb.h"
#include "session/record_engine.h"
#include "tests/session/file_session.h"
#include "txn/table_extents.h"

/// Members that end while they fill an index.
namespace nam::testing {
namespace {

class IndexBuilderTest : public FileSession {
 protected:
  IndexBuilderTest() {
    Command("create table t (id int primary key, k int) with (storage = record)");
    Command("create table u (id int primary key, k int) with (storage = record)");
    Command("insert into t values (1, 10), (2, 20)");
  }
  /// A member that has announced t_k, a unique index, and fills it no further.
  void BeginBuilding() {
    auto attached = catalog::Attachment::Attach({.catalog = cluster_.Client()});
    ASSERT_TRUE(attached.ok()) << attached.status();
    builder_ = *std::move(attached);
    proto::RecordPart index;
    index.set_name("t_k");
    index.set_kind(proto::ORDERED_INDEX);
    index.set_unique(true);
    index.add_columns(1);
    partitioner::RecordLayout(T()).DescribeKey(index);
    ASSERT_TRUE(txn::AddPart(*builder_, "t", index).ok());
    ASSERT_TRUE(session::MakeRecordEngine(*builder_)->AwaitCommits().ok());
  }
  proto::Table T() {
    const auto table = cluster_.attachment().catalog().GetTable("t");
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? **table : proto::Table();
  }

  std::unique_ptr<catalog::Attachment> builder_;
};

TEST_F(IndexBuilderTest, IfNotExistsWaitsForTheBuilder) {
  BeginBuilding();
  Command("set statement_timeout = '300ms'");
  EXPECT_EQ(ErrorOf("create unique index if not exists t_k on t (k)").sqlstate, "57014") << "it lives";
  Command("reset statement_timeout");
  EXPECT_EQ(ErrorOf("create unique index t_k on t (k)").sqlstate, "42P07");
  EXPECT_EQ(Command("insert into t values (3, 30)"), "INSERT 0 1");
  EXPECT_EQ(ErrorOf("insert into t values (4, 30)").sqlstate, "23505") << "of new rows it knows all keys";
  std::string outcome;
  std::thread thread([&] {
    const auto other = cluster_.NewSession();
    const auto result = other->Execute("create unique index if not exists t_k on t (k)");
    outcome = result.ok() ? result->command : result.status().ToString();
  });
  builder_.reset();
  thread.join();
  EXPECT_EQ(outcome, "CREATE INDEX");
  EXPECT_NE(T().record().parts(T().record().parts_size() - 1).usable_from(), 0u);
  EXPECT_EQ(ErrorOf("insert into t values (4, 10)").sqlstate, "23505") << "of a row from before it";
  EXPECT_EQ(ErrorOf("insert into t values (4, 30)").sqlstate, "23505");
  EXPECT_EQ(Command("create unique index if not exists t_k on t (k)"), "CREATE INDEX") << "it is there";
}

TEST_F(IndexBuilderTest, AnIndexOfADeadBuilderIsMadeAnew) {
  BeginBuilding();
  builder_.reset();
  EXPECT_EQ(Command("create unique index t_k on t (k)"), "CREATE INDEX");
  EXPECT_EQ(ErrorOf("insert into t values (3, 10)").sqlstate, "23505");
  EXPECT_EQ(Command("drop index t_k"), "DROP INDEX");
  BeginBuilding();
  builder_.reset();
  EXPECT_EQ(Command("insert into t values (3, 10)"), "INSERT 0 1") << "it binds no row any more";
  EXPECT_EQ(Command("create index t_k on u (k)"), "CREATE INDEX") << "its name is free";
  EXPECT_EQ(Command("drop index t_k"), "DROP INDEX");
  BeginBuilding();
  builder_.reset();
  EXPECT_EQ(Command("drop index t_k"), "DROP INDEX");
  EXPECT_EQ(ErrorOf("drop index t_k").sqlstate, "42704");
}

}  // namespace
}  // namespace nam::testing
