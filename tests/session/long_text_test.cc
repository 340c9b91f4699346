#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/session/file_session.h"
#include "types/text_bytes.h"

/// Texts that fit no page of a query, and longer ones than there may be.
namespace nam::testing {
namespace {

/// Texts that differ at their ends alone, unless the lengths differ.
std::string Body(size_t bytes, char last) {
  std::string body(bytes, 'x');
  if (bytes > 0) body.back() = last;
  return body;
}

class LongTextTest : public FileSession {
 protected:
  /// docs (id, body) by a file of these texts, numbered from 1.
  void Load(const std::vector<std::string>& bodies) {
    Command("create table docs (id int, body text) with (storage = columnar, partition_by = 'id:2')");
    EXPECT_EQ(Command(absl::StrCat("copy docs from '", File(bodies), "' with (header)")),
              absl::StrCat("COPY ", bodies.size()));
  }
  std::string File(const std::vector<std::string>& bodies) {
    std::string text = "id,body\n";
    for (size_t i = 0; i < bodies.size(); ++i) absl::StrAppend(&text, i + 1, ",", bodies[i], "\n");
    return Write("docs.csv", text);
  }
  /// Not by EXPECT_EQ, which would print megabytes.
  void ExpectRows(const std::string& sql, const TextRows& expected) {
    const TextRows rows = Rows(sql);
    ASSERT_EQ(rows.size(), expected.size()) << sql;
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), expected[i].size()) << sql;
      for (size_t c = 0; c < rows[i].size(); ++c)
        ASSERT_TRUE(rows[i][c] == expected[i][c]) << sql << ": row " << i << ", " << rows[i][c].size()
                                                  << " and " << expected[i][c].size() << " bytes";
    }
  }
};

const std::vector<std::string> kBodies = {"one",
                                          Body(65'000, 'a'),
                                          Body(65'537, 'b'),
                                          Body(65'537, 'a'),
                                          Body(size_t{1} << 20, 'c'),
                                          Body(kTextBytesMax, 'd'),
                                          Body(kTextBytesMax, 'e')};

TextRows Docs() {
  TextRows rows;
  for (size_t i = 0; i < kBodies.size(); ++i) rows.push_back({absl::StrCat(i + 1), kBodies[i]});
  return rows;
}

TEST_F(LongTextTest, AreReadAndFilteredAsTheyWereLoaded) {
  Load(kBodies);
  ExpectRows("select id, body from docs order by id", Docs());
  ExpectRows("select * from docs where id = 6", {Docs()[5]});
  ExpectRows("select id from docs where body like '%e'", {{"1"}, {"7"}});
  ExpectRows("select id, length(body) from docs where length(body) > 65000 order by id",
             {{"3", "65537"}, {"4", "65537"}, {"5", "1048576"}, {"6", "16777216"}, {"7", "16777216"}});
  ExpectRows("select a.id from docs a where a.body = (select max(body) from docs where id < 5)", {{"3"}});
  ExpectRows("select right(body, 1) || left(body, 1), id from docs where body > 'x' order by id limit 1",
             {{"ax", "2"}});
}

TEST_F(LongTextTest, GoThroughSortsGroupsAndWindows) {
  Load(kBodies);
  const TextRows docs = Docs();
  TextRows by_body = docs;
  std::sort(by_body.begin(), by_body.end(), [](const auto& a, const auto& b) { return a[1] > b[1]; });
  ExpectRows("select * from docs order by body desc", by_body);
  ExpectRows("select * from docs order by body desc limit 2", {by_body[0], by_body[1]});
  ExpectRows("select count(*), count(distinct body) from docs", {{"7", "7"}});
  std::reverse(by_body.begin(), by_body.end());
  TextRows grouped;
  for (const auto& row : by_body) grouped.push_back({row[1], "2"});
  ExpectRows(
      "select body, count(*) from (select * from docs union all select * from docs) as d group by body "
      "order by body",
      grouped);
  TextRows distinct;
  for (const auto& row : by_body) distinct.push_back({row[1]});
  ExpectRows("select distinct body from docs order by body", distinct);
  ExpectRows("select max(body), min(body) from docs", {{by_body.back()[1], by_body.front()[1]}});
  ExpectRows("select id % 2, max(body) from docs group by id % 2 order by 1",
             {{"0", kBodies[5]}, {"1", kBodies[6]}});
  TextRows lagged = {{"1", "NULL"}};
  for (size_t i = 1; i < kBodies.size(); ++i) lagged.push_back({absl::StrCat(i + 1), kBodies[i - 1]});
  ExpectRows("select id, coalesce(lag(body) over (order by id), 'NULL') from docs order by id", lagged);
}

TEST_F(LongTextTest, GoThroughJoins) {
  Load(kBodies);
  Command("create table notes as select id, body || 'n' as note, body from docs where id < 6");
  TextRows joined;
  for (size_t i = 0; i < 5; ++i) joined.push_back({absl::StrCat(i + 1), kBodies[i], kBodies[i] + "n"});
  for (const char* const join : {"auto", "rrj", "rdma_ghj", "ghj", "ghj_bloom"}) {
    Command(absl::StrCat("set nam.join = '", join, "'"));
    ExpectRows("select d.id, d.body, n.note from docs d join notes n on d.id = n.id order by d.id", joined);
    ExpectRows("select d.id from docs d join notes n on d.body = n.body order by d.id",
               {{"1"}, {"2"}, {"3"}, {"4"}, {"5"}});
    ExpectRows(
        "select d.id, d.body from docs d where not exists (select 1 from notes n where n.body = d.body) "
        "order by d.id",
        {{"6", kBodies[5]}, {"7", kBodies[6]}});
  }
}

TEST_F(LongTextTest, GoIntoTablesAndFiles) {
  Load(kBodies);
  for (const char* const where : {"on", "off"}) {
    Command(absl::StrCat("set nam.server_writes = ", where));
    EXPECT_EQ(Command("create table copied as select * from docs"), "SELECT 7");
    EXPECT_EQ(Command("insert into copied select id + 7, body from docs where id > 4"), "INSERT 0 3");
    ExpectRows("select * from copied where id < 8 order by id", Docs());
    ExpectRows("select id, length(body) from copied where id > 11 order by id",
               {{"12", "1048576"}, {"13", "16777216"}, {"14", "16777216"}});
    Command("vacuum copied");
    ExpectRows("select * from copied where id < 8 order by id", Docs());
    Command("drop table copied");
  }
  EXPECT_EQ(Command("insert into docs values (8, (repeat('y', 70000) || 'z'))"), "INSERT 0 1");
  const std::string file = folder_.File("out.csv");
  EXPECT_EQ(Command(absl::StrCat("copy docs to '", file, "'")), "COPY 8");
  Command("truncate docs");
  EXPECT_EQ(Command(absl::StrCat("copy docs from '", file, "'")), "COPY 8");
  ExpectRows("select * from docs where id < 8 order by id", Docs());
  ExpectRows("select length(body) from docs where id = 8", {{"70001"}});
  ExpectRows(absl::StrCat("select id, body from read_csv('", File(kBodies), "') order by id"), Docs());
  EXPECT_EQ(Command(absl::StrCat("create table other as from '", File(kBodies), "'")), "SELECT 7");
  ExpectRows("select * from other order by id", Docs());
}

/// Lengths around those of pages, and of the rest of pages, beside a table of the same texts in memory.
TEST_F(LongTextTest, OfAnyLengthsAreThoseOfAModel) {
  uint64_t state = 42;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  std::vector<std::string> bodies;
  for (int i = 0; i < 160; ++i) {
    const uint64_t around = (uint64_t{1} << (14 + random(5))) - random(100);
    bodies.push_back(Body(random(3) > 0 ? around : 1 + random(200), static_cast<char>('a' + random(4))));
  }
  Load(bodies);
  std::map<std::string, int64_t> groups;
  TextRows rows;
  for (size_t i = 0; i < bodies.size(); ++i) {
    ++groups[bodies[i]];
    rows.push_back({absl::StrCat(i + 1), bodies[i]});
  }
  ExpectRows("select * from docs order by id", rows);
  TextRows counted;
  for (const auto& [body, count] : groups) counted.push_back({body, absl::StrCat(count)});
  for (const char* const join : {"rrj", "ghj"}) {
    Command(absl::StrCat("set nam.join = '", join, "'"));
    ExpectRows("select body, count(*) from docs group by body order by body", counted);
    ExpectRows("select a.id, b.body from docs a join docs b on a.id = b.id order by a.id", rows);
  }
}

TEST_F(LongTextTest, OfMoreThanTheLimitAreRefused) {
  Command("create table docs (id int, body text) with (storage = columnar, partition_by = 'id:2')");
  const std::string file = File({"one", Body(kTextBytesMax + 1, 'y'), "three"});
  const auto expect_refused = [this](const std::string& sql) {
    const SqlError error = ErrorOf(sql);
    EXPECT_EQ(error.sqlstate, "54000") << sql;
    return error;
  };
  const SqlError error = expect_refused(absl::StrCat("copy docs from '", file, "' with (header)"));
  EXPECT_TRUE(absl::StrContains(error.message, "docs.csv:3: ")) << error.message;
  EXPECT_TRUE(absl::StrContains(error.message, "text is too long for table \"docs\"")) << error.message;
  EXPECT_TRUE(absl::StrContains(error.hint, "column \"body\"")) << error.hint;
  expect_refused(absl::StrCat("create table other as from '", file, "'"));
  EXPECT_EQ(ErrorOf("select * from other").sqlstate, "42P01");
  EXPECT_EQ(Command(absl::StrCat("copy docs from '", file, "' with (header, on_error ignore)")), "COPY 2");
  ExpectRows("select * from docs order by id", {{"1", "one"}, {"3", "three"}});
  ExpectRows(absl::StrCat("select count(*), sum(id) from '", file, "'"), {{"3", "6"}});
  Command(
      "create table halves as select g as id, repeat('h', 8388609) as body from generate_series(1, 2) as "
      "s(g)");
  expect_refused("select body || body from halves");
  expect_refused("select string_agg(body, '') from halves");
  expect_refused("select id, string_agg(body, ',') over () from halves");
  expect_refused("insert into docs select id, body || body from halves");
  ExpectRows("select count(*) from docs", {{"2"}});
}

TEST_F(LongTextTest, ManyGoThroughLittleMemory) {
  std::vector<std::string> bodies;
  for (size_t i = 0; i < 24; ++i)
    bodies.push_back(Body((size_t{3} << 20) + i % 5, static_cast<char>('a' + i)));
  Load(bodies);
  Command("set nam.result_mib_max = 48");
  TextRows rows;
  for (size_t i = 0; i < bodies.size(); ++i) rows.push_back({absl::StrCat(i + 1), bodies[i]});
  std::vector<std::string> sorted = bodies;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(Command("create table copied as select * from docs"), "SELECT 24");
  ExpectRows("select count(*), sum(length(body)) from copied", {{"24", absl::StrCat(24 * (3 << 20) + 46)}});
  const std::string file = folder_.File("sorted.csv");
  EXPECT_EQ(Command(absl::StrCat("copy (select body from docs order by body) to '", file, "'")), "COPY 24");
  std::ifstream in(file);
  for (size_t i = 0; i < sorted.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    EXPECT_TRUE(line == sorted[i]) << i;
  }
}

TEST_F(LongTextTest, ThatDoNotFitTheMemoryOfAQuerySaySo) {
  Load({Body(kTextBytesMax, 'a'), Body(kTextBytesMax, 'b'), Body(kTextBytesMax, 'c'),
        Body(kTextBytesMax, 'd')});
  Command("set nam.result_mib_max = 16");
  EXPECT_EQ(ErrorOf("select * from docs order by body").sqlstate, "53200");
  EXPECT_EQ(ErrorOf("select body, count(*) from docs group by body").sqlstate, "53200");
  Command("reset nam.result_mib_max");
  ExpectRows("select count(*) from docs", {{"4"}});
}

/// Of so many different texts no dictionary is made: they lie in blocks.
TEST_F(LongTextTest, LieInBlocksThatAreLargeEnough) {
  std::string text = "id,body\n";
  for (int i = 1; i <= 66'000; ++i) absl::StrAppend(&text, i, ",t", i, "\n");
  const std::string first = Body(100'000, 'p'), second = Body(3'000'000, 'q');
  absl::StrAppend(&text, "66001,", first, "\n66002,", second, "\n66003,", first, "z\n");
  const std::string file = Write("many.csv", text);
  Command("create table many (id int, body text) with (storage = columnar, partition_by = 'id:2')");
  EXPECT_EQ(Command(absl::StrCat("copy many from '", file, "' with (header)")), "COPY 66003");
  ExpectRows("select id, body from many where id > 66000 order by id",
             {{"66001", first}, {"66002", second}, {"66003", first + "z"}});
  ExpectRows(
      "select count(*), count(distinct body), sum(length(body)) from many",
      {{"66003", "66003",
        absl::StrCat(100'000 + 3'000'000 + 100'001 + 6 * 56'001 + 5 * 9'000 + 4 * 900 + 3 * 90 + 2 * 9)}});
  Command("insert into many values (66004, 'short')");
  Command("vacuum many");
  ExpectRows("select id, body from many where id > 66001 order by id",
             {{"66002", second}, {"66003", first + "z"}, {"66004", "short"}});
}

}  // namespace
}  // namespace nam::testing
