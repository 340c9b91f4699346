#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/table.h"
#include "partitioner/table_schema.h"

/// The Star Schema Benchmark (O'Neil, O'Neil, Chen; revision 3): one fact table and four dimensions.
///
///     customer (c_custkey, 8 parts) ──┐
///     supplier (s_suppkey, 8 parts) ──┼── lineorder (8 x 8 x 8 parts, clustered by lo_orderdate)
///     part     (p_partkey, 8 parts) ──┘         │
///     date     (replicated) ────────────────────┘
namespace nam::ssb {

/// Indexes into Tables(), in loading order: dimensions first.
enum Table : size_t { kCustomer = 0, kSupplier = 1, kPart = 2, kDate = 3, kLineorder = 4 };
inline constexpr std::array kAllTables = {kCustomer, kSupplier, kPart, kDate, kLineorder};

std::string_view TableName(Table table);

/// The default number of parts per join key.
inline constexpr uint32_t kDefaultFanOut = 8;

/// The schema of a table: the specification's columns. Keys, dates (yyyymmdd) and money (cents) are integers.
partitioner::TableSchema Schema(Table table, uint32_t fan_out = kDefaultFanOut);
/// All five tables, in the order of kAllTables, with the default fan-out.
const std::vector<dataset::Table>& Tables();

}  // namespace nam::ssb
