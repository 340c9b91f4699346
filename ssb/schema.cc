#include "ssb/schema.h"

#include <utility>

#include "base/check.h"

namespace nam::ssb {
namespace {

using partitioner::ColumnSchema;
using partitioner::TableSchema;

ColumnSchema Int(const char* name) {
  return {name, Type::Integer()};
}
ColumnSchema Text(const char* name, uint32_t length) {
  return {name, Type::String(length)};
}

std::vector<ColumnSchema> CustomerColumns() {
  return {Int("c_custkey"),     Text("c_name", 25),   Text("c_address", 25), Text("c_city", 10),
          Text("c_nation", 15), Text("c_region", 12), Text("c_phone", 15),   Text("c_mktsegment", 10)};
}

std::vector<ColumnSchema> SupplierColumns() {
  return {Int("s_suppkey"),     Text("s_name", 25),   Text("s_address", 25), Text("s_city", 10),
          Text("s_nation", 15), Text("s_region", 12), Text("s_phone", 15)};
}

std::vector<ColumnSchema> PartColumns() {
  return {Int("p_partkey"),      Text("p_name", 22),  Text("p_mfgr", 6),
          Text("p_category", 7), Text("p_brand1", 9), Text("p_color", 11),
          Text("p_type", 25),    Int("p_size"),       Text("p_container", 10)};
}

// The specification gives d_dayofweek 8 characters, but the value Wednesday has 9.
std::vector<ColumnSchema> DateColumns() {
  return {Int("d_datekey"),
          Text("d_date", 18),
          Text("d_dayofweek", 9),
          Text("d_month", 9),
          Int("d_year"),
          Int("d_yearmonthnum"),
          Text("d_yearmonth", 7),
          Int("d_daynuminweek"),
          Int("d_daynuminmonth"),
          Int("d_daynuminyear"),
          Int("d_monthnuminyear"),
          Int("d_weeknuminyear"),
          Text("d_sellingseason", 12),
          Int("d_lastdayinweekfl"),
          Int("d_lastdayinmonthfl"),
          Int("d_holidayfl"),
          Int("d_weekdayfl")};
}

std::vector<ColumnSchema> LineorderColumns() {
  return {Int("lo_orderkey"),
          Int("lo_linenumber"),
          Int("lo_custkey"),
          Int("lo_partkey"),
          Int("lo_suppkey"),
          Int("lo_orderdate"),
          Text("lo_orderpriority", 15),
          Text("lo_shippriority", 1),
          Int("lo_quantity"),
          Int("lo_extendedprice"),
          Int("lo_ordtotalprice"),
          Int("lo_discount"),
          Int("lo_revenue"),
          Int("lo_supplycost"),
          Int("lo_tax"),
          Int("lo_commitdate"),
          Text("lo_shipmode", 10)};
}

}  // namespace

std::string_view TableName(Table table) {
  switch (table) {
    case Table::kCustomer:
      return "customer";
    case Table::kSupplier:
      return "supplier";
    case Table::kPart:
      return "part";
    case Table::kDate:
      return "date";
    case Table::kLineorder:
      return "lineorder";
  }
  return "unknown";
}

TableSchema Schema(Table table, uint32_t fan_out) {
  NAM_CHECK(fan_out > 0, "a table has at least one partition");
  TableSchema schema{.name = std::string(TableName(table))};
  switch (table) {
    case Table::kCustomer:
      schema.columns = CustomerColumns();
      schema.partitioning = {{"c_custkey", fan_out}};
      break;
    case Table::kSupplier:
      schema.columns = SupplierColumns();
      schema.partitioning = {{"s_suppkey", fan_out}};
      break;
    case Table::kPart:
      schema.columns = PartColumns();
      schema.partitioning = {{"p_partkey", fan_out}};
      break;
    case Table::kDate:
      schema.columns = DateColumns();
      break;
    case Table::kLineorder:
      schema.columns = LineorderColumns();
      schema.partitioning = {{"lo_custkey", fan_out}, {"lo_suppkey", fan_out}, {"lo_partkey", fan_out}};
      schema.sort_column = "lo_orderdate";
      break;
  }
  return schema;
}

const std::vector<dataset::Table>& Tables() {
  static const std::vector<dataset::Table> tables = [] {
    std::vector<dataset::Table> made;
    for (const Table table : kAllTables) made.push_back(dataset::MakeTable(Schema(table)));
    made[kDate].file_names.push_back("dates.tbl");
    made[kDate].date_keys = {"d_datekey"};
    made[kLineorder].date_keys = {"lo_orderdate", "lo_commitdate"};
    return made;
  }();
  return tables;
}

}  // namespace nam::ssb
