#include "bench/query_work.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "dataset/generator.h"
#include "dataset/tbl_writer.h"
#include "localcluster/state_directory.h"
#include "terminal/units.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

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

/// Loads a benchmark's tables from dbgen's files with the generator's data; returns the seconds taken.
absl::StatusOr<double> LoadIntoDuckDb(DuckDb& duckdb, const std::string& tbl_directory,
                                      const dataset::Generator& generator) {
  const double scale_factor = generator.options().scale_factor;
  NAM_RETURN_IF_ERROR(duckdb.Open());
  DuckDb::Json tables = DuckDb::Json::array();
  for (size_t table = 0; table < generator.tables().size(); ++table) {
    const dataset::Table& described = generator.tables()[table];
    DuckDb::Json columns = DuckDb::Json::array();
    for (const partitioner::ColumnSchema& column : described.schema.columns)
      columns.push_back({{"name", column.name}, {"type", DuckDbType(column, scale_factor)}});
    tables.push_back({{"name", described.schema.name},
                      {"file", described.file_names.front()},
                      {"rows", generator.Rows(table)},
                      {"columns", std::move(columns)}});
  }
  const auto timeout_ms =
      static_cast<int64_t>(static_cast<double>(kLoadTimeoutMsPerScaleFactor) * std::max(1.0, scale_factor));
  return duckdb.Load({{"op", "load"}, {"directory", tbl_directory}, {"tables", tables}}, timeout_ms);
}

}  // namespace

absl::Status QueryWork::RunOn(catalog::Attachment& attachment) {
  in_place_ = attachment.fabric().capabilities().in_place;
  NAM_RETURN_IF_ERROR(LoadOurs(attachment));
  if (options_.duckdb != nullptr) NAM_RETURN_IF_ERROR(LoadDuckDb(attachment.fabric()));
  NAM_ASSIGN_OR_RETURN(const auto read_bound, ReadBound::Open(attachment, options_.threads));
  NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
  run_.OnCancel([&] {
    session->Cancel();
    if (options_.duckdb != nullptr) options_.duckdb->Cancel();
  });
  absl::Status status;
  for (const BenchmarkQuery& query : options_.queries) {
    if (status.ok()) status = Measure(*session, *read_bound, query);
  }
  run_.OnCancel();
  run_.progress().Clear();
  return status;
}

void QueryWork::Say(const std::string& text) {
  run_.progress().Clear();
  if (run_.progress().shown()) std::fprintf(stderr, "%s\n", text.c_str());
}

absl::Status QueryWork::LoadOurs(catalog::Attachment& attachment) {
  partitioner::LoadOptions load{.threads = options_.source.threads};
  load.block_bytes = static_cast<uint32_t>(options_.block_bytes);
  NAM_ASSIGN_OR_RETURN(const auto loaded, LoadBenchmark(attachment, *options_.benchmark, options_.source,
                                                        load, run_.progress(), run_.cancelled()));
  const std::string& name = options_.benchmark->largest_table;
  const auto largest = std::find_if(loaded.begin(), loaded.end(),
                                    [&](const LoadedTable& table) { return table.name == name; });
  if (largest == loaded.end()) return absl::InternalError(absl::StrCat(name, " was not loaded"));
  load_rows_per_second_ = static_cast<double>(largest->rows) / std::max(largest->seconds, 1e-9);
  Say(absl::StrFormat("Loaded %s: %s rows in %.1f s, %s rows/s, generated on the way.", name,
                      FormatCount(largest->rows), largest->seconds,
                      FormatCount(static_cast<uint64_t>(load_rows_per_second_))));
  return absl::OkStatus();
}

absl::Status QueryWork::LoadDuckDb(fabric::Fabric& fabric) {
  const auto generator = options_.benchmark->make_generator(
      {.scale_factor = options_.source.scale_factor, .seed = options_.source.seed});
  std::vector<size_t> tables(generator->tables().size());
  std::iota(tables.begin(), tables.end(), size_t{0});
  const auto written = dataset::WriteTbl(fabric, *generator, tables, options_.tbl_directory,
                                         {.work = {.threads = options_.source.threads,
                                                   .progress = run_.progress().For("writing for DuckDB:"),
                                                   .cancelled = &run_.cancelled()}});
  if (!written.ok()) return written.status();
  run_.progress().Show("DuckDB loads the tables");
  run_.OnCancel([this] { options_.duckdb->Cancel(); });
  const auto seconds = LoadIntoDuckDb(*options_.duckdb, options_.tbl_directory, *generator);
  run_.OnCancel();
  RemoveTree(options_.tbl_directory);
  if (!seconds.ok()) return seconds.status();
  duckdb_load_seconds_ = *seconds;
  Say(absl::StrFormat("DuckDB %s loaded the same rows from .tbl files in %.1f s.", options_.duckdb->version(),
                      *seconds));
  return absl::OkStatus();
}

absl::Status QueryWork::Measure(session::Session& session, ReadBound& bound, const BenchmarkQuery& query) {
  std::optional<Rows> expected;  // the first contender's
  const int digits = options_.benchmark->peer_digits;
  const auto right = [&](const Rows& rows) {
    if (!expected.has_value()) expected = rows;
    return digits == 0 ? SameRows(rows, *expected) : SameRowsTo(digits, rows, *expected);
  };
  absl::StatusOr<std::vector<ContenderTimes>> times = TakeTurns(
      ContendersOf(session, bound, query.sql), right,
      {.repeat = options_.repeat,
       .proceed = [&](const std::string& turn) { return run_.Proceed(absl::StrCat(query.id, ": ", turn)); }});
  if (!times.ok())
    return absl::Status(times.status().code(), absl::StrCat(query.id, ": ", times.status().message()));
  for (const ContenderTimes& contender : *times) {
    if (!contender.refusal.empty())
      return absl::ResourceExhaustedError(absl::StrCat(query.id, ": ", contender.refusal));
  }
  NAM_ASSIGN_OR_RETURN(const session::ResultSet explained,
                       session.Execute(absl::StrCat("EXPLAIN ", query.sql)));
  std::string plan;
  for (const std::vector<Value>& line : explained.rows) absl::StrAppend(&plan, line[0].text, "\n");
  queries_.push_back({.title = query.id,
                      .settings = {{"query", query.id}, {"rows", expected->size()}},
                      .contenders = *std::move(times),
                      .plan = std::move(plan)});
  return absl::OkStatus();
}

std::vector<Contender> QueryWork::ContendersOf(session::Session& session, ReadBound& bound,
                                               const std::string& sql) {
  std::vector<Contender> contenders;
  if (in_place_) contenders.push_back({kInPlace, [&] { return Ask(session, sql, /*in_place=*/true); }});
  contenders.push_back({kCopy, [&] { return Ask(session, sql, /*in_place=*/false); }});
  if (options_.duckdb != nullptr) {
    contenders.push_back({kDuckDb, [&]() -> absl::StatusOr<Turn> {
                            NAM_ASSIGN_OR_RETURN(DuckDb::Answer answer, options_.duckdb->Query(sql));
                            return Turn{std::move(answer.rows), answer.elapsed_ms};
                          }});
  }
  contenders.push_back({kRead,
                        [&]() -> absl::StatusOr<Turn> {
                          NAM_ASSIGN_OR_RETURN(const double elapsed_ms, bound.Run(copied_bytes_));
                          return Turn{.elapsed_ms = elapsed_ms};
                        },
                        /*answers=*/false});
  return contenders;
}

absl::StatusOr<Turn> QueryWork::Ask(session::Session& session, const std::string& sql, bool in_place) {
  NAM_RETURN_IF_ERROR(session.Execute(absl::StrCat("SET nam.in_place = ", in_place ? "on" : "off")).status());
  NAM_ASSIGN_OR_RETURN(session::ResultSet result, session.Execute(sql));
  if (!in_place) copied_bytes_ = result.work.bytes;
  return Turn{std::move(result.rows), result.elapsed_ms};
}

}  // namespace nam::bench
