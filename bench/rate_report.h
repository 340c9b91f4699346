#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "terminal/json_report.h"

/// Reports of benchmarks that measure rates. A row is a flat JSON object of settings and figures; table, CSV
/// and JSON have the same contents.
namespace nam::bench {

/// Three significant decimals at most: `12.345`.
double Rounded(double number);

/// Reads an older report of the same command. NOT_FOUND, or INVALID_ARGUMENT if the file is not such a
/// report.
absl::StatusOr<Json> ReadReport(const std::string& path, const std::string& command);

/// The settings that identify a measurement in two reports, and the figures to compare.
struct ComparedFigures {
  std::vector<std::string> settings;
  std::vector<std::string> figures;  // more is better
};
/// Adds `<figure>_new_over_old` to every row that the older report also has.
void AddNewOverOld(const Json& older, const ComparedFigures& compared, Json& rows);

}  // namespace nam::bench
