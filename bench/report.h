#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace nam::bench
