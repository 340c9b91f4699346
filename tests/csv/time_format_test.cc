#include "csv/time_format.h"

#include <gtest/gtest.h>

#include <string>

namespace nam::csv {
namespace {

std::string ReadAs(std::string_view text, std::string_view format) {
  return ReadByFormat(text, format).value_or("none");
}

TEST(TimeFormatTest, TextsAreReadByTheirFormat) {
  EXPECT_EQ(ReadAs("31/12/2020", "%d/%m/%Y"), "2020-12-31");
  EXPECT_EQ(ReadAs("20201231", "%Y%m%d"), "2020-12-31");
  EXPECT_EQ(ReadAs("Thu, 31 December 2020", "%a, %d %B %Y"), "2020-12-31");
  EXPECT_EQ(ReadAs("31-DEC-68", "%d-%b-%y"), "2068-12-31");
  EXPECT_EQ(ReadAs("31-Dec-69", "%d-%b-%y"), "1969-12-31");
  EXPECT_EQ(ReadAs("100% 2020-1-2", "100%% %Y-%m-%d"), "2020-01-02");
  EXPECT_EQ(ReadAs("2020-01-02 03:04:05.25", "%Y-%m-%d %H:%M:%S.%f"), "2020-01-02 03:04:05.25");
  EXPECT_EQ(ReadAs("2020-01-02 12:30 am", "%Y-%m-%d %I:%M %p"), "2020-01-02 00:30:00");
  EXPECT_EQ(ReadAs("2020-01-02 12:30 PM", "%Y-%m-%d %I:%M %p"), "2020-01-02 12:30:00");
}

TEST(TimeFormatTest, OtherTextsAreNone) {
  for (const char* const text : {"", "31/12", "31/12/2020 ", "x31/12/2020", "31-12-2020", "12/31/2020",
                                 "30/02/2020", "0/1/2020", "31/12/0"})
    EXPECT_EQ(ReadAs(text, "%d/%m/%Y"), "none") << text;
  EXPECT_EQ(ReadAs("2020-01-02 24:00", "%Y-%m-%d %H:%M"), "none");
  EXPECT_EQ(ReadAs("2020-01-02 0:30 PM", "%Y-%m-%d %I:%M %p"), "none");
  EXPECT_EQ(ReadAs("Foo 1 2020", "%b %d %Y"), "none");
}

TEST(TimeFormatTest, FormatsAreChecked) {
  EXPECT_TRUE(CheckTimeFormat("%d.%m.%Y %H:%M:%S.%f %p %a %A %b %B %I %y %%").ok());
  EXPECT_FALSE(CheckTimeFormat("%d.%q").ok());
  EXPECT_FALSE(CheckTimeFormat("%d%").ok());
}

}  // namespace
}  // namespace nam::csv
