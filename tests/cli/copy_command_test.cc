#include "cli/copy_command.h"

#include <gtest/gtest.h>

namespace nam::cli {
namespace {

TEST(CopyCommandTest, NamesOfFilesNeedNoQuotes) {
  EXPECT_EQ(CopyStatementOf("t from people.csv csv header"), "COPY t from 'people.csv' csv header");
  EXPECT_EQ(CopyStatementOf("t (a, b) FROM /tmp/it's.csv WITH (header)"),
            "COPY t (a, b) FROM '/tmp/it''s.csv' WITH (header)");
  EXPECT_EQ(CopyStatementOf("t from 'with blanks.csv' (delimiter ';')"),
            "COPY t from 'with blanks.csv' (delimiter ';')");
  EXPECT_EQ(CopyStatementOf("\"from\" to x.csv"), "COPY \"from\" to 'x.csv'");
}

TEST(CopyCommandTest, StandardInputAndOutputAreTheClients) {
  EXPECT_EQ(CopyStatementOf("t from stdin"), "COPY t from STDIN");
  EXPECT_EQ(CopyStatementOf("t from PSTDIN csv"), "COPY t from STDIN csv");
  EXPECT_EQ(CopyStatementOf("t to pstdout"), "COPY t to STDOUT");
  EXPECT_EQ(CopyStatementOf("t from program 'ls'"), "COPY t from program 'ls'");
}

TEST(CopyCommandTest, QueriesStandInParentheses) {
  EXPECT_EQ(CopyStatementOf("(select a from t where b = 'x) to y') to out.csv"),
            "COPY (select a from t where b = 'x) to y') to 'out.csv'");
}

TEST(CopyCommandTest, WhatIsIncompleteIsForTheParser) {
  EXPECT_EQ(CopyStatementOf(""), "COPY");
  EXPECT_EQ(CopyStatementOf("t from"), "COPY t from");
  EXPECT_EQ(CopyStatementOf("t from 'open"), "COPY t from 'open");
  EXPECT_EQ(CopyStatementOf("(select 1 to x"), "COPY (select 1 to x");
}

}  // namespace
}  // namespace nam::cli
