#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "terminal/json_report.h"

/// Plots for benchmark reports: SVG in one self-contained HTML page without scripts. It follows the browser's
/// light or dark scheme, and marks show their numbers on hover.
namespace nam {

struct LinePlot {
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;  // by x
    bool dashed = false;                            // a bound, not a measurement
  };
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;  // at most kPlotSeriesMax
  bool log_y = false;          // values above 0 only
};

/// The report's columns that make a plot.
struct PlottedColumns {
  std::string title;
  std::string series;  // text: one line per value
  std::string x, y;    // numbers
  std::string x_label, y_label;
};
LinePlot PlotRows(const Json& rows, const PlottedColumns& columns);

struct BarPlot {
  struct Series {
    std::string name;
    std::vector<double> values;  // by category; 0 or less: no bar
  };
  std::string title;
  std::string y_label;
  std::vector<std::string> categories;
  std::vector<Series> series;  // at most kPlotSeriesMax
};

inline constexpr size_t kPlotSeriesMax = 8;

std::string SvgOf(const LinePlot& plot);
std::string SvgOf(const BarPlot& plot);

struct PlotPage {
  std::string title;
  std::string text;                  // below it
  std::vector<std::string> figures;  // SVG
  Json rows;                         // shown as a table below the figures, as in the report
};
std::string HtmlOf(const PlotPage& page);
/// Checks that WriteHtml can write there, before the work that the page reports.
absl::Status CheckHtmlPath(const std::string& path);
/// Writes in one step: readers see the whole page or the previous one. Errors name the file.
absl::Status WriteHtml(const std::string& path, const std::string& html);
absl::Status WritePage(const std::string& path, const PlotPage& page);

}  // namespace nam
