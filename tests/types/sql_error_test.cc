#include "types/sql_error.h"

#include <gtest/gtest.h>

#include "base/exhausted.h"

namespace nam {
namespace {

TEST(SqlErrorTest, MessagesThatQuoteAreShortened) {
  const std::string many(3'000'000, 'x');
  const auto error = SqlErrorOf(ToStatus({"invalid: " + many, 3, many, "22P02"}));
  ASSERT_TRUE(error.has_value());
  EXPECT_LT(error->message.size(), 700u);
  EXPECT_LT(error->hint.size(), 700u);
  EXPECT_EQ(error->sqlstate, "22P02");
}

TEST(SqlErrorTest, TooFewResourcesStayThatForCallers) {
  EXPECT_EQ(UserError(sqlstate::kOutOfMemory, "too much", -1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(UserError(sqlstate::kInsufficientResources, "too many", -1).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(UserError(sqlstate::kTooComplex, "too deep", -1).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SqlErrorTest, EveryErrorGetsASqlState) {
  const std::pair<absl::StatusCode, const char*> kStates[] = {
      {absl::StatusCode::kCancelled, "57014"},          {absl::StatusCode::kUnknown, "XX000"},
      {absl::StatusCode::kInvalidArgument, "22023"},    {absl::StatusCode::kDeadlineExceeded, "08006"},
      {absl::StatusCode::kNotFound, "42P01"},           {absl::StatusCode::kAlreadyExists, "42710"},
      {absl::StatusCode::kPermissionDenied, "42501"},   {absl::StatusCode::kResourceExhausted, "53000"},
      {absl::StatusCode::kFailedPrecondition, "55000"}, {absl::StatusCode::kAborted, "40001"},
      {absl::StatusCode::kOutOfRange, "22003"},         {absl::StatusCode::kUnimplemented, "0A000"},
      {absl::StatusCode::kInternal, "XX000"},           {absl::StatusCode::kUnavailable, "08006"},
      {absl::StatusCode::kDataLoss, "XX001"},           {absl::StatusCode::kUnauthenticated, "28000"}};
  for (const auto& [code, state] : kStates) {
    const absl::Status with = WithSqlState(absl::Status(code, "what happened"));
    EXPECT_EQ(with.code(), code);
    EXPECT_EQ(with.message(), "what happened");
    const auto error = SqlErrorOf(with);
    ASSERT_TRUE(error.has_value()) << with;
    EXPECT_EQ(error->sqlstate, state);
    EXPECT_EQ(error->message, "what happened");
  }
  const std::pair<absl::Status, const char*> kExhausted[] = {{OutOfMemoryError("what happened"), "53200"},
                                                             {DiskFullError("what happened"), "53100"}};
  for (const auto& [error, state] : kExhausted) {
    EXPECT_EQ(error.code(), absl::StatusCode::kResourceExhausted);
    const absl::Status with = WithSqlState(error);
    EXPECT_EQ(SqlErrorOf(with).value_or(SqlError{}).sqlstate, state);
    EXPECT_EQ(with.message(), "what happened");
  }
  absl::Status unknown = absl::ResourceExhaustedError("of another version");
  unknown.SetPayload(kExhaustedPayload, absl::Cord("patience"));
  EXPECT_EQ(SqlErrorOf(WithSqlState(unknown)).value_or(SqlError{}).sqlstate, "53000");
  const absl::Status known = ToStatus({"m", 4, "h", "42703"});
  EXPECT_EQ(WithSqlState(known), known);
  EXPECT_TRUE(WithSqlState(absl::OkStatus()).ok());
}

TEST(SqlErrorTest, StatusRoundTrip) {
  const SqlError error{"message with \"quotes\" and é", 17, "a hint", "42703"};
  const absl::Status status = ToStatus(error);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto back = SqlErrorOf(status);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->message, error.message);
  EXPECT_EQ(back->position, error.position);
  EXPECT_EQ(back->hint, error.hint);
  EXPECT_EQ(back->sqlstate, error.sqlstate);
  EXPECT_EQ(ToStatus({"m", -1, "", "0A000"}).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ToStatus({"m", -1, "", "22003"}).code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(SqlErrorOf(absl::InternalError("x")).has_value());
  EXPECT_FALSE(SqlErrorOf(absl::OkStatus()).has_value());
  // Invalid UTF-8 (from data) does not prevent reporting an error.
  EXPECT_TRUE(SqlErrorOf(ToStatus({"bad \xff byte", 1, "", "22P02"})).has_value());
}

}  // namespace
}  // namespace nam
