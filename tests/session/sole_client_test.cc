#include "session/sole_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "session/record_engine.h"
#include "session/saved_records.h"
#include "session/session.h"
#include "tests/catalog/temp_folder.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Two clients with a session each, and the process that stops the cluster.
class SoleClientTest : public ::testing::Test {
 protected:
  struct Client {
    std::unique_ptr<catalog::Attachment> attachment;
    std::unique_ptr<session::Session> session;
  };
  Client Open() {
    Client client;
    client.attachment = *catalog::Attachment::Attach({.catalog = cluster_.Client()});
    client.session = *session::Session::Open(*client.attachment);
    return client;
  }
  static std::string Run(session::Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    EXPECT_TRUE(result.ok()) << statement << ": " << result.status();
    return result.ok() && !result->rows.empty() ? result->rows[0][0].ToString() : "";
  }
  static SqlError Refused(session::Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    EXPECT_FALSE(result.ok()) << statement;
    return SqlErrorOf(result.status()).value_or(SqlError());
  }
  absl::StatusOr<session::SavedRecords> Save() {
    return session::SaveRecords(*last_, *session::MakeRecordEngine(*last_), folder_.File("records.saved"));
  }

  InProcessCluster cluster_{{.fabric = fabric::Kind::kShm, .memory_servers = 2, .compute_servers = 1}};
  const TempFolder folder_;
  Client one_ = Open(), two_ = Open();
  const std::unique_ptr<catalog::Attachment> last_ =
      *catalog::Attachment::Attach({.catalog = cluster_.Client()});
};

TEST_F(SoleClientTest, WhatOthersWereToldIsSavedAndNothingComesAfter) {
  Run(*one_.session, "create table t (a int primary key, b int) with (storage = record)");
  Run(*one_.session, "insert into t values (1, 0), (2, 0), (3, 0)");
  Run(*two_.session, "begin");
  Run(*two_.session, "update t set b = 7 where a = 2");
  Run(*one_.session, "update t set b = 8 where a = 1");
  {
    auto sole = session::SoleClient::Begin(*last_);
    ASSERT_TRUE(sole.ok()) << sole.status();
    const SqlError committed = Refused(*two_.session, "commit");
    EXPECT_THAT(committed.sqlstate, AnyOf(sqlstate::kAdminShutdown, sqlstate::kOutcomeUnknown));
    EXPECT_THAT(committed.message, HasSubstr("the cluster is being stopped"));
    for (const char* const statement : {"update t set b = 9 where a = 3", "select count(*) from t"}) {
      const SqlError refused = Refused(*one_.session, statement);
      EXPECT_EQ(refused.sqlstate, sqlstate::kAdminShutdown) << refused.message;
    }
    EXPECT_FALSE(catalog::Attachment::Attach({.catalog = cluster_.Client()}).ok());
    const auto saved = Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(saved->rows, 3u);
    EXPECT_TRUE(sole->Confirm().ok());
  }
  EXPECT_EQ(Run(*one_.session, "select sum(b) from t"), "8")
      << "the cluster goes on, and nobody else has written";
  Run(*two_.session, "update t set b = 1 where a = 3");
  EXPECT_EQ(Run(*one_.session, "select sum(b) from t"), "9");
}

TEST_F(SoleClientTest, TwoCannotStopIt) {
  Run(*one_.session, "create table t (a int primary key) with (storage = record)");
  const auto first = session::SoleClient::Begin(*last_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(session::SoleClient::Begin(*one_.attachment).ok());
  EXPECT_TRUE(Save().ok());
}

}  // namespace
}  // namespace nam::testing
