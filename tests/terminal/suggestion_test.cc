#include "terminal/suggestion.h"

#include "gtest/gtest.h"

namespace nam {
namespace {

const std::vector<std::string> kCommands = {"up",  "down",  "status",   "sql",
                                            "ssb", "scale", "checkout", "doctor"};

TEST(SuggestionTest, FewLettersAside) {
  EXPECT_EQ(Suggestion("stauts", kCommands), "status");
  EXPECT_EQ(Suggestion("chekout", kCommands), "checkout");
  EXPECT_EQ(Suggestion("sqll", kCommands), "sql");
  EXPECT_EQ(Suggestion("dwon", kCommands), "down");
  EXPECT_EQ(Suggestion("docter", kCommands), "doctor");
}

TEST(SuggestionTest, NothingAlike) {
  EXPECT_EQ(Suggestion("frobnicate", kCommands), "");
  EXPECT_EQ(Suggestion("", kCommands), "");
  EXPECT_EQ(Suggestion("x", kCommands), "");
  EXPECT_EQ(Suggestion(std::string(100'000, 's'), kCommands), "");
}

}  // namespace
}  // namespace nam
