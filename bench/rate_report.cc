#include "bench/rate_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace nam::bench {
namespace {

bool SameSettings(const Json& a, const Json& b, const std::vector<std::string>& settings) {
  return std::all_of(settings.begin(), settings.end(),
                     [&](const std::string& key) { return a.value(key, Json()) == b.value(key, Json()); });
}

}  // namespace

double Rounded(double number) {
  return std::round(number * 1000) / 1000;
}

absl::StatusOr<Json> ReadReport(const std::string& path, const std::string& command) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool right =
      json.is_object() && json.value("command", Json()) == command && json.value("rows", Json()).is_array() &&
      std::all_of(json["rows"].begin(), json["rows"].end(), [](const Json& row) { return row.is_object(); });
  if (!right) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no report of `nam ", command,
                                                   " --format=json`, so there is nothing to compare"));
  }
  return json;
}

void AddNewOverOld(const Json& older, const ComparedFigures& compared, Json& rows) {
  for (Json& row : rows) {
    const auto was = std::find_if(older["rows"].begin(), older["rows"].end(), [&](const Json& candidate) {
      return SameSettings(candidate, row, compared.settings);
    });
    if (was == older["rows"].end()) continue;
    for (const std::string& figure : compared.figures) {
      const Json before = was->value(figure, Json()), now = row.value(figure, Json());
      if (!before.is_number() || !now.is_number() || before.get<double>() <= 0) continue;
      row[absl::StrCat(figure, "_new_over_old")] = Rounded(now.get<double>() / before.get<double>());
    }
  }
}

}  // namespace nam::bench
