#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "dataset/table.h"
#include "partitioner/table_schema.h"

/// TPC-H (specification 3.0): eight tables, partitioned by the keys by which the large ones are joined.
///
///     customer (c_custkey)   orders (o_orderkey) ──┐
///     supplier (s_suppkey)                         ├── lineitem (l_orderkey x l_partkey, clustered by
///     l_shipdate) part (p_partkey) ── partsupp (ps_partkey) ───┘ nation, region (not split)
namespace nam::tpch {

/// The places of tables in Tables(), in the order in which they are loaded: the largest last.
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

/// Parts per join key when nobody asks for another number. A power of two: keys of orders have the same
/// lowest three bits for all numbers of parts up to 8, and none of the next two.
inline constexpr uint32_t kDefaultFanOut = 8;

/// One table with the specification's columns and types; keys of orders are bigint.
partitioner::TableSchema Schema(Table table, uint32_t fan_out = kDefaultFanOut);
/// All eight, in the order of kAllTables, with the default fan-out.
const std::vector<dataset::Table>& Tables();

}  // namespace nam::tpch
