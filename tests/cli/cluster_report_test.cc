#include "cli/cluster_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sql/bound_query.h"
#include "terminal/json_report.h"

namespace nam::cli {
namespace {

using ::testing::ElementsAre;

class NoTables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    return absl::NotFoundError(name);
  }
  std::vector<std::string> Names() override { return {}; }
};

proto::Table CreatedTable(const std::string& create) {
  NoTables tables;
  auto statement = sql::Bind(create, tables);
  EXPECT_TRUE(statement.ok()) << statement.status();
  return statement.ok() ? std::get<sql::CreateTableStatement>(*statement).table : proto::Table();
}

std::vector<std::string> Column(const session::ResultSet& result, size_t column) {
  std::vector<std::string> texts;
  for (const auto& row : result.rows) texts.push_back(row[column].null ? "NULL" : row[column].ToString());
  return texts;
}

TEST(ClusterReportTest, ColumnsOfRecordTablesHaveTheirTypesAndKeys) {
  const proto::Table table = CreatedTable(
      "CREATE TABLE t (a smallint, b int, c bigint, d decimal(12,2), e char(3), f varchar(9), g date, h "
      "boolean, "
      "i decimal(30,4), PRIMARY KEY (c, a), CHECK (b > 0), CONSTRAINT named CHECK (d < 5)) "
      "WITH (storage = record)");
  const auto columns = ColumnsReport(table);
  EXPECT_THAT(Column(columns, 1), ElementsAre("smallint", "integer", "bigint", "decimal(12,2)", "char(3)",
                                              "varchar(9)", "date", "boolean", "decimal(30,4)"));
  EXPECT_THAT(Column(columns, 2), ElementsAre("f", "t", "f", "t", "t", "t", "t", "t", "t"));
  EXPECT_THAT(Column(columns, 3), testing::Each("NULL")) << "the values of record tables are not counted";
  EXPECT_THAT(Column(columns, 4), ElementsAre("2", "4", "8", "8", "12", "36", "4", "1", "16"));
  EXPECT_THAT(Column(columns, 5),
              ElementsAre("primary key (2 of 2)", "", "primary key (1 of 2)", "", "", "", "", "", ""));
  const auto checks = ChecksReport(table);
  EXPECT_THAT(Column(checks, 0), ElementsAre("t_b_check", "named"));
  EXPECT_THAT(Column(checks, 1), ElementsAre("b > 0", "d < 5"));
}

TEST(ClusterReportTest, IndexesOfRecordTables) {
  proto::Table table =
      CreatedTable("CREATE TABLE t (a int PRIMARY KEY, b int, c int) WITH (storage = record)");
  EXPECT_THAT(Column(ColumnsReport(table), 5), ElementsAre("primary key", "", ""));
  const auto add = [&](const std::string& name, std::vector<uint32_t> columns, bool unique,
                       uint64_t usable_from) {
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name(name);
    part.set_kind(proto::ORDERED_INDEX);
    part.mutable_columns()->Add(columns.begin(), columns.end());
    part.set_unique(unique);
    part.set_usable_from(usable_from);
  };
  table.mutable_record()->add_parts()->set_kind(proto::RECORDS);
  add("t_c_b_idx", {2, 1}, true, 7);
  add("t_b_idx", {1}, false, 0);
  add("t_a_idx", {0}, false, 9);
  table.mutable_record()->mutable_parts(3)->set_leaving(true);
  const auto indexes = IndexesReport(table);
  EXPECT_THAT(Column(indexes, 0), ElementsAre("t_c_b_idx", "t_b_idx", "t_a_idx"));
  EXPECT_THAT(Column(indexes, 1), ElementsAre("c, b", "b", "a"));
  EXPECT_THAT(Column(indexes, 2), ElementsAre("t", "f", "f"));
  EXPECT_THAT(Column(indexes, 3), ElementsAre("used", "being filled", "being dropped"));
}

TEST(ClusterReportTest, ForeignKeysOfATableAndToIt) {
  proto::Table p = CreatedTable("CREATE TABLE p (a int, b int, PRIMARY KEY (b, a)) WITH (storage = record)");
  proto::Table c = CreatedTable("CREATE TABLE c (x int PRIMARY KEY, y int) WITH (storage = record)");
  proto::ForeignKey& key = *c.mutable_record()->add_foreign_keys();
  key.set_name("c_y_x_fkey");
  key.set_parent("p");
  for (const uint32_t column : {1, 0}) {
    key.add_columns(column);
    key.add_parent_columns(column);
  }
  proto::ReferencingKey& reference = *p.mutable_record()->add_referenced_by();
  reference.set_child("c");
  *reference.mutable_key() = key;
  const FindTable find = [&](const std::string& name) {
    return name == "p" || name == "c" ? std::make_shared<proto::Table>(name == "p" ? p : c) : nullptr;
  };
  for (const proto::Table& table : {c, p}) {
    const auto keys = ForeignKeysReport(table, find);
    EXPECT_THAT(Column(keys, 0), ElementsAre("c_y_x_fkey"));
    EXPECT_THAT(Column(keys, 1), ElementsAre("c"));
    EXPECT_THAT(Column(keys, 2), ElementsAre("y, x"));
    EXPECT_THAT(Column(keys, 3), ElementsAre("p (b, a)"));
  }
  EXPECT_THAT(Column(ForeignKeysReport(c, [](const std::string&) { return nullptr; }), 3),
              ElementsAre("p (?, ?)"));
}

/// Only one of the two memory servers has reported its scratch memory.
TEST(ClusterReportTest, MembersTellOfTheirScratchMemory) {
  proto::Cluster cluster;
  for (const proto::Role role : {proto::ROLE_MEMORY, proto::ROLE_MEMORY, proto::ROLE_COMPUTE}) {
    proto::Member& member = *cluster.add_members();
    member.set_id(static_cast<uint32_t>(cluster.members_size()));
    member.set_role(role);
    member.set_alive(true);
  }
  EXPECT_EQ(MembersReport(cluster).columns.back().name, "memory_total") << "no member was asked";
  const ScratchUses scratch = {
      {1, {.used_bytes = 1 << 20, .highest_bytes = 3 << 20, .bytes = uint64_t{1} << 30}}};
  const auto members = MembersReport(cluster, scratch);
  std::vector<std::string> names;
  for (const auto& column : members.columns) names.push_back(column.name);
  names.erase(names.begin(), names.end() - 3);
  EXPECT_THAT(names, ElementsAre("scratch_used", "scratch_highest", "scratch_total"));
  const size_t first = members.columns.size() - 3;
  EXPECT_THAT(Column(members, first), ElementsAre("1 MiB", "NULL", "NULL"));
  EXPECT_THAT(Column(members, first + 1), ElementsAre("3 MiB", "NULL", "NULL"));
  EXPECT_THAT(Column(members, first + 2), ElementsAre("1 GiB", "NULL", "NULL"));
  const Json json = Json::parse(StatusJson(cluster, scratch, {}, {}));
  EXPECT_EQ(json["rows"][0]["scratch_used_bytes"], 1 << 20);
  EXPECT_EQ(json["rows"][0]["scratch_highest_bytes"], 3 << 20);
  EXPECT_EQ(json["rows"][0]["scratch_bytes"], 1 << 30);
  EXPECT_FALSE(json["rows"][1].contains("scratch_used_bytes"));
}

TEST(ClusterReportTest, LostBlocksAreCounted) {
  proto::Cluster cluster;
  proto::Table table;
  table.set_name("t");
  proto::ServerUsage& usage = *table.add_usage();
  usage.set_server(3);
  for (const auto& [blocks, text] : std::vector<std::pair<uint64_t, std::string>>{
           {1, "lost 1 block with memory server 3"}, {2, "lost 2 blocks with memory server 3"}}) {
    usage.set_blocks(blocks);
    const auto report = TablesReport({table}, /*readable=*/true, cluster);
    ASSERT_EQ(report.rows.size(), 1u);
    EXPECT_THAT(report.rows[0], testing::Contains(testing::Truly([&](const Value& value) {
                  return !value.null && value.ToString() == text;
                })));
  }
}

}  // namespace
}  // namespace nam::cli
