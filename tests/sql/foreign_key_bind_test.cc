#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// Tables as CREATE TABLE has made them.
class ForeignKeyBindTest : public ::testing::Test, public TableSource {
 protected:
  void SetUp() override {
    Create("p", "a int primary key, b bigint unique, c int, t varchar(5), d int, unique (c, t)");
    Create("q", "x int, y int, primary key (y, x)");
    Create("h", "x int");
  }
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    if (!tables_.contains(name)) return absl::NotFoundError("no such table");
    return tables_[name];
  }
  std::vector<std::string> Names() override { return {"p", "q", "h"}; }

  void Create(const std::string& name, const std::string& columns) {
    const auto bound =
        Bind(absl::StrCat("create table ", name, " (", columns, ") with (storage = record)"), *this);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const auto& created = std::get<CreateTableStatement>(*bound);
    auto table = std::make_shared<proto::Table>(created.table);
    table->set_allocation(7 + tables_.size());
    for (proto::RecordPart index : created.indexes) {
      index.set_usable_from(1);
      *table->mutable_record()->add_parts() = index;
    }
    tables_[name] = std::move(table);
  }
  /// name: columns -> parent(columns) by the parent's index, by the own index; … | the indexes that are made
  std::string Keys(const std::string& columns) {
    const auto bound = Bind(absl::StrCat("create table x (", columns, ") with (storage = record)"), *this);
    if (!bound.ok()) {
      const auto error = SqlErrorOf(bound.status());
      return error.has_value() ? absl::StrCat(error->sqlstate, ": ", error->message)
                               : bound.status().ToString();
    }
    const auto& created = std::get<CreateTableStatement>(*bound);
    std::vector<std::string> shown, indexes;
    for (const proto::ForeignKey& key : created.table.record().foreign_keys()) {
      shown.push_back(absl::StrCat(key.name(), ": ", absl::StrJoin(key.columns(), ","), " -> ", key.parent(),
                                   "(", absl::StrJoin(key.parent_columns(), ","), ") ", key.parent_index(),
                                   "/", key.index()));
      EXPECT_EQ(key.parent_pieces_size(), key.columns_size());
    }
    for (const proto::RecordPart& index : created.indexes)
      indexes.push_back(absl::StrCat(index.name(), "(", absl::StrJoin(index.columns(), ","), ")"));
    return absl::StrCat(absl::StrJoin(shown, "; "), " | ", absl::StrJoin(indexes, " "));
  }
  /// The SQLSTATE, the place and the message.
  std::string Why(std::string text) {
    const size_t caret = text.find('^');
    if (caret != std::string::npos) text.erase(caret, 1);
    const auto error = SqlErrorOf(Bind(text, *this).status());
    if (!error.has_value()) return "";
    EXPECT_EQ(error->position, caret == std::string::npos ? -1 : static_cast<int>(caret)) << text;
    return absl::StrCat(error->sqlstate, ": ", error->message);
  }

  std::map<std::string, std::shared_ptr<const proto::Table>> tables_;
};

TEST_F(ForeignKeyBindTest, ReferencesAPrimaryKeyOrAUniqueOne) {
  EXPECT_EQ(Keys("id int primary key, r int references p"), "x_r_fkey: 1 -> p(0) /x_r_fkey | x_r_fkey(1)");
  EXPECT_EQ(Keys("id int primary key, r bigint constraint fk references p (b) match simple on delete no "
                 "action on update restrict not deferrable initially immediate"),
            "fk: 1 -> p(1) p_b_key/fk | fk(1)");
  EXPECT_EQ(Keys("u varchar(5), v int, foreign key (u, v) references p (t, c)"),
            "x_u_v_fkey: 0,1 -> p(3,2) p_c_t_key/x_u_v_fkey | x_u_v_fkey(0,1)");
  EXPECT_EQ(Keys("u int, v int, foreign key (u, v) references q"),
            "x_u_v_fkey: 0,1 -> q(1,0) /x_u_v_fkey | x_u_v_fkey(0,1)");
  EXPECT_EQ(Keys("u int, v int, foreign key (u, v) references q (x, y)"),
            "x_u_v_fkey: 0,1 -> q(0,1) /x_u_v_fkey | x_u_v_fkey(0,1)");
  EXPECT_EQ(Keys("id int primary key, up int references x, v int unique references x (v)"),
            "x_up_fkey: 1 -> x(0) /x_up_fkey; x_v_fkey: 2 -> x(2) x_v_key/x_v_key | x_v_key(2) x_up_fkey(1)");
}

/// An index of the table that begins with the columns is sufficient.
TEST_F(ForeignKeyBindTest, UsesTheTablesOwnIndexes) {
  EXPECT_EQ(Keys("r int references p, s int, unique (r, s), unique (s, r)"),
            "x_r_fkey: 0 -> p(0) /x_r_s_key | x_r_s_key(0,1) x_s_r_key(1,0)");
  EXPECT_EQ(Keys("r int references p, s int, unique (s, r)"),
            "x_r_fkey: 0 -> p(0) /x_r_fkey | x_s_r_key(1,0) x_r_fkey(0)");
  EXPECT_EQ(Keys("r int references p references p (a)"),
            "x_r_fkey: 0 -> p(0) /x_r_fkey; x_r_fkey1: 0 -> p(0) /x_r_fkey | x_r_fkey(0)");
}

/// Statements that change a table know the tables that its foreign keys lead to, and that lead to it.
TEST_F(ForeignKeyBindTest, ChangesKnowParentsAndChildren) {
  Create("k", "id int primary key, r int references p, up int references k");
  auto parent = std::make_shared<proto::Table>(*tables_["p"]);
  proto::ReferencingKey& reference = *parent->mutable_record()->add_referenced_by();
  reference.set_child("k");
  reference.set_child_allocation(tables_["k"]->allocation());
  *reference.mutable_key() = tables_["k"]->record().foreign_keys(0);
  proto::ReferencingKey& gone = *parent->mutable_record()->add_referenced_by();
  gone.set_child("k");
  gone.set_child_allocation(99);
  tables_["p"] = parent;
  auto bound = Bind("insert into k values (1, 2, 3)", *this);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const BoundTable& inserted = std::get<InsertStatement>(*bound).table;
  // The parent has been replaced: its allocation is not that of k's foreign key.
  ASSERT_EQ(inserted.parents.size(), 2u);
  EXPECT_EQ(inserted.parents[0], parent);
  bound = Bind("delete from p", *this);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const BoundTable& deleted = std::get<DeleteStatement>(*bound).table;
  ASSERT_EQ(deleted.children.size(), 2u);
  EXPECT_EQ(deleted.children[0], tables_["k"]);
  EXPECT_EQ(deleted.children[1], nullptr) << "it was dropped";
}

/// A child is not changed before its indexes are there, nor once it is being dropped.
TEST_F(ForeignKeyBindTest, ATableThatIsBeingMadeOrDroppedIsNotChanged) {
  Create("k", "id int primary key, r int references p");
  const auto made = tables_["k"];
  auto table = std::make_shared<proto::Table>(*made);
  table->mutable_record()->mutable_parts(0)->set_usable_from(0);
  tables_["k"] = table;
  EXPECT_EQ(Why("insert into ^k values (1, 2)"),
            "55000: table \"k\" is being created: it lacks constraint \"k_r_fkey\"");
  table = std::make_shared<proto::Table>(*made);
  table->mutable_record()->mutable_foreign_keys(0)->set_leaving(true);
  tables_["k"] = table;
  EXPECT_EQ(Why("update ^k set r = 1"), "55000: table \"k\" is being dropped");
  tables_.erase("p");
  tables_["k"] = made;
  EXPECT_EQ(Why("delete from k"), "55000: table \"p\", which constraint \"k_r_fkey\" references, is lost");
}

}  // namespace
}  // namespace nam::sql
