#include "tests/sql/fake_tables.h"

#include <gtest/gtest.h>

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/aggregate.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Aggregate;
using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::Op;
using plan::OrderKey;

struct ColumnSpec {
  const char* name;
  Type type;
  bool nullable = false;
};

std::shared_ptr<const proto::Table> MakeTable(const std::string& name,
                                              const std::vector<ColumnSpec>& columns) {
  auto table = std::make_shared<proto::Table>();
  table->set_name(name);
  for (const ColumnSpec& spec : columns) {
    proto::Column* column = table->add_columns();
    column->set_name(spec.name);
    column->set_nullable(spec.nullable);
    *column->mutable_type() = ToProto(spec.type);
  }
  return table;
}

const Type kInt = Type::Integer();

std::vector<ColumnSpec> Place(const char* const (&names)[8]) {
  std::vector<ColumnSpec> columns = {{names[0], kInt}};
  for (size_t i = 1; i < std::size(names); ++i) columns.push_back({names[i], Type::String(25)});
  return columns;
}

}  // namespace

FakeTables::FakeTables() {
  const auto add = [&](const char* name, const std::vector<ColumnSpec>& columns) {
    tables_[name] = MakeTable(name, columns);
  };
  add("lineorder", {{"lo_orderkey", kInt},
                    {"lo_linenumber", kInt},
                    {"lo_custkey", kInt},
                    {"lo_partkey", kInt},
                    {"lo_suppkey", kInt},
                    {"lo_orderdate", kInt},
                    {"lo_orderpriority", Type::String(15)},
                    {"lo_quantity", kInt},
                    {"lo_extendedprice", kInt},
                    {"lo_discount", kInt},
                    {"lo_revenue", kInt},
                    {"lo_supplycost", kInt},
                    {"lo_tax", kInt}});
  add("customer", Place({"c_custkey", "c_name", "c_address", "c_city", "c_nation", "c_region", "c_phone",
                         "c_mktsegment"}));
  add("supplier",
      Place({"s_suppkey", "s_name", "s_address", "s_city", "s_nation", "s_region", "s_phone", "s_x"}));
  add("part",
      Place({"p_partkey", "p_name", "p_mfgr", "p_category", "p_brand1", "p_color", "p_type", "p_container"}));
  add("date", {{"d_datekey", kInt},
               {"d_year", kInt},
               {"d_yearmonthnum", kInt},
               {"d_yearmonth", Type::String(7)},
               {"d_weeknuminyear", kInt}});
  add("t", {{"id", kInt},
            {"n", kInt, true},
            {"price", Type::Decimal(2)},
            {"rate", Type::Decimal(4), true},
            {"day", Type::Date(), true},
            {"name", Type::String(20), true},
            {"ok", Type::Bool()},
            {"Odd Name", kInt}});
  add("u", {{"id", kInt},
            {"t_id", kInt},
            {"price", Type::Decimal(2)},
            {"amount", Type::Decimal(4)},
            {"name", Type::String(10)},
            {"day", Type::Date()}});
  AddRecordTable(
      "create table r (id int primary key, k smallint, n bigint not null check (n > 0), d decimal(5,2), day "
      "date, "
      "at timestamp, c char(3), v varchar(5), ok boolean, check (k < n)) with (storage = record)");
  AddRecordTable(
      "create table pairs (v int, b char(2), a smallint, primary key (a, b)) with (storage = record, "
      "versions = 4)");
  AddRecordTable("create table wide (id int primary key, v varchar(65)) with (storage = record)");
  AddRecordTable("create table fits (id int primary key, v varchar(64)) with (storage = record)");
}

void FakeTables::AddRecordTable(const std::string& text) {
  absl::StatusOr<Statement> statement = Bind(text, *this);
  ASSERT_TRUE(statement.ok()) << statement.status();
  auto table = std::make_shared<proto::Table>(std::get<CreateTableStatement>(*statement).table);
  tables_[table->name()] = std::move(table);
}

absl::StatusOr<std::shared_ptr<const proto::Table>> FakeTables::Find(const std::string& name) {
  ++lookups_;
  if (!failure_.ok()) return failure_;
  const auto found = tables_.find(name);
  if (found == tables_.end()) return absl::NotFoundError("no such table");
  return found->second;
}

std::vector<std::string> FakeTables::Names() {
  std::vector<std::string> names;
  for (const auto& [name, table] : tables_) names.push_back(name);
  return names;
}

BoundQuery BindQuery(const std::string& text) {
  FakeTables tables;
  absl::StatusOr<Statement> statement = Bind(text, tables);
  EXPECT_TRUE(statement.ok()) << text << "\n" << statement.status();
  if (!statement.ok()) return {};
  auto* select = std::get_if<SelectStatement>(&*statement);
  EXPECT_NE(select, nullptr) << text;
  return select == nullptr ? BoundQuery() : std::move(select->query);
}

SqlError BindError(const std::string& text) {
  FakeTables tables;
  const absl::StatusOr<Statement> statement = Bind(text, tables);
  EXPECT_FALSE(statement.ok()) << text;
  if (statement.ok()) return {};
  const std::optional<SqlError> error = SqlErrorOf(statement.status());
  EXPECT_TRUE(error.has_value()) << text << "\n" << statement.status();
  return error.value_or(SqlError());
}

std::string Show(const BoundQuery& query, const Expr& expr) {
  return ToString(expr, [&](const Expr& e) -> std::string {
    if (e.op == Op::kGroup) return absl::StrCat("group", e.index);
    if (e.op == Op::kAggregate) return absl::StrCat("agg", e.index);
    const BoundTable& table = query.tables.at(static_cast<size_t>(e.column.table));
    return absl::StrCat(table.alias, ".", table.table->columns(e.column.column).name());
  });
}

std::string Show(const BoundQuery& query, const Aggregate& aggregate) {
  switch (aggregate.function) {
    case AggregateFunction::kCountRows:
      return "count(*)";
    case AggregateFunction::kCount:
      return absl::StrCat("count(", Show(query, aggregate.argument), ")");
    case AggregateFunction::kSum:
      return absl::StrCat("sum(", Show(query, aggregate.argument), ")");
    case AggregateFunction::kMin:
      return absl::StrCat("min(", Show(query, aggregate.argument), ")");
    case AggregateFunction::kMax:
      return absl::StrCat("max(", Show(query, aggregate.argument), ")");
    case AggregateFunction::kAverage:
      return absl::StrCat("avg(", Show(query, aggregate.argument), ")");
    case AggregateFunction::kCountDistinct:
      return absl::StrCat("count(distinct ", Show(query, aggregate.argument), ")");
  }
  return "?";
}

std::string Show(const BoundQuery& query) {
  std::vector<std::string> lines;
  const auto line = [&](const char* clause, const std::vector<std::string>& items) {
    if (!items.empty()) lines.push_back(absl::StrCat(clause, " ", absl::StrJoin(items, ", ")));
  };
  const auto column = [&](ColumnRef ref) {
    Expr e;
    e.op = Op::kColumn;
    e.column = ref;
    return Show(query, e);
  };
  std::vector<std::string> items;
  for (const OutputColumn& o : query.select)
    items.push_back(absl::StrCat(Show(query, o.expr), " as ", o.name));
  line(query.distinct ? "select distinct" : "select", items);
  items.clear();
  for (const BoundTable& t : query.tables) items.push_back(absl::StrCat(t.table->name(), " ", t.alias));
  line("from", items);
  items.clear();
  for (const JoinEdge& e : query.joins) items.push_back(absl::StrCat(column(e.left), " = ", column(e.right)));
  line("join", items);
  items.clear();
  for (const Expr& e : query.conjuncts) items.push_back(Show(query, e));
  line("where", items);
  items.clear();
  for (const Expr& e : query.group_by) items.push_back(Show(query, e));
  line("group by", items);
  items.clear();
  for (const Aggregate& a : query.aggregates) items.push_back(Show(query, a));
  line("aggregate", items);
  items.clear();
  if (query.having.has_value()) line("having", {Show(query, *query.having)});
  for (const OrderKey& k : query.order_by) {
    items.push_back(absl::StrCat(Show(query, k.expr), k.descending ? " desc" : " asc",
                                 k.nulls_first ? " nulls first" : " nulls last"));
  }
  line("order by", items);
  if (query.limit.has_value()) line("limit", {absl::StrCat(*query.limit)});
  if (query.offset != 0) line("offset", {absl::StrCat(query.offset)});
  return absl::StrJoin(lines, "\n");
}

}  // namespace nam::sql
