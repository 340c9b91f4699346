#include "tpch/schema.h"

#include <utility>

#include "base/check.h"

namespace nam::tpch {
namespace {

using partitioner::ColumnSchema;
using partitioner::TableSchema;

ColumnSchema Int(const char* name) {
  return {name, {.kind = TypeKind::kInteger, .precision = 4}};
}
ColumnSchema BigInt(const char* name) {
  return {name, {.kind = TypeKind::kInteger, .precision = 8}};
}
ColumnSchema Money(const char* name) {
  return {name, {.kind = TypeKind::kDecimal, .scale = 2, .precision = 15}};
}
ColumnSchema Date(const char* name) {
  return {name, Type::Date()};
}
ColumnSchema Char(const char* name, uint32_t length) {
  return {name, {.kind = TypeKind::kString, .blank_padded = true, .length = length}};
}
ColumnSchema Varchar(const char* name, uint32_t length) {
  return {name, Type::String(length)};
}

TableSchema Region() {
  return {.name = "region", .columns = {Int("r_regionkey"), Char("r_name", 25), Varchar("r_comment", 152)}};
}

TableSchema Nation() {
  return {.name = "nation",
          .columns = {Int("n_nationkey"), Char("n_name", 25), Int("n_regionkey"), Varchar("n_comment", 152)}};
}

TableSchema Supplier(uint32_t fan_out) {
  return {.name = "supplier",
          .columns = {Int("s_suppkey"), Char("s_name", 25), Varchar("s_address", 40), Int("s_nationkey"),
                      Char("s_phone", 15), Money("s_acctbal"), Varchar("s_comment", 101)},
          .partitioning = {{"s_suppkey", fan_out}}};
}

TableSchema Customer(uint32_t fan_out) {
  return {.name = "customer",
          .columns = {Int("c_custkey"), Varchar("c_name", 25), Varchar("c_address", 40), Int("c_nationkey"),
                      Char("c_phone", 15), Money("c_acctbal"), Char("c_mktsegment", 10),
                      Varchar("c_comment", 117)},
          .partitioning = {{"c_custkey", fan_out}}};
}

TableSchema Part(uint32_t fan_out) {
  return {.name = "part",
          .columns = {Int("p_partkey"), Varchar("p_name", 55), Char("p_mfgr", 25), Char("p_brand", 10),
                      Varchar("p_type", 25), Int("p_size"), Char("p_container", 10), Money("p_retailprice"),
                      Varchar("p_comment", 23)},
          .partitioning = {{"p_partkey", fan_out}}};
}

TableSchema Partsupp(uint32_t fan_out) {
  return {.name = "partsupp",
          .columns = {Int("ps_partkey"), Int("ps_suppkey"), Int("ps_availqty"), Money("ps_supplycost"),
                      Varchar("ps_comment", 199)},
          .partitioning = {{"ps_partkey", fan_out}}};
}

TableSchema Orders(uint32_t fan_out) {
  return {.name = "orders",
          .columns = {BigInt("o_orderkey"), Int("o_custkey"), Char("o_orderstatus", 1), Money("o_totalprice"),
                      Date("o_orderdate"), Char("o_orderpriority", 15), Char("o_clerk", 15),
                      Int("o_shippriority"), Varchar("o_comment", 79)},
          .partitioning = {{"o_orderkey", fan_out}},
          .sort_column = "o_orderdate"};
}

TableSchema Lineitem(uint32_t fan_out) {
  return {.name = "lineitem",
          .columns = {BigInt("l_orderkey"), Int("l_partkey"), Int("l_suppkey"), Int("l_linenumber"),
                      Money("l_quantity"), Money("l_extendedprice"), Money("l_discount"), Money("l_tax"),
                      Char("l_returnflag", 1), Char("l_linestatus", 1), Date("l_shipdate"),
                      Date("l_commitdate"), Date("l_receiptdate"), Char("l_shipinstruct", 25),
                      Char("l_shipmode", 10), Varchar("l_comment", 44)},
          .partitioning = {{"l_orderkey", fan_out}, {"l_partkey", fan_out}},
          .sort_column = "l_shipdate"};
}

}  // namespace

TableSchema Schema(Table table, uint32_t fan_out) {
  NAM_CHECK(fan_out > 0, "a table has at least one partition");
  switch (table) {
    case kRegion:
      return Region();
    case kNation:
      return Nation();
    case kSupplier:
      return Supplier(fan_out);
    case kCustomer:
      return Customer(fan_out);
    case kPart:
      return Part(fan_out);
    case kPartsupp:
      return Partsupp(fan_out);
    case kOrders:
      return Orders(fan_out);
    case kLineitem:
      return Lineitem(fan_out);
  }
  NAM_CHECK(false, "no such table");
}

const std::vector<dataset::Table>& Tables() {
  static const std::vector<dataset::Table> tables = [] {
    std::vector<dataset::Table> made;
    for (const Table table : kAllTables) made.push_back(dataset::MakeTable(Schema(table)));
    return made;
  }();
  return tables;
}

}  // namespace nam::tpch
