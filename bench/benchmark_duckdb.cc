#include "bench/benchmark_duckdb.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::bench {
namespace {

using Json = DuckDb::Json;

constexpr int64_t kLoadTimeoutMsPerScaleFactor = 600'000;

/// The narrowest type for the data, as an expert would declare it: DuckDB stores in-memory columns at their
/// declared width, so this is also the fastest.
std::string DuckDbType(const partitioner::ColumnSchema& column, double scale_factor) {
  static const std::set<std::string_view> bytes = {
      "lo_linenumber",      "lo_quantity",     "lo_discount",      "lo_tax",          "p_size",
      "d_daynuminweek",     "d_daynuminmonth", "d_monthnuminyear", "d_weeknuminyear", "d_lastdayinweekfl",
      "d_lastdayinmonthfl", "d_holidayfl",     "d_weekdayfl"};
  static const std::set<std::string_view> shorts = {"d_year", "d_daynuminyear"};
  constexpr double kOrderKeysOfFourBytes = 300;  // limit of the scale factor: one in four keys is used
  if (column.type.kind == TypeKind::kString) return "VARCHAR";
  if (column.type.kind == TypeKind::kDate) return "DATE";
  if (column.type.kind == TypeKind::kDecimal)
    return absl::StrCat("DECIMAL(", static_cast<int>(column.type.precision), ",",
                        static_cast<int>(column.type.scale), ")");
  if (column.type.precision == 8) return "BIGINT";
  if (bytes.contains(column.name)) return "UTINYINT";
  if (shorts.contains(column.name)) return "USMALLINT";
  return column.name == "lo_orderkey" && scale_factor > kOrderKeysOfFourBytes ? "BIGINT" : "INTEGER";
}

}  // namespace

absl::StatusOr<double> LoadIntoDuckDb(DuckDb& duckdb, const std::string& tbl_directory,
                                      const dataset::Generator& generator, bool sorted) {
  const double scale_factor = generator.options().scale_factor;
  NAM_RETURN_IF_ERROR(duckdb.Open());
  Json tables = Json::array();
  for (size_t table = 0; table < generator.tables().size(); ++table) {
    const dataset::Table& described = generator.tables()[table];
    Json columns = Json::array();
    for (const partitioner::ColumnSchema& column : described.schema.columns)
      columns.push_back({{"name", column.name}, {"type", DuckDbType(column, scale_factor)}});
    tables.push_back({{"name", described.schema.name},
                      {"file", described.file_names.front()},
                      {"rows", generator.Rows(table)},
                      {"columns", std::move(columns)},
                      {"order_by", sorted ? described.schema.sort_column : ""}});
  }
  const auto timeout_ms =
      static_cast<int64_t>(static_cast<double>(kLoadTimeoutMsPerScaleFactor) * std::max(1.0, scale_factor));
  return duckdb.Load({{"op", "load"}, {"directory", tbl_directory}, {"tables", tables}}, timeout_ms);
}

}  // namespace nam::bench
