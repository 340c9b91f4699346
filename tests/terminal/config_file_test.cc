#include "terminal/config_file.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string File(const std::string& text) {
  const std::string path = testing::TempDir() + "nam.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(ConfigFileTest, AnEmptyFileHasNoEntries) {
  for (const std::string& path : {File(""), std::string("/dev/null")}) {
    const auto entries = ReadConfigFile(path);
    ASSERT_TRUE(entries.ok()) << path << ": " << entries.status();
    EXPECT_THAT(*entries, IsEmpty());
  }
  EXPECT_FALSE(ReadConfigFile(testing::TempDir()).ok()) << "a directory";
  EXPECT_FALSE(ReadConfigFile("/nowhere/nam.toml").ok());
}

TEST(ConfigFileTest, SectionsKeysAndPositions) {
  const auto entries =
      ReadConfigFile(File("catalog = \"db1:7000\"\n\n[ssb.load]\nscale-factor = 0.1\nreplace = true\n"
                          "[ssb.run]\nqueries = [\"Q1.1\", \"Q2.1\"]\nrepeat = 7\n"));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 5u);
  const auto find = [&](const std::string& key) {
    for (const ConfigEntry& entry : *entries) {
      if (entry.key == key) return entry;
    }
    return ConfigEntry{};
  };
  EXPECT_THAT(find("catalog").section, IsEmpty());
  EXPECT_THAT(find("catalog").values, ElementsAre("db1:7000"));
  EXPECT_THAT(find("catalog").where, HasSubstr("nam.toml:1:1"));
  EXPECT_THAT(find("scale-factor").section, ElementsAre("ssb", "load"));
  EXPECT_THAT(find("scale-factor").values, ElementsAre("0.1"));
  EXPECT_THAT(find("replace").values, ElementsAre("true"));
  EXPECT_THAT(find("queries").values, ElementsAre("Q1.1", "Q2.1"));
  EXPECT_THAT(find("repeat").values, ElementsAre("7"));
}

TEST(ConfigFileTest, ErrorsSayWhere) {
  EXPECT_THAT(std::string(ReadConfigFile(File("a = 1\nb = = 2\n")).status().message()),
              HasSubstr("nam.toml:2:"));
  EXPECT_THAT(std::string(ReadConfigFile(File("when = 1979-05-27\n")).status().message()),
              HasSubstr("nam.toml:1:1"));
  EXPECT_FALSE(ReadConfigFile(File("a = [[1], [2]]\n")).ok());
  EXPECT_FALSE(ReadConfigFile(File("a = 1\na = 2\n")).ok());
  EXPECT_EQ(ReadConfigFile("/nonexistent.toml").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace nam
