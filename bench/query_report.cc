#include "bench/query_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace nam::bench {
namespace {

using session::ResultSet;

/// Settings that must be equal for times to be comparable.
constexpr const char* kComparableSettings[] = {"scale_factor",    "seed",   "fabric", "memory_servers",
                                               "compute_servers", "threads"};

size_t Index(Contender contender) {
  return static_cast<size_t>(contender);
}

std::string Key(Contender contender, const char* what) {
  return absl::StrCat(Name(contender), what);
}

double Rounded(double number) {
  return std::round(number * 1000) / 1000;
}

/// An exact value with three decimals; NULL if empty.
Value Cell(const std::optional<double>& number) {
  return number.has_value() ? Value::Decimal(std::llround(*number * 1000), 3) : Value::Null(Type::Decimal(3));
}

void SetIf(Json& json, const std::string& key, const std::optional<double>& number) {
  if (number.has_value()) json[key] = Rounded(*number);
}

/// A table's column, omitted if it has no values.
template <typename Row>
struct OptionalColumn {
  std::string name;
  std::function<std::optional<double>(const Row&)> cell;
};

template <typename Row>
void AppendColumns(const std::vector<Row>& rows, const std::vector<OptionalColumn<Row>>& columns,
                   ResultSet& table) {
  for (const OptionalColumn<Row>& column : columns) {
    if (std::none_of(rows.begin(), rows.end(), [&](const Row& row) { return column.cell(row).has_value(); }))
      continue;
    table.columns.push_back({column.name, Type::Decimal(3)});
    for (size_t i = 0; i < rows.size(); ++i) table.rows[i].push_back(Cell(column.cell(rows[i])));
  }
}

std::string WrongText(const QueryTimes& query) {
  std::string names;
  for (const Contender contender : query.wrong)
    absl::StrAppend(&names, names.empty() ? "NO: " : ", ", Name(contender));
  return names.empty() ? "yes" : names;
}

std::optional<double> Number(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

absl::Status NoReport(const std::string& benchmark, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, " is no report of `nam bench ", benchmark,
                                                 " --format=json`, so there is nothing to compare"));
}

}  // namespace

const char* Name(Contender contender) {
  switch (contender) {
    case Contender::kInPlace:
      return "in_place";
    case Contender::kCopy:
      return "copy";
    case Contender::kDuckDb:
      return "duckdb";
    case Contender::kLoop:
      return "loop";
    case Contender::kRead:
      return "read";
  }
  return "unknown";
}

double Median(std::vector<double> values) {
  NAM_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> GeometricMean(const std::vector<double>& values) {
  constexpr double kLeast = 1e-9;  // keeps values without measurable time from making the mean zero
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += std::log(std::max(value, kLeast));
  return std::exp(sum / static_cast<double>(values.size()));
}

std::optional<double> QueryTimes::median_ms(Contender contender) const {
  const std::vector<double>& times = times_ms[Index(contender)];
  if (times.empty()) return std::nullopt;
  return Median(times);
}

std::optional<double> QueryTimes::Ratio(Contender slower, Contender faster) const {
  constexpr double kLeastMs = 1e-6;
  const auto over = median_ms(slower), under = median_ms(faster);
  if (!over.has_value() || !under.has_value()) return std::nullopt;
  return *over / std::max(*under, kLeastMs);
}

std::optional<double> QueryTimes::LoopOverOurs() const {
  const auto in_place = Ratio(Contender::kLoop, Contender::kInPlace);
  return in_place.has_value() ? in_place : Ratio(Contender::kLoop, Contender::kCopy);
}

QuerySummary Summarize(const std::vector<QueryTimes>& queries, double load_rows_per_second) {
  QuerySummary summary{.queries = queries.size(), .load_rows_per_second = load_rows_per_second};
  std::vector<double> in_place, copy, loop, read;
  const auto add = [](std::vector<double>& to, const std::optional<double>& ratio) {
    if (ratio.has_value()) to.push_back(*ratio);
  };
  for (const QueryTimes& query : queries) {
    summary.correct_queries += query.wrong.empty() ? 1 : 0;
    add(in_place, query.Ratio(Contender::kDuckDb, Contender::kInPlace));
    add(copy, query.Ratio(Contender::kDuckDb, Contender::kCopy));
    add(loop, query.LoopOverOurs());
    add(read, query.Ratio(Contender::kRead, Contender::kCopy));
  }
  const auto least = [](const std::vector<double>& of) -> std::optional<double> {
    if (of.empty()) return std::nullopt;
    return *std::min_element(of.begin(), of.end());
  };
  summary.speedup_over_duckdb_in_place_geomean = GeometricMean(in_place);
  summary.speedup_over_duckdb_copy_geomean = GeometricMean(copy);
  summary.speedup_over_duckdb_in_place_min = least(in_place);
  summary.speedup_over_duckdb_copy_min = least(copy);
  summary.loop_over_ours_min = least(loop);
  summary.read_over_copy_geomean = GeometricMean(read);
  summary.read_over_copy_min = least(read);
  return summary;
}

ResultSet TimesTable(const std::vector<QueryTimes>& queries) {
  ResultSet table;
  table.columns = {{"query", Type::String()}};
  for (const QueryTimes& query : queries) table.rows.push_back({Value::String(query.id)});
  std::vector<OptionalColumn<QueryTimes>> columns;
  const auto median = [&](Contender contender) {
    columns.push_back(
        {Key(contender, "_ms"), [contender](const QueryTimes& q) { return q.median_ms(contender); }});
  };
  const auto ratio = [&](const char* name, Contender slower, Contender faster) {
    columns.push_back({name, [=](const QueryTimes& q) { return q.Ratio(slower, faster); }});
  };
  median(Contender::kInPlace);
  median(Contender::kCopy);
  median(Contender::kDuckDb);
  ratio("duckdb/in_place", Contender::kDuckDb, Contender::kInPlace);
  ratio("duckdb/copy", Contender::kDuckDb, Contender::kCopy);
  median(Contender::kLoop);
  columns.push_back({"loop/ours", [](const QueryTimes& q) { return q.LoopOverOurs(); }});
  median(Contender::kRead);
  ratio("read/copy", Contender::kRead, Contender::kCopy);
  AppendColumns(queries, columns, table);
  table.columns.push_back({"rows", Type::Integer()});
  table.columns.push_back({"equal_rows", Type::String()});
  for (size_t i = 0; i < queries.size(); ++i) {
    table.rows[i].push_back(Value::Integer(static_cast<__int128>(queries[i].rows)));
    table.rows[i].push_back(Value::String(WrongText(queries[i])));
  }
  return table;
}

Json TimesJson(const std::vector<QueryTimes>& queries) {
  Json rows = Json::array();
  for (const QueryTimes& query : queries) {
    Json row{{"query", query.id}, {"rows", query.rows}, {"equal_rows", query.wrong.empty()}};
    if (!query.wrong.empty()) {
      Json& names = row["wrong"] = Json::array();
      for (const Contender contender : query.wrong) names.push_back(Name(contender));
    }
    for (const Contender contender : kContenders)
      SetIf(row, Key(contender, "_median_ms"), query.median_ms(contender));
    SetIf(row, "speedup_over_duckdb_in_place", query.Ratio(Contender::kDuckDb, Contender::kInPlace));
    SetIf(row, "speedup_over_duckdb_copy", query.Ratio(Contender::kDuckDb, Contender::kCopy));
    SetIf(row, "loop_over_ours", query.LoopOverOurs());
    SetIf(row, "read_over_copy", query.Ratio(Contender::kRead, Contender::kCopy));
    for (const Contender contender : kContenders) {
      const std::vector<double>& times = query.times_ms[Index(contender)];
      if (times.empty()) continue;
      Json& all = row[Key(contender, "_ms")] = Json::array();
      for (const double time : times) all.push_back(Rounded(time));
    }
    if (!query.plan.empty()) row["plan"] = query.plan;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json SummaryJson(const QuerySummary& summary, const std::string& largest_table) {
  Json json{{"queries", summary.queries}, {"correct_queries", summary.correct_queries}};
  SetIf(json, "speedup_over_duckdb_in_place_geomean", summary.speedup_over_duckdb_in_place_geomean);
  SetIf(json, "speedup_over_duckdb_copy_geomean", summary.speedup_over_duckdb_copy_geomean);
  SetIf(json, "speedup_over_duckdb_in_place_min", summary.speedup_over_duckdb_in_place_min);
  SetIf(json, "speedup_over_duckdb_copy_min", summary.speedup_over_duckdb_copy_min);
  SetIf(json, "loop_over_ours_min", summary.loop_over_ours_min);
  SetIf(json, "read_over_copy_geomean", summary.read_over_copy_geomean);
  SetIf(json, "read_over_copy_min", summary.read_over_copy_min);
  json[absl::StrCat("load_", largest_table, "_rows_per_second")] = std::llround(summary.load_rows_per_second);
  return json;
}

absl::StatusOr<OlderReport> ReadOlderReport(const std::string& benchmark, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("command") || json["command"] != "bench " + benchmark)
    return NoReport(benchmark, path);
  if (!json.contains("rows") || !json["rows"].is_array()) return NoReport(benchmark, path);
  OlderReport older{.path = path, .config = json.value("config", Json::object())};
  if (!older.config.is_object()) return NoReport(benchmark, path);
  for (const Json& row : json["rows"]) {
    const auto id = row.is_object() ? row.find("query") : row.end();
    if (!row.is_object() || id == row.end() || !id->is_string()) return NoReport(benchmark, path);
    OlderReport::Query query{.id = *id};
    for (const Contender contender : kContenders)
      query.median_ms[Index(contender)] = Number(row, Key(contender, "_median_ms"));
    older.queries.push_back(std::move(query));
  }
  return older;
}

Comparison Compare(const OlderReport& older, const std::vector<QueryTimes>& queries) {
  constexpr double kLeastMs = 1e-6;
  Comparison comparison;
  std::array<std::vector<double>, kContenders.size()> ratios;
  for (const QueryTimes& query : queries) {
    const auto was = std::find_if(older.queries.begin(), older.queries.end(),
                                  [&](const OlderReport::Query& q) { return q.id == query.id; });
    if (was == older.queries.end()) continue;
    Comparison::Query& both = comparison.queries.emplace_back(Comparison::Query{.id = query.id});
    for (const Contender contender : kContenders) {
      const auto before = was->median_ms[Index(contender)], now = query.median_ms(contender);
      if (!before.has_value() || !now.has_value()) continue;
      both.old_over_new[Index(contender)] = *before / std::max(*now, kLeastMs);
      ratios[Index(contender)].push_back(*both.old_over_new[Index(contender)]);
    }
  }
  std::transform(ratios.begin(), ratios.end(), comparison.geomean.begin(), GeometricMean);
  return comparison;
}

ResultSet ComparisonTable(const Comparison& comparison) {
  std::vector<Comparison::Query> lines = comparison.queries;
  lines.push_back({.id = "geomean", .old_over_new = comparison.geomean});
  ResultSet table;
  table.columns = {{"old/new", Type::String()}};
  for (const Comparison::Query& line : lines) table.rows.push_back({Value::String(line.id)});
  std::vector<OptionalColumn<Comparison::Query>> columns;
  for (const Contender contender : kContenders) {
    columns.push_back({Name(contender), [contender](const Comparison::Query& line) {
                         return line.old_over_new[Index(contender)];
                       }});
  }
  AppendColumns(lines, columns, table);
  return table;
}

void AddComparison(const Comparison& comparison, Json& rows, Json& summary) {
  for (const Comparison::Query& query : comparison.queries) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Json& r) { return r["query"] == query.id; });
    NAM_CHECK(row != rows.end());
    for (const Contender contender : kContenders)
      SetIf(*row, Key(contender, "_old_over_new"), query.old_over_new[Index(contender)]);
  }
  for (const Contender contender : kContenders)
    SetIf(summary, Key(contender, "_old_over_new_geomean"), comparison.geomean[Index(contender)]);
}

std::string DifferingSettings(const Json& older, const Json& now) {
  std::string text;
  for (const char* setting : kComparableSettings) {
    const Json before = older.value(setting, Json()), after = now.value(setting, Json());
    if (before == after) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", setting, " (", before.dump(), ", now ", after.dump(),
                    ")");
  }
  return text;
}

}  // namespace nam::bench
