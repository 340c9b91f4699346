#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "optimizer/distribution.h"
#include "optimizer/plan_query.h"
#include "plan/check.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/post_order.h"
#include "plan/print.h"
#include "plan/table_schema.h"
#include "sql/logical_binder.h"
#include "ssb/queries.h"
#include "tests/plan/random_expression.h"
#include "tests/plan/reference_run.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

namespace nam::optimizer {
namespace {

using plan::Expr;
using plan::testing::Random;
using plan::testing::Row;
using plan::testing::Rows;

struct ColumnStatistics {
  int64_t min, max;
  uint64_t distinct;
};

/// The benchmark at scale factor 0.1, nearly as its generator makes it.
const std::map<std::string, ColumnStatistics>& OfSsb() {
  static const std::map<std::string, ColumnStatistics> statistics = {
      {"lo_orderkey", {1, 600'000, 150'000}},
      {"lo_custkey", {1, 3000, 2000}},
      {"lo_partkey", {1, 20'000, 20'000}},
      {"lo_suppkey", {1, 200, 200}},
      {"lo_orderdate", {19920101, 19980802, 2406}},
      {"lo_quantity", {1, 50, 50}},
      {"lo_extendedprice", {90'000, 5'549'500, 100'000}},
      {"lo_discount", {0, 10, 11}},
      {"lo_revenue", {81'000, 5'549'500, 100'000}},
      {"lo_supplycost", {54'000, 125'000, 10'000}},
      {"c_custkey", {1, 3000, 3000}},
      {"c_region", {0, 4, 5}},
      {"c_nation", {0, 24, 25}},
      {"c_city", {0, 249, 250}},
      {"s_suppkey", {1, 200, 200}},
      {"s_region", {0, 4, 5}},
      {"s_nation", {0, 24, 25}},
      {"s_city", {0, 249, 250}},
      {"p_partkey", {1, 20'000, 20'000}},
      {"p_mfgr", {0, 4, 5}},
      {"p_category", {0, 24, 25}},
      {"p_brand1", {0, 999, 1000}},
      {"d_datekey", {19920101, 19981231, 2557}},
      {"d_year", {1992, 1998, 7}},
      {"d_yearmonthnum", {199201, 199812, 84}},
      {"d_yearmonth", {0, 83, 84}},
      {"d_weeknuminyear", {1, 53, 53}}};
  return statistics;
}

void Partition(proto::Table& table, const std::vector<std::string>& columns, uint32_t parts) {
  uint32_t partitions = 1;
  for (const std::string& column : columns) {
    proto::PartitionKey& key = *table.add_partitioning();
    key.set_column(column);
    key.set_parts(parts);
    partitions *= parts;
  }
  for (uint32_t p = 0; p < partitions; ++p) table.add_partitions();
}

/// The fake tables with statistics and partitions.
class TablesWithStatistics final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto plain, fake_.Find(name));
    if (plain->has_record()) return plain;
    auto table = std::make_shared<proto::Table>(*plain);
    table->set_allocation(7);
    const std::map<std::string, uint64_t> rows = {
        {"lineorder", 600'000}, {"customer", 3000}, {"supplier", 200}, {"part", 20'000}, {"date", 2557}};
    const auto known = rows.find(name);
    table->set_rows(known == rows.end() ? 100 : known->second);
    for (proto::Column& column : *table->mutable_columns()) {
      const auto found = OfSsb().find(column.name());
      const ColumnStatistics s = found == OfSsb().end() ? ColumnStatistics{0, 6, 7} : found->second;
      column.set_min(s.min);
      column.set_max(s.max);
      column.set_distinct(s.distinct);
    }
    table->clear_partitioning();
    table->clear_partitions();
    if (name == "lineorder") Partition(*table, {"lo_custkey", "lo_suppkey", "lo_partkey"}, 4);
    for (const auto& [build, key] : std::map<std::string, std::string>{{"customer", "c_custkey"},
                                                                       {"supplier", "s_suppkey"},
                                                                       {"part", "p_partkey"},
                                                                       {"date", "d_datekey"}}) {
      if (name != build) continue;
      table->mutable_columns(0)->set_unique(true);
      if (name == "date") {
        table->add_partitions();
      } else {
        Partition(*table, {key}, 4);
      }
    }
    if (name == "t" || name == "u") Partition(*table, {"id"}, 2);
    return table;
  }
  std::vector<std::string> Names() override { return fake_.Names(); }

 private:
  sql::FakeTables fake_;
};

struct LoweredQuery {
  sql::FlatQuery query;
  TableRefs tables;
  plan::PhysicalPlan physical;

  const plan::Pipeline& claimed() const { return physical.pipelines[physical.stages[0].claimed]; }
};

plan::logical::Query TreeOf(const std::string& text) {
  TablesWithStatistics source;
  absl::StatusOr<plan::logical::Query> tree = sql::BindLogical(text, source);
  EXPECT_TRUE(tree.ok()) << text << ": " << tree.status();
  return tree.ok() ? *std::move(tree) : plan::logical::Query();
}

LoweredQuery LowerQuery(const std::string& text) {
  LoweredQuery out;
  plan::logical::Query tree = TreeOf(text);
  if (tree.root == nullptr) return out;
  std::optional<sql::FlatQuery> flat = sql::Flatten(tree);
  EXPECT_TRUE(flat.has_value()) << text;
  out.query = std::move(flat).value_or(sql::FlatQuery());
  absl::StatusOr<LoweredTree> lowered = PlanQuery(std::move(tree));
  EXPECT_TRUE(lowered.ok()) << text << ": " << lowered.status();
  if (!lowered.ok()) return out;
  EXPECT_EQ(lowered->lowered.stages.size(), 1u) << text;
  out.tables = std::move(lowered->lowered.tables);
  out.physical = std::move(lowered->lowered.plan);
  return out;
}

std::string PhysicalText(const LoweredQuery& planned) {
  const auto name = [&](uint32_t table, uint32_t column) {
    return planned.tables[table]->columns(static_cast<int>(column)).name();
  };
  return absl::StrJoin(plan::Print(planned.physical, name), "\n") + "\n";
}

// The plan of one of the benchmark's queries, by its id.
const std::map<std::string_view, std::string_view>& Golden();

TEST(Lower, SsbsQueries) {
  for (const ssb::Query& query : ssb::Queries()) {
    const auto golden = Golden().find(query.id);
    EXPECT_EQ(PhysicalText(LowerQuery(std::string(query.sql))),
              golden == Golden().end() ? "" : golden->second)
        << query.id;
  }
}

TEST(Lower, SchemasOfAStarHaveTheTablesBounds) {
  const LoweredQuery planned = LowerQuery(std::string(ssb::FindQuery("Q1.1")->sql));
  const plan::Pipeline& main = planned.claimed();
  const plan::Schema wanted = {{Type::Integer(), false, {90'000, 5'549'500, true}},
                               {Type::Integer(), false, {0, 10, true}}};
  EXPECT_EQ(main.schemas.back(), wanted);
  const absl::StatusOr<plan::Schema> states = plan::SinkOutput(main);
  ASSERT_TRUE(states.ok());
  EXPECT_EQ(states->size(), 2u);  // the halves of a sum
}

const std::vector<std::string>& StarQueries() {
  static const std::vector<std::string> queries = {
      "select id, n from t",
      "select count(*) from t",
      "select count(*) from t, u where t.id = u.t_id",
      "select t.id, u.amount from t, u where t.id = u.t_id and t.n < u.id",
      "select t.n, u.name from t, u where t.id = u.t_id and t.n / u.id = 1 or false",
      "select t.name, sum(u.amount * t.price), count(t.n) from t, u where t.id = u.t_id group by t.name",
      "select t.id from t, u where t.price = u.price and t.n <> 2",
      "select t.id from t, u where t.rate = u.amount",
      "select t.id, count(*) from t, u where t.n = u.t_id and t.ok group by t.id",
      "select t.id, u.id from t, u where t.name = u.name and t.day < u.day",
      "select distinct t.n, u.price from t, u where t.id = u.t_id",
      "select t.n + u.id as s from t, u where t.id = u.t_id order by t.price desc, s limit 3",
      "select a.id, b.id, u.id from t a, t b, u where a.n = b.id and b.id = u.t_id and a.id + b.n > u.id",
      "select a.id from t a, t b, u where a.id = b.id and a.id = u.t_id and b.id = u.t_id and a.price < "
      "b.rate",
      "select extract(year from t.day), min(u.day), max(t.name), avg(u.amount) from t, u "
      "where t.id = u.id group by extract(year from t.day)",
      "select count(distinct u.name), sum(t.id) from t, u where t.id = u.t_id and 1 = 2",
      "select case when t.ok then t.price else u.amount end from t, u where t.id = u.t_id and t.name like "
      "'%a%'",
  };
  return queries;
}

/// Rows for a table: small numbers, so that they meet.
Rows RowsFor(Random& random, const proto::Table& table) {
  plan::Schema slots;
  for (int c = 0; c < table.columns_size(); ++c)
    slots.push_back(*plan::SlotOfColumn(table, static_cast<uint32_t>(c)));
  Rows rows;
  for (uint32_t r = random.Below(14); r > 0; --r) {
    Row& row = rows.emplace_back();
    for (const plan::Slot& slot : slots) {
      Value value = random.AValue(slot);
      if (!value.null && slot.bounds.known)
        value.number =
            random.Between(static_cast<int64_t>(slot.bounds.low), static_cast<int64_t>(slot.bounds.high));
      row.push_back(std::move(value));
    }
  }
  return rows;
}

/// The rows of a query's joins, a tuple at a time: by table of FROM, the row that it comes from.
class FlatRun {
 public:
  FlatRun(const sql::FlatQuery& query, const plan::testing::TableRows& tables)
      : query_(query), tables_(tables) {}

  absl::StatusOr<Rows> Run() {
    NAM_RETURN_IF_ERROR(Join(Tuple()));
    return std::move(out_);
  }

 private:
  using Tuple = std::vector<const Row*>;

  /// The output of the servers.
  std::vector<Expr> Put() const {
    std::vector<Expr> out = query_.group_by;
    for (const auto& aggregate : query_.aggregates) {
      if (aggregate.function != plan::AggregateFunction::kCountRows) out.push_back(aggregate.argument);
    }
    if (query_.aggregated) return out;
    for (const auto& output : query_.select) out.push_back(output.expr);
    for (const plan::OrderKey& key : query_.order_by) {
      if (std::none_of(out.begin(), out.end(), [&](const Expr& e) { return plan::SameExpr(e, key.expr); }))
        out.push_back(key.expr);
    }
    return out;
  }

  static absl::StatusOr<Value> Eval(const Expr& expr, const Tuple& tuple) {
    return Evaluate(expr, [&](const Expr& e) {
      return tuple[static_cast<size_t>(e.column.table)]->at(static_cast<size_t>(e.column.column));
    });
  }

  static absl::StatusOr<bool> AllTrue(const std::vector<Expr>& conditions, const Tuple& tuple) {
    for (const Expr& e : conditions) {
      NAM_ASSIGN_OR_RETURN(const Value value, Eval(e, tuple));
      if (value.null || value.number == 0) return false;
    }
    return true;
  }

  absl::StatusOr<bool> Equal(const Tuple& tuple) const {
    for (const auto& [left, right] : query_.joins) {
      const auto value = [&](plan::ColumnRef column) {
        return tuple[static_cast<size_t>(column.table)]->at(static_cast<size_t>(column.column));
      };
      const Value a = value(left), b = value(right);
      if (a.null || b.null || Compare(a, b) != 0) return false;
    }
    return true;
  }

  /// Adds the rows of all tuples that begin with this one.
  absl::Status Join(Tuple tuple) {
    if (tuple.size() < query_.tables.size()) {
      for (const Row& row : tables_.at(static_cast<uint32_t>(tuple.size()))) {
        Tuple with = tuple;
        with.push_back(&row);
        NAM_RETURN_IF_ERROR(Join(std::move(with)));
      }
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(bool kept, Equal(tuple));
    if (kept) {
      NAM_ASSIGN_OR_RETURN(kept, AllTrue(query_.conjuncts, tuple));
    }
    if (!kept) return absl::OkStatus();
    Row& row = out_.emplace_back();
    for (const Expr& e : Put()) {
      NAM_ASSIGN_OR_RETURN(Value value, Eval(e, tuple));
      row.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  const sql::FlatQuery& query_;
  const plan::testing::TableRows& tables_;
  Rows out_;
};

std::vector<std::string> Sorted(const Rows& rows) {
  std::vector<std::string> out;
  for (const Row& row : rows) {
    std::string& text = out.emplace_back();
    for (const Value& value : row) absl::StrAppend(&text, value.ToString(), "|");
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Lower, MeansWhatTheQueryMeans) {
  for (const std::string& text : StarQueries()) {
    SCOPED_TRACE(text);
    const LoweredQuery planned = LowerQuery(text);
    if (planned.physical.pipelines.empty()) continue;
    uint64_t rows_seen = 0;
    EXPECT_TRUE(rc::check("the same rows reach the sink", [&] {
      const auto seed = *rc::gen::arbitrary<uint32_t>();
      RC_LOG() << "seed " << seed << "\n" << PhysicalText(planned);
      Random random(seed);
      plan::testing::TableRows tables;
      for (uint32_t t = 0; t < planned.tables.size(); ++t) tables[t] = RowsFor(random, *planned.tables[t]);
      const absl::StatusOr<Rows> wanted = FlatRun(planned.query, tables).Run();
      const absl::StatusOr<std::vector<Rows>> got = plan::testing::Run(planned.physical, tables);
      RC_ASSERT(wanted.ok() == got.ok());
      if (!wanted.ok()) return;
      rows_seen += wanted->size();
      RC_ASSERT(Sorted(got->at(planned.physical.stages[0].claimed)) == Sorted(*wanted));
    }));
    const bool nothing = text.find("1 = 2") != std::string::npos;
    EXPECT_EQ(rows_seen == 0, nothing);
  }
}

TEST(Lower, OrderAndLimitAreTheSinks) {
  const LoweredQuery planned = LowerQuery(
      "select t.n + u.id as s from t, u where t.id = u.t_id order by t.price desc, s nulls first limit 3 "
      "offset 2");
  const auto& result = std::get<plan::ResultSink>(planned.claimed().sink);
  EXPECT_EQ(result.limit, 5);
  const std::vector<plan::Order> order = {{1, true, true}, {0, false, true}};
  EXPECT_EQ(result.order, order);
  const LoweredQuery all = LowerQuery("select id from t order by n");
  EXPECT_TRUE(std::get<plan::ResultSink>(all.claimed().sink).order.empty())
      << "the session sorts what it merges";
}

TEST(Lower, PartitionsMatchByTheKeysOfTheStreamedTable) {
  const std::map<std::string, int32_t> keys = {{"customer", 0}, {"supplier", 1}, {"part", 2}, {"date", -1}};
  std::set<std::string> seen;
  for (const ssb::Query& query : ssb::Queries()) {
    const LoweredQuery planned = LowerQuery(std::string(query.sql));
    for (uint32_t p = 0; p < planned.physical.stages[0].claimed; ++p) {
      const auto& scan = std::get<plan::BlockScan>(planned.physical.pipelines[p].source);
      const std::string& table = planned.tables[scan.table]->name();
      EXPECT_EQ(scan.co_partitioned_key, keys.at(table)) << query.id << " " << table;
      seen.insert(table);
    }
  }
  EXPECT_EQ(seen.size(), keys.size());
}

TEST(Lower, OneOfTwoKeysIsEnoughForAMatchOfPartitions) {
  const LoweredQuery planned = LowerQuery("select count(*) from t, u where t.n = u.t_id and t.id = u.id");
  const auto& scan = std::get<plan::BlockScan>(planned.physical.pipelines[0].source);
  EXPECT_EQ(std::get<plan::BuildSink>(planned.physical.pipelines[0].sink).keys.size(), 2u);
  EXPECT_EQ(scan.co_partitioned_key, 0);
}

TEST(Lower, DeepExpressionsAreRefusedFromTheBoundOn) {
  const auto deep = [&](size_t levels) {
    plan::logical::Query tree = TreeOf("select n from t");
    Expr& output = tree.root->As<plan::logical::Project>()->outputs.at(0);
    while (--levels > 0) {
      std::vector<Expr> sides(1);
      sides[0] = std::move(output);
      output = Random::Node(plan::Op::kNegate, Type::Integer(), std::move(sides));
    }
    return PlanQuery(std::move(tree)).status();
  };
  EXPECT_TRUE(deep(plan::kDeepestExpression).ok()) << deep(plan::kDeepestExpression);
  const auto error = SqlErrorOf(deep(plan::kDeepestExpression + 1));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, sqlstate::kTooComplex);
}

using plan::Distribution;

TEST(Distribution, FollowsColumnsThroughSteps) {
  const LoweredQuery planned = LowerQuery("select t.n, t.id from t");
  const plan::Pipeline& p = planned.physical.pipelines[0];
  const Distribution scanned = DistributionOf(*plan::ScanOf(p), *planned.tables[0]);
  ASSERT_EQ(scanned.kind, Distribution::Kind::kPartitioned);
  EXPECT_EQ(scanned.parts, 2u);
  const Distribution projected = DistributionAfter(scanned, p.steps[0]);
  EXPECT_EQ(projected.columns, std::vector<uint32_t>{1}) << "id is the second output";
  EXPECT_TRUE(KeepsTogether(projected, std::vector<uint32_t>{0, 1}));
  EXPECT_FALSE(KeepsTogether(projected, std::vector<uint32_t>{0}));
  const plan::ProjectStep drops{{std::get<plan::ProjectStep>(p.steps[0]).outputs[0]}};
  EXPECT_EQ(DistributionAfter(scanned, drops).kind, Distribution::Kind::kAny);
  plan::ProbeStep probe;
  probe.keep = scanned.columns;
  EXPECT_EQ(DistributionAfter(scanned, probe).columns, std::vector<uint32_t>{0});
  probe.kind = plan::JoinKind::kFull;
  EXPECT_EQ(DistributionAfter(scanned, probe).kind, Distribution::Kind::kAny);
}

TEST(Distribution, RequirementsAreMetByWhatIsEqual) {
  const Distribution any, single{Distribution::Kind::kSingle, {}, 0, {}},
      replicated{Distribution::Kind::kReplicated, {}, 0, {}},
      parts{Distribution::Kind::kPartitioned, Distribution::Function::kXxh3, 4, {1}};
  Distribution other = parts;
  other.parts = 8;
  EXPECT_TRUE(Satisfies(parts, any));
  EXPECT_TRUE(Satisfies(parts, parts));
  EXPECT_FALSE(Satisfies(other, parts));
  EXPECT_FALSE(Satisfies(any, parts));
  EXPECT_FALSE(Satisfies(replicated, single)) << "each server would answer";
  EXPECT_TRUE(Satisfies(single, single));
  EXPECT_FALSE(KeepsTogether(any, std::vector<uint32_t>{1}));
}

#include "tests/optimizer/lowered_ssb.inc"

}  // namespace
}  // namespace nam::optimizer
