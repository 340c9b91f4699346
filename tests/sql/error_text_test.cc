#include "sql/error_text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

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

TEST(ErrorTextTest, OfALongLineOnlyWhatIsNear) {
  const std::string many(3'000'000, 'x');
  const std::string near(60, 'x'), pad(8 + 3 + 60, ' ');
  EXPECT_EQ(FormatError(many + "!" + many, {"oops", 3'000'000, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: ..." + near + "!" + near.substr(1) + "...\n" + pad + "^");
  EXPECT_EQ(FormatError(many, {"oops", 0, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: " + near + "...\n        ^");
  EXPECT_EQ(FormatError(many, {"oops", 3'000'000, "", "42601"}),
            "ERROR:  oops (SQLSTATE 42601)\nLINE 1: ..." + near + "\n" + pad + "^");
  // Characters are not cut.
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "日";
  const std::string shown = FormatError(wide, {"oops", 1500, "", "42601"});
  int bad = 0;
  EXPECT_TRUE(IsCleanUtf8(shown, &bad)) << shown;
  EXPECT_LT(shown.size(), 400u);
}

}  // namespace
}  // namespace nam::sql
