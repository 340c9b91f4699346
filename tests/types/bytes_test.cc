#include "types/bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "types/type.h"

namespace nam {
namespace {

std::string RandomBytes(std::mt19937& random) {
  std::string bytes(random() % 200, '\0');
  for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? 0 : random() & 0xff);
  return bytes;
}

TEST(Bytes, WhatIsWrittenIsReadAgain) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = RandomBytes(random);
    EXPECT_EQ(BytesOfHex(HexOfBytes(bytes)).value(), bytes);
    EXPECT_EQ(BytesOfEscaped(EscapedBytes(bytes)).value(), bytes);
    EXPECT_EQ(BytesOfBase64(Base64OfBytes(bytes)).value(), bytes);
    EXPECT_EQ(ParseBytes(BytesValue(bytes).ToString()).value(), bytes);
    EXPECT_EQ(ParseBytes(EscapedBytes(bytes)).value(), bytes);
  }
}

TEST(Bytes, UuidsAreInTheOrderOfTheirBytes) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto uuid = [&] {
    std::string bytes(16, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 2 == 0 ? 0x7f + random() % 3 : random() & 0xff);
    return bytes;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string a = uuid(), b = uuid();
    const Value x = UuidValue(UuidOfBytes(a)), y = UuidValue(UuidOfBytes(b));
    EXPECT_EQ(BytesOfUuid(x.number), a);
    EXPECT_EQ(ParseUuid(x.ToString()).value(), x.number);
    EXPECT_EQ(Compare(x, y) < 0, a < b);
    EXPECT_EQ(x.ToString() < y.ToString(), a < b);
  }
}

TEST(Bytes, TextsThatAreNone) {
  for (const char* text : {"", "{}", "{", "0", "0123456789abcdef0123456789abcdef0",
                           "0123456789abcdef0123456789abcdeg", "01-23456789abcdef0123456789abcdef",
                           "0123456789abcdef0123456789abcdef-", "{0123456789abcdef0123456789abcdef",
                           "0123456789abcdef0123456789abcdef}", "0123--456789abcdef0123456789abcdef"})
    EXPECT_FALSE(ParseUuid(text).ok()) << text;
  for (const char* text : {"\\x0", "\\xg0", "\\x 0 0", "\\", "\\12", "\\400", "\\a"})
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  for (const char* text : {"A", "AA", "AAA", "A===", "AA=", "*AAA"})
    EXPECT_FALSE(BytesOfBase64(text).ok()) << text;
}

}  // namespace
}  // namespace nam
