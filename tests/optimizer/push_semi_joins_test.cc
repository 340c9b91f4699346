#include "optimizer/push_semi_joins.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

namespace nam::optimizer {
namespace {

using plan::JoinKind;
using plan::logical::Join;
using plan::logical::Node;

/// t has a tenth of the rows of u.
class SizedTables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto plain, fake_.Find(name));
    auto table = std::make_shared<proto::Table>(*plain);
    if (!table->has_record()) table->set_rows(name == "u" ? 10'000 : 1'000);
    for (proto::Column& column : *table->mutable_columns()) column.set_distinct(100);
    return table;
  }
  std::vector<std::string> Names() override { return fake_.Names(); }

 private:
  sql::FakeTables fake_;
};

/// The first semi or anti join of the tree.
const Node* SemiJoinIn(const Node& node) {
  const auto* join = node.As<Join>();
  if (join != nullptr && (join->kind == JoinKind::kSemi || join->kind == JoinKind::kAnti ||
                          join->kind == JoinKind::kNullAwareAnti)) {
    return &node;
  }
  for (const auto& input : node.inputs) {
    if (const Node* found = SemiJoinIn(*input); found != nullptr) return found;
  }
  return nullptr;
}

/// The names of the join's tables, in order.
std::string TablesOf(const Node& node) {
  std::string tables;
  for (const absl::string_view line : absl::StrSplit(ToString(node), '\n')) {
    const size_t scan = line.find("Scan ");
    if (scan != absl::string_view::npos) tables += std::string(line.substr(scan + 5, 1));
  }
  return tables;
}

/// The left input of the query's semi join, once that join is made first if this pays.
std::string LeftAfterRule(const std::string& text) {
  SizedTables tables;
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return "";
  EXPECT_EQ(Unnest(*query), absl::OkStatus()) << text;
  PushFilters(*query);
  const Node* const semi = SemiJoinIn(*query->root);
  EXPECT_NE(semi, nullptr) << ToString(*query->root);
  if (semi == nullptr) return "";
  plan::logical::Query first{.relations = query->relations};
  first.root = WithSemiJoinFirst(*semi, Clone(semi->input(1)));
  if (first.root == nullptr) return TablesOf(semi->input(0));
  EXPECT_EQ(CheckTree(first, true), absl::OkStatus()) << ToString(*first.root);
  EXPECT_EQ(TablesOf(*first.root).size(), TablesOf(*semi).size());
  const Node* const made = SemiJoinIn(*first.root);
  EXPECT_NE(made, first.root.get()) << "it is not the last one";
  return made == nullptr ? "" : TablesOf(made->input(0));
}

const std::string kGroups = "(select t_id from u group by t_id having sum(price) > 3)";

TEST(PushSemiJoinsTest, TheSmallTableWithTheKeysIsJoinedFirst) {
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and t.id in " + kGroups), "t");
  EXPECT_EQ(
      LeftAfterRule("select u.id from t, u where t.id = u.t_id and t.n = 1 and u.price > 1 and t.id in " +
                    kGroups),
      "t");
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and not exists (select 1 from " +
                          kGroups + " g where g.t_id = t.id)"),
            "t");
}

TEST(PushSemiJoinsTest, OthersStayWhereTheyAre) {
  // The large table has the keys; both have.
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and u.id in " + kGroups), "tu");
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and exists (select 1 from " + kGroups +
                          " g where g.t_id = t.id and g.t_id < u.id)"),
            "tu");
  // A filter leaves fewer rows of it.
  EXPECT_EQ(
      LeftAfterRule("select u.id from t, u where t.id = u.t_id and u.price = 1 and u.id = 3 and t.id in " +
                    kGroups),
      "tu");
  // The inner join keeps it from failing.
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and 100 / t.id in " + kGroups), "tu");
  // A table alone; a NULL counts; an outer join would fill with NULLs.
  EXPECT_EQ(LeftAfterRule("select id from t where id in " + kGroups), "t");
  EXPECT_EQ(LeftAfterRule("select u.id from t, u where t.id = u.t_id and t.n not in "
                          "(select n from t group by n)"),
            "tu");
  EXPECT_EQ(LeftAfterRule("select u.id from u left join t on t.id = u.t_id where t.id in " + kGroups), "ut");
  // The sizes of record tables are not known.
  EXPECT_EQ(LeftAfterRule("select w.id from r, r w where r.id = w.k and r.id in " + kGroups), "rr");
  EXPECT_EQ(LeftAfterRule("select u.id from r, u where r.id = u.t_id and r.id in " + kGroups), "ru");
}

}  // namespace
}  // namespace nam::optimizer
