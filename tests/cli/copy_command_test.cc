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

TEST(CopyCommandTest, OnlyPstdinIsTheProcessesOwnInput) {
  EXPECT_TRUE(TakesProcessInput("t from pstdin"));
  EXPECT_TRUE(TakesProcessInput("t (a, b) FROM PSTDIN csv"));
  for (const char* const other :
       {"t from stdin", "t from 'pstdin'", "t from pstdin.csv", "t to pstdout", "", "t from"})
    EXPECT_FALSE(TakesProcessInput(other)) << other;
}

TEST(CopyCommandTest, StatementsThatCopyFromStandardInput) {
  for (const char* const copy : {"copy t from stdin", "Copy t (\"from\", b)\n  FROM\tSTDIN (format csv)",
                                 "/* rows */ copy t from/**/stdin;"})
    EXPECT_TRUE(CopiesFromInput(copy)) << copy;
  for (const char* const other :
       {"copy t from 'stdin'", "copy t to stdout", "copy (select a from stdin) to stdout",
        "select 1 from stdin", "copy t from \"stdin\"", "copy t", "", "copy 'x"})
    EXPECT_FALSE(CopiesFromInput(other)) << other;
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
