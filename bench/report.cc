#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace nam::bench {
namespace {

constexpr double kLeast = 1e-9;  // keeps figures without measurable time from making a ratio infinite
constexpr char kTimeEnding[] = "_median_ms";
/// Settings that must be equal for figures to be comparable.
constexpr const char* kComparableSettings[] = {"scale_factor",    "seed",   "fabric", "memory_servers",
                                               "compute_servers", "threads"};

bool SameSettings(const Json& a, const Json& b, const std::vector<std::string>& settings) {
  return std::all_of(settings.begin(), settings.end(),
                     [&](const std::string& key) { return a.value(key, Json()) == b.value(key, Json()); });
}

std::string RatioKey(std::string figure, bool times) {
  if (!times) return figure + "_new_over_old";
  if (absl::EndsWith(figure, kTimeEnding)) figure.resize(figure.size() - (sizeof(kTimeEnding) - 1));
  return figure + "_old_over_new";
}

}  // namespace

double Rounded(double number) {
  return std::round(number * 1000) / 1000;
}

Json Rounded(const std::vector<double>& numbers) {
  Json rounded = Json::array();
  for (const double number : numbers) rounded.push_back(Rounded(number));
  return rounded;
}

void SetIf(Json& json, const std::string& key, const std::optional<double>& number) {
  if (number.has_value()) json[key] = Rounded(*number);
}

double Median(std::vector<double> values) {
  NAM_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> GeometricMean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += std::log(std::max(value, kLeast));
  return std::exp(sum / static_cast<double>(values.size()));
}

std::optional<double> RatioOf(const std::optional<double>& over, const std::optional<double>& under) {
  if (!over.has_value() || !under.has_value()) return std::nullopt;
  return *over / std::max(*under, kLeast);
}

absl::StatusOr<Json> ReadReport(const std::string& path, const std::string& command) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool right =
      json.is_object() && json.value("command", Json()) == command &&
      json.value("config", Json::object()).is_object() && json.value("rows", Json()).is_array() &&
      std::all_of(json["rows"].begin(), json["rows"].end(), [](const Json& row) { return row.is_object(); });
  if (!right) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no report of `nam ", command,
                                                   " --format=json`, so there is nothing to compare"));
  }
  return json;
}

void Compare(const Json& older, const ComparedFigures& compared, Json& rows, Json& summary) {
  for (const std::string& figure : compared.figures) {
    const std::string key = RatioKey(figure, compared.times);
    std::vector<double> ratios;
    for (Json& row : rows) {
      const auto was = std::find_if(older["rows"].begin(), older["rows"].end(), [&](const Json& candidate) {
        return SameSettings(candidate, row, compared.settings);
      });
      if (was == older["rows"].end()) continue;
      const Json before = was->value(figure, Json()), now = row.value(figure, Json());
      if (!before.is_number() || !now.is_number() || before.get<double>() <= 0) continue;
      const double old_figure = before.get<double>(), new_figure = now.get<double>();
      ratios.push_back(compared.times ? old_figure / std::max(new_figure, kLeast) : new_figure / old_figure);
      row[key] = Rounded(ratios.back());
    }
    SetIf(summary, key + "_geomean", GeometricMean(ratios));
  }
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
