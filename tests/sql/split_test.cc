#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sql/bound_query.h"

namespace nam::sql {
namespace {

/// Pieces joined by |, the last followed by … when it is incomplete.
std::string Split(const std::string& script) {
  std::string shown;
  for (const ScriptPiece& piece : SplitStatements(script)) {
    shown += piece.text + (piece.complete ? "|" : "…");
  }
  return shown;
}

TEST(SplitTest, Semicolons) {
  EXPECT_EQ(Split("select 1; select 2;"), "select 1|select 2|");
  EXPECT_EQ(Split(" select 1 ;\n\n  select 2 "), "select 1|select 2…");
  EXPECT_EQ(Split(";;  ; select 1;;"), "select 1|");
  EXPECT_EQ(Split(""), "");
  EXPECT_EQ(Split(" \n\t"), "");
}

TEST(SplitTest, QuotesAndCommentsHideThem) {
  EXPECT_EQ(Split("select ';' ; x"), "select ';'|x…");
  EXPECT_EQ(Split("select \"a;b\"; select $$;$$; select $q$ ; $$ $q$;"),
            "select \"a;b\"|select $$;$$|select $q$ ; $$ $q$|");
  EXPECT_EQ(Split("select E'\\';'; x;"), "select E'\\';'|x|");
  EXPECT_EQ(Split("select 1 -- ; no\n+ 2; x;"), "select 1 -- ; no\n+ 2|x|");
  EXPECT_EQ(Split("/* ; /* nested ; */ ; */ select 1;"), "select 1|");
  EXPECT_EQ(Split("select 'é;€' ; x"), "select 'é;€'|x…");
}

TEST(SplitTest, UnicodeStringsAndNamesBelongToTheirStatement) {
  EXPECT_EQ(Split("select U&'\\0061'"), "select U&'\\0061'…");
  EXPECT_EQ(Split("delete from t where a = 1 U&'x;y' ; select U&\";\" -- c\n;"),
            "delete from t where a = 1 U&'x;y'|select U&\";\"|");
  EXPECT_EQ(Split("select U&'a'\n'b' ;"), "select U&'a'\n'b'|");
  EXPECT_EQ(Split("select U&'!0061' UESCAPE '!';"), "select U&'!0061' UESCAPE '!'|");
}

TEST(SplitTest, AnErrorWithinAStringEndsWithTheString) {
  EXPECT_EQ(Split("select 1; select E'\\udb99'; select 2;"), "select 1|select E'\\udb99'|select 2|");
  EXPECT_EQ(Split("select E'\\ud83d ; it''s \\' ;', 3 ; select 2"),
            "select E'\\ud83d ; it''s \\' ;', 3 |select 2…");
  EXPECT_EQ(Split("select 'a', E'\\u00zz;'; x"), "select 'a', E'\\u00zz;'|x…");
  EXPECT_EQ(Split("select E'\\udb99"), "select E'\\udb99…");
}

TEST(SplitTest, OnlyComments) {
  EXPECT_EQ(Split("-- nothing\n"), "");
  EXPECT_EQ(Split("select 1; -- done; really"), "select 1|");
}

TEST(SplitTest, Unfinished) {
  EXPECT_EQ(Split("select 1; select 'abc ; def"), "select 1|select 'abc ; def…");
  EXPECT_EQ(Split("select 1; /* ; "), "select 1|/* ; …");
  EXPECT_EQ(Split("select \"é ; x"), "select \"é ; x…");
  EXPECT_EQ(Split("select 1; select $a$ ; "), "select 1|select $a$ ; …");
  EXPECT_EQ(Split("'"), "'…");
}

TEST(SplitTest, ScannerErrorsEndWithTheirStatement) {
  EXPECT_EQ(Split("select 1; select 0x1f ; select 2; select 3"), "select 1|select 0x1f |select 2|select 3…");
  EXPECT_EQ(Split("select 12ab"), "select 12ab…");
}

RC_GTEST_PROP(SplitProperty, KeepsEveryPiece, ()) {
  const std::vector<std::string> kPieces = {"select 1",    "select ';'", "a \";\" b", "$$;$$ x",
                                            "x /* ; */ y", "é = 'ü;'",   "(a",        "E'\\'' || ';'"};
  const auto chosen = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kPieces.size()));
  std::string script;
  for (const size_t i : chosen) script += kPieces[i] + (i % 2 == 0 ? " ;" : ";\n");
  const auto pieces = SplitStatements(script);
  RC_ASSERT(pieces.size() == chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    RC_ASSERT(pieces[i].text == kPieces[chosen[i]]);
    RC_ASSERT(pieces[i].complete);
  }
}

RC_GTEST_PROP(SplitProperty, NeverFails, (const std::string& script)) {
  size_t bytes = 0;
  for (const ScriptPiece& piece : SplitStatements(script)) {
    RC_ASSERT(!piece.text.empty());
    bytes += piece.text.size();
  }
  RC_ASSERT(bytes <= script.size());
}

}  // namespace
}  // namespace nam::sql
