#include "tests/statements/script.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace nam::testing {
namespace {

constexpr char kScript[] = R"(# Two cases.
create table t (id int) --> CREATE TABLE

== One
# a comment
select id,
  n from t
--> 1,2 | 3,4
--> 5,6
@other begin --> BEGIN warns 25001
== Two
insert into t values (1) --> error 23505
)";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseScript(text).status().message());
}

TEST(ScriptTest, HasStepsOfCases) {
  const Script script = ParseScript(kScript).value();
  std::string steps;
  for (const ScriptStep& step : script.steps)
    absl::StrAppend(&steps, step.line, ": ", step.in_case, "/", step.session, "/", step.statement, "/",
                    step.expected, "\n");
  EXPECT_EQ(steps, R"(2: //create table t (id int)/CREATE TABLE
6: One//select id,
  n from t/1,2 | 3,4 | 5,6
10: One/other/begin/BEGIN warns 25001
12: Two//insert into t values (1)/error 23505
)");
}

TEST(ScriptTest, ErrorsNameTheLine) {
  for (const auto& [text, error] : std::vector<std::pair<const char*, const char*>>{
           {"select 1 --> 1\n", "line 2: there is no case: a line == NAME"},
           {"== A\n\n--> 1\n", "line 3: there is no statement before -->"},
           {"== A\n@b! select 1 --> 1\n", "line 2: a session has a name of letters, digits and _"},
           {"== A\nselect 1\n\nselect 2 --> 2\n", "line 3: the statement before has no -->"},
           {"== A\nselect 1\n", "line 3: the statement before has no -->"},
           {"== A\nselect 1 --> 1\n== A\n", "line 3: there is another case of this name"},
           {"== A\n== B\nselect 1 --> 1\n", "line 2: the case before has no statement"},
           {"== A B\n", "line 1: a case has a name of letters, digits and _"}})
    EXPECT_EQ(ErrorOf(text), error) << text;
  EXPECT_FALSE(ParseScript(std::string((1 << 20) + 1, '#')).ok());
}

TEST(ScriptTest, ExpectationsNameAsMuchAsTheyLike) {
  const std::string error = "error 23505 at 7: twice (once)", view = "DROP VIEW notes none | 1";
  for (const std::string met :
       {"error 23505", "error 23505 twice", "error 23505 at 7:", "error 23505 (once)"})
    EXPECT_EQ(AsDetailed(error, met), met);
  for (const std::string not_met : {"error 23505 thrice", "error 23503 twice", "error 2350 twice"})
    EXPECT_EQ(AsDetailed(error, not_met), error);
  for (const std::string not_met : {"error 23503", "error 2350", "?"})
    EXPECT_EQ(AsDetailed(error, not_met), "error 23505");
  EXPECT_EQ(AsDetailed(view, "?"), "DROP VIEW | 1");
  EXPECT_EQ(AsDetailed(view, "? notes ?"), view);
  EXPECT_EQ(AsDetailed("1 | 2", "error 23505"), "1 | 2");
}

TEST(ScriptTest, ExpectationsAreWrittenAnew) {
  Script script = ParseScript(kScript).value();
  EXPECT_EQ(ToText(script), kScript);
  std::string rows = "1000";
  for (int i = 1001; i < 1100; ++i) absl::StrAppend(&rows, " | ", i);
  Expect(rows, script.steps[1]);
  Expect("INSERT 0 1", script.steps[3]);
  const std::string text = ToText(script);
  EXPECT_TRUE(absl::EndsWith(text, "== Two\ninsert into t values (1) --> INSERT 0 1\n")) << text;
  script = ParseScript(text).value();
  EXPECT_EQ(script.steps[1].expected, rows);
  EXPECT_LE(script.steps[1].text.find("\n-->", script.steps[1].text.find("-->")), 200u)
      << "lines are wrapped";
}

TEST(ScriptTest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(17);
  const std::string pieces[] = {"\n", "-->", "== ", "@", " | ", "#", " ", std::string(1, '\0')};
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kScript;
    for (unsigned edits = random() % 6; edits > 0; --edits) {
      const size_t at = random() % (text.size() + 1);
      random() % 2 == 0 ? text.erase(at, random() % 20)
                        : text.insert(at, pieces[random() % std::size(pieces)]);
    }
    const absl::StatusOr<Script> script = ParseScript(text);
    if (!script.ok()) continue;
    ASSERT_EQ(absl::StripSuffix(ToText(*script), "\n"), absl::StripSuffix(text, "\n"));
  }
}

}  // namespace
}  // namespace nam::testing
