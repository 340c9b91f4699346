#include "terminal/units.h"

#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"
#include "terminal/text_width.h"

namespace nam {
namespace {

TEST(ParseBytesTest, BaseTwoUnits) {
  EXPECT_EQ(ParseBytes("0").value(), 0u);
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("64KiB").value(), 65536u);
  EXPECT_EQ(ParseBytes("512 MiB").value(), 512ull << 20);
  EXPECT_EQ(ParseBytes("4GiB").value(), 4ull << 30);
  EXPECT_EQ(ParseBytes("4g").value(), 4ull << 30);
  EXPECT_EQ(ParseBytes("1.5GiB").value(), 3ull << 29);
  EXPECT_EQ(ParseBytes("2TiB").value(), 2ull << 40);
  EXPECT_EQ(ParseBytes("12B").value(), 12u);
}

TEST(ParseBytesTest, RefusesEverythingElse) {
  for (const char* text : {"", "GiB", "-1", "1.5", "1.", ".", "1..5GiB", "4GB", "4XiB", "4GiBs", "1e9", " 4",
                           "4 G iB", "99999999999999999999", "16777216TiB", "0x10", "1.0000000001GiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  EXPECT_NE(std::string(ParseBytes("4GB").status().message()).find("GiB"), std::string::npos);
}

TEST(FormatBytesTest, OneDecimalAtMost) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(700), "700 B");
  EXPECT_EQ(FormatBytes(1024), "1 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(4ull << 30), "4 GiB");
  EXPECT_EQ(FormatBytes((1ull << 20) - 1), "1 MiB");
  EXPECT_EQ(FormatBytes(~0ull), "16 EiB");
}

RC_GTEST_PROP(FormatBytesTest, IsReadBackWithinATenth, (uint64_t any)) {
  const uint64_t bytes = any >> 14;  // what TiB can say
  const uint64_t back = ParseBytes(FormatBytes(bytes)).value();
  const double error = static_cast<double>(back) - static_cast<double>(bytes);
  RC_ASSERT(std::abs(error) <= 0.06 * static_cast<double>(bytes) + 1);
}

TEST(FormatTest, CountsAndDurations) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(6001215), "6,001,215");
  EXPECT_EQ(CountOf(0, "memory server"), "0 memory servers");
  EXPECT_EQ(CountOf(1, "memory server"), "1 memory server");
  EXPECT_EQ(CountOf(2, "memory server"), "2 memory servers");
  EXPECT_EQ(FormatDuration(7), "0:07");
  EXPECT_EQ(FormatDuration(750), "12:30");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatMilliseconds(12.3456), "12.346");
}

TEST(DisplayWidthTest, WideCombiningAndBroken) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("größe"), 5u);
  EXPECT_EQ(DisplayWidth("日本語"), 6u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);  // e and a combining acute accent
  EXPECT_EQ(DisplayWidth("🚀"), 2u);
  EXPECT_EQ(DisplayWidth("a\xFFz"), 3u);
}

TEST(PrintableTest, EscapesWhatMovesTheCursor) {
  EXPECT_EQ(Printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(Printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(Printable("ä\xC0\xAF"), "ä\uFFFD\uFFFD");          // an overlong slash
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
}

RC_GTEST_PROP(NextCodePointTest, TakesAllBytesAndGivesValidUtf8, (std::string text)) {
  std::string_view rest = text;
  std::string out;
  while (!rest.empty()) {
    const size_t before = rest.size();
    AppendUtf8(NextCodePoint(rest), out);
    RC_ASSERT(rest.size() < before);
  }
  std::string again;
  for (std::string_view valid = out; !valid.empty();) AppendUtf8(NextCodePoint(valid), again);
  RC_ASSERT(again == out);
}

}  // namespace
}  // namespace nam
