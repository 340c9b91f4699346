#include "sql/error_text.h"

#include <gtest/gtest.h>

namespace nam::sql {
namespace {

TEST(ErrorTextTest, PointsAtTheLine) {
  const std::string text = "select sum(lo_revenu)\nfrom lineorder";
  EXPECT_EQ(
      FormatError(text, {"column \"lo_revenu\" does not exist", 11, "did you mean \"lo_revenue\"?", "42703"}),
      "ERROR:  column \"lo_revenu\" does not exist (SQLSTATE 42703)\n"
      "LINE 1: select sum(lo_revenu)\n"
      "                   ^\n"
      "HINT:  did you mean \"lo_revenue\"?");
  EXPECT_EQ(FormatError(text, {"oops", 27, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 2: from lineorder\n             ^");
}

TEST(ErrorTextTest, CountsCodePoints) {
  EXPECT_EQ(FormatError("where n = 'é€😀' x", {"oops", 22, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: where n = 'é€😀' x\n                        ^");
}

TEST(ErrorTextTest, KeepsTabs) {
  EXPECT_EQ(FormatError("a\n\tb\tc\r\nd", {"oops", 5, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 2: \tb\tc\n        \t \t^");
}

TEST(ErrorTextTest, Ends) {
  EXPECT_EQ(FormatError("select", {"oops", 6, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: select\n              ^");
  EXPECT_EQ(FormatError("a\nb", {"oops", 1, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: a\n         ^");
  EXPECT_EQ(FormatError("", {"oops", 0, "", "42601"}), "ERROR:  oops (SQLSTATE 42601)\nLINE 1: \n        ^");
  EXPECT_EQ(FormatError("a", {"oops", -1, "do so", "0A000"}), "ERROR:  oops (SQLSTATE 0A000)\nHINT:  do so");
  EXPECT_EQ(FormatError("a", {"oops", 7, "", "0A000"}), "ERROR:  oops (SQLSTATE 0A000)");
}

TEST(ErrorTextTest, StatusRoundTrip) {
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
  // Bytes that are no UTF-8 (from data) do not stop an error from being reported.
  EXPECT_TRUE(SqlErrorOf(ToStatus({"bad \xff byte", 1, "", "22P02"})).has_value());
}

}  // namespace
}  // namespace nam::sql
