#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "terminal/json_report.h"

/// Figures and reports of benchmarks. A row is a flat JSON object of settings and figures, besides arrays
/// with the figure of each run; table, CSV and JSON have the same contents, but for the arrays.
namespace nam::bench {

/// Three decimals at most: `12.345`.
double Rounded(double number);
/// The same of each.
Json Rounded(const std::vector<double>& numbers);
/// Sets the key to the number with three decimals, or omits it.
void SetIf(Json& json, const std::string& key, const std::optional<double>& number);
/// The median of at least one value.
double Median(std::vector<double> values);
/// The geometric mean of positive numbers; other numbers count as very small. Empty without values.
std::optional<double> GeometricMean(const std::vector<double>& values);
/// `over` / `under`, which counts as a very small number if it is 0. Empty unless both are there.
std::optional<double> RatioOf(const std::optional<double>& over, const std::optional<double>& under);

/// Reads an older report of the same command. NOT_FOUND, or INVALID_ARGUMENT if the file is not such a
/// report.
absl::StatusOr<Json> ReadReport(const std::string& path, const std::string& command);

/// What is compared with an older report: the settings that identify a row, and the figures.
struct ComparedFigures {
  std::vector<std::string> settings;
  std::vector<std::string> figures;
  bool times = false;  // less is better
};
/// Adds a ratio for each figure to every row that the older report also has, and their geometric mean to the
/// summary: `<rate>_new_over_old` or, of times, `<time>_old_over_new` without the time's `_median_ms`. More
/// is better.
void Compare(const Json& older, const ComparedFigures& compared, Json& rows, Json& summary);
/// The settings that differ and make the reports incomparable: `scale_factor (1, now 10)`. Empty if none.
std::string DifferingSettings(const Json& older, const Json& now);

}  // namespace nam::bench
