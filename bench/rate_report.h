#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "terminal/json_report.h"

/// Reports of the benchmarks that measure rates. A row is a flat JSON object of settings and figures; its
/// table, its CSV and its JSON are the same thing.
namespace nam::bench {

/// Three significant decimals at most: `12.345`.
double Rounded(double number);

/// An older report of the same command. NOT_FOUND, or INVALID_ARGUMENT for a file that is none.
absl::StatusOr<Json> ReadReport(const std::string& path, const std::string& command);

/// Which rows of two reports are the same measurement, and which of their figures to compare.
struct ComparedFigures {
  std::vector<std::string> settings;
  std::vector<std::string> figures;  // more is better
};
/// Adds `<figure>_new_over_old` to every row that the older report has too.
void AddNewOverOld(const Json& older, const ComparedFigures& compared, Json& rows);

}  // namespace nam::bench
