#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "dataset/table.h"
#include "partitioner/table_schema.h"

/// TPC-H (specification 3.0): eight tables, partitioned by the join keys of the large ones.
///
///     customer (c_custkey)   orders (o_orderkey) ──┐
///     supplier (s_suppkey)                         ├── lineitem (l_orderkey x l_partkey,
///     part (p_partkey) ── partsupp (ps_partkey) ───┘             clustered by l_shipdate)
///     nation, region (not partitioned)
namespace nam::tpch {

/// Indexes into Tables(), in loading order: the largest last.
enum Table : size_t {
  kRegion = 0,
  kNation = 1,
  kSupplier = 2,
  kCustomer = 3,
  kPart = 4,
  kPartsupp = 5,
  kOrders = 6,
  kLineitem = 7
};
inline constexpr std::array kAllTables = {kRegion, kNation,   kSupplier, kCustomer,
                                          kPart,   kPartsupp, kOrders,   kLineitem};

/// The default number of parts per join key. A power of two: order keys cover all values of the lowest three
/// bits, for up to 8 parts, but none of the next two.
inline constexpr uint32_t kDefaultFanOut = 8;

/// The schema of a table: the specification's columns and types; order keys are bigint.
partitioner::TableSchema Schema(Table table, uint32_t fan_out = kDefaultFanOut);
/// All eight tables, in the order of kAllTables, with the default fan-out.
const std::vector<dataset::Table>& Tables();

}  // namespace nam::tpch
