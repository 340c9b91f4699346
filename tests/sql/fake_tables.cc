#include "tests/sql/fake_tables.h"

#include <gtest/gtest.h>

#include <iterator>

#include "absl/strings/match.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

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
  AddRecordTable("create table wide (id int primary key, v varchar(257)) with (storage = record)");
  AddRecordTable("create table fits (id int primary key, v varchar(256)) with (storage = record)");
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

SqlError BindError(const std::string& text) {
  FakeTables tables;
  const absl::StatusOr<Statement> statement = Bind(text, tables);
  EXPECT_FALSE(statement.ok()) << text;
  if (statement.ok()) return {};
  const std::optional<SqlError> error = SqlErrorOf(statement.status());
  EXPECT_TRUE(error.has_value()) << text << "\n" << statement.status();
  return error.value_or(SqlError());
}

void CheckBindError(const BindErrorCase& c) {
  const size_t caret = c.marked.find('^');
  std::string text = c.marked;
  if (caret != std::string::npos) text.erase(caret, 1);
  const SqlError error = BindError(text);
  EXPECT_EQ(error.sqlstate, c.sqlstate) << text << "\n" << error.message;
  EXPECT_TRUE(absl::StrContains(error.message, c.message)) << text << "\n" << error.message;
  EXPECT_TRUE(absl::StrContains(error.hint, c.hint)) << text << "\n" << error.message << "\n" << error.hint;
  const int position = caret == std::string::npos ? -1 : static_cast<int>(caret);
  EXPECT_EQ(error.position, position) << text << "\n" << error.message;
}

void CheckBindErrors(const std::vector<BindErrorCase>& cases) {
  for (const BindErrorCase& c : cases) CheckBindError(c);
}

}  // namespace nam::sql
