#include "bench/report.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace nam::bench {
namespace {

constexpr double kLeast = 1e-9;  // keeps figures without measurable time from making a ratio infinite

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

}  // namespace nam::bench
