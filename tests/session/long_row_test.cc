#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "partitioner/row_bytes.h"
#include "tests/session/file_session.h"

/// Rows that are as long as queries can have them, and longer ones.
namespace nam::testing {
namespace {

/// Of a row of `docs`: 16 bytes of the number, and 8 for the text's place.
constexpr size_t kLongest = partitioner::kRowBytesMax - 16 - 8;

class LongRowTest : public FileSession {
 protected:
  void SetUp() override {
    Command("create table docs (id int, body text) with (storage = columnar, partition_by = 'id:2')");
    Command(
        "create table short as select g::int as id, 'a' || g as body from generate_series(1, 20) as s(g)");
  }
  /// A file of a row with a text of so many bytes, between two short ones.
  std::string File(size_t bytes) {
    return Write("docs.csv", absl::StrCat("id,body\n1,one\n2,", std::string(bytes, 'x'), "\n3,three\n"));
  }
  std::string Repeat(size_t bytes) {
    // A folded constant has at most 64 KiB.
    return absl::StrCat("(repeat('x', ", bytes - 1, ") || 'y')");
  }
  void ExpectTooBig(const std::string& sql) {
    const SqlError error = ErrorOf(sql);
    EXPECT_EQ(error.sqlstate, "54000") << sql;
    EXPECT_TRUE(absl::StrContains(error.message, "row is too big for table")) << error.message;
    EXPECT_TRUE(absl::StrContains(error.message, "maximum size 65000")) << error.message;
    EXPECT_TRUE(absl::StrContains(error.hint, "column \"body\" has")) << error.hint;
  }
};

TEST_F(LongRowTest, NoStatementStoresOneThatNoneCouldRead) {
  for (const size_t bytes : {kLongest + 1, size_t{70'000}, size_t{20} << 20}) {
    const std::string copy = absl::StrCat("copy docs from '", File(bytes), "' with (header)");
    ExpectTooBig(copy);
    EXPECT_TRUE(absl::StrContains(ErrorOf(copy).message, "docs.csv:3: ")) << ErrorOf(copy).message;
  }
  ExpectTooBig(absl::StrCat("create table other as from '", File(70'000), "'"));
  for (const char* const where : {"on", "off"}) {
    Command(absl::StrCat("set nam.server_writes = ", where));
    ExpectTooBig("insert into docs select g, repeat('x', 63000 + g) from generate_series(1, 2000) as s(g)");
    ExpectTooBig("insert into docs select id, body || repeat('x', 64990 + id) from short");
  }
  ExpectTooBig(absl::StrCat("insert into docs values (1, ", Repeat(kLongest + 1), ")"));
  EXPECT_EQ(Rows("select count(*) from docs"), (TextRows{{"0"}}));
  EXPECT_EQ(ErrorOf("select * from other").sqlstate, "42P01");
}

TEST_F(LongRowTest, AreLeftOutOfACopyLikeOtherRowsThatAreWrong) {
  EXPECT_EQ(Command(absl::StrCat("copy docs from '", File(70'000), "' with (header, on_error ignore)")),
            "COPY 2");
  EXPECT_EQ(Rows("select * from docs order by id"), (TextRows{{"1", "one"}, {"3", "three"}}));
}

TEST_F(LongRowTest, OfFilesHaveColumnsThatAQueryReadsAllTheSame) {
  EXPECT_EQ(Rows(absl::StrCat("select count(*), sum(id) from '", File(70'000), "'")), (TextRows{{"3", "6"}}));
}

/// Every statement that has whole rows has the longest one.
TEST_F(LongRowTest, TheLongestGoThroughEveryStatement) {
  const std::string body(kLongest, 'x');
  ASSERT_EQ(Command(absl::StrCat("copy docs from '", File(kLongest), "' with (header)")), "COPY 3");
  EXPECT_EQ(Command(absl::StrCat("insert into docs values (4, ", Repeat(kLongest), ")")), "INSERT 0 1");
  const TextRows rows = Rows("select * from docs order by id");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1][1], body);
  EXPECT_EQ(rows[3][1].size(), kLongest);
  EXPECT_EQ(Rows("select body from docs where id = 2"), (TextRows{{body}}));
  EXPECT_EQ(Rows("select id, body from docs order by body desc, id limit 1")[0][0], "4");
  EXPECT_EQ(Rows("select body, count(*) from docs group by body").size(), 4u);
  EXPECT_EQ(Rows("select distinct body from docs").size(), 4u);
  EXPECT_EQ(Rows("select length(max(body)) from docs"), (TextRows{{absl::StrCat(kLongest)}}));
  for (const char* const join : {"rrj", "rdma_ghj"}) {
    Command(absl::StrCat("set nam.join = '", join, "'"));
    EXPECT_EQ(Rows("select a.id, a.body from docs a join docs b on a.id = b.id order by a.id"), rows) << join;
  }
  for (const char* const where : {"on", "off"}) {
    Command(absl::StrCat("set nam.server_writes = ", where));
    EXPECT_EQ(Command("create table copied as select * from docs"), "SELECT 4");
    EXPECT_EQ(Rows("select * from copied order by id"), rows);
    Command("drop table copied");
  }
  EXPECT_EQ(Command("insert into docs select id + 4, body from docs"), "INSERT 0 4");
  EXPECT_EQ(Command("vacuum docs"), "VACUUM");
  const std::string file = folder_.File("out.csv");
  EXPECT_EQ(Command(absl::StrCat("copy docs to '", file, "'")), "COPY 8");
  Command("truncate docs");
  EXPECT_EQ(Command(absl::StrCat("copy docs from '", file, "'")), "COPY 8");
  EXPECT_EQ(Rows("select * from docs where id < 5 order by id"), rows);
}

}  // namespace
}  // namespace nam::testing
