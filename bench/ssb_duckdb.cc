#include "bench/ssb_duckdb.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "ssb/schema.h"

namespace nam::bench {
namespace {

using Json = DuckDb::Json;

constexpr int64_t kLoadTimeoutMsPerScaleFactor = 600'000;

/// As narrow as the data is, as somebody who knows it would declare it: DuckDB keeps columns in memory as
/// wide as they are declared, so this is also what makes it fastest.
std::string DuckDbType(const partitioner::ColumnSchema& column, double scale_factor) {
  static const std::set<std::string_view> bytes = {
      "lo_linenumber",      "lo_quantity",     "lo_discount",      "lo_tax",          "p_size",
      "d_daynuminweek",     "d_daynuminmonth", "d_monthnuminyear", "d_weeknuminyear", "d_lastdayinweekfl",
      "d_lastdayinmonthfl", "d_holidayfl",     "d_weekdayfl"};
  static const std::set<std::string_view> shorts = {"d_year", "d_daynuminyear"};
  constexpr double kOrderKeysOfFourBytes = 300;  // scale factors: one in four keys is used
  if (column.type.kind == TypeKind::kString) return "VARCHAR";
  if (bytes.contains(column.name)) return "UTINYINT";
  if (shorts.contains(column.name)) return "USMALLINT";
  return column.name == "lo_orderkey" && scale_factor > kOrderKeysOfFourBytes ? "BIGINT" : "INTEGER";
}

}  // namespace

absl::StatusOr<double> SsbDuckDb::Load(const std::string& tbl_directory, const ssb::Generator& generator) {
  const double scale_factor = generator.options().scale_factor;
  NAM_RETURN_IF_ERROR(duckdb_->Open());
  Json tables = Json::array();
  for (const ssb::Table table : ssb::kAllTables) {
    const std::string name(ssb::TableName(table));
    Json columns = Json::array();
    for (const partitioner::ColumnSchema& column : ssb::Schema(table).columns)
      columns.push_back({{"name", column.name}, {"type", DuckDbType(column, scale_factor)}});
    const bool sorted = sorted_ && table == ssb::Table::kLineorder;
    tables.push_back({{"name", name},
                      {"file", name + ".tbl"},
                      {"rows", generator.Rows(table)},
                      {"columns", std::move(columns)},
                      {"order_by", sorted ? "lo_orderdate" : ""}});
  }
  const auto timeout_ms =
      static_cast<int64_t>(static_cast<double>(kLoadTimeoutMsPerScaleFactor) * std::max(1.0, scale_factor));
  return duckdb_->Load({{"op", "load"}, {"directory", tbl_directory}, {"tables", tables}}, timeout_ms);
}

}  // namespace nam::bench
