#include "session/session_lost.h"

#include <gtest/gtest.h>

#include "types/sql_error.h"

namespace nam::session {
namespace {

TEST(SessionLostTest, IsOneSentenceWithAStateThatClientsTryAgainOn) {
  const std::string internals = "the transaction has failed: queue pair 3: the member's proof is not known";
  for (const bool in_transaction : {false, true}) {
    for (const auto& [state, expected] :
         {std::pair{"40001", "40001"}, {"08006", "08006"}, {"XX000", "08006"}}) {
      const auto error = SqlErrorOf(SessionLost(UserError(state, internals, -1), in_transaction));
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->sqlstate, expected);
      EXPECT_EQ(error->message, "the session was lost: this client stalled for longer than its lease");
      EXPECT_EQ(error->hint.find("ROLLBACK") != std::string::npos, in_transaction);
      EXPECT_TRUE(error->hint.ends_with("again")) << error->hint;
    }
  }
  EXPECT_EQ(SqlErrorOf(SessionLost(absl::InternalError(internals), false))->sqlstate, "08006");
}

TEST(SessionLostTest, ACommitMayHaveHappened) {
  const auto error = SqlErrorOf(SessionLost(UserError(sqlstate::kOutcomeUnknown, "queue pair 3", -1), true));
  EXPECT_EQ(error->sqlstate, "08007");
  EXPECT_TRUE(error->message.ends_with("whether the transaction was committed is unknown")) << error->message;
  EXPECT_TRUE(error->hint.ends_with("check whether the changes are there")) << error->hint;
}

TEST(SessionLostTest, WithoutTheCatalogsAnswerItMayBeLost) {
  const absl::Status damage = absl::DataLossError("a page of rows from another server is broken");
  const auto error = SqlErrorOf(SessionMayBeLost(damage));
  EXPECT_EQ(error->sqlstate, "08006");
  EXPECT_TRUE(error->message.starts_with("the session may be lost")) << error->message;
  EXPECT_EQ(error->hint, "run the statement again");
  EXPECT_TRUE(IsDamage(damage));
  EXPECT_FALSE(IsDamage(UserError(sqlstate::kDataCorrupted, "memory server 3 is gone", -1)));
  EXPECT_FALSE(IsDamage(absl::InternalError("another error")));
}

TEST(SessionLostTest, ConnectionsAndInternalErrorsMayComeOfIt) {
  for (const char* const state : {"08006", "57P03", "58030", "XX000"})
    EXPECT_TRUE(MayComeOfLoss(UserError(state, "an error", -1))) << state;
  EXPECT_TRUE(MayComeOfLoss(absl::InternalError("not of a user")));
  for (const char* const state : {"22012", "40001", "42P01"})
    EXPECT_FALSE(MayComeOfLoss(UserError(state, "an error", -1))) << state;
}

}  // namespace
}  // namespace nam::session
