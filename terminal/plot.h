#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "terminal/json_report.h"

/// Plots for benchmarks' reports: SVG in one HTML page that needs nothing else, no scripts either. It follows
/// the browser's light or dark scheme, and every mark shows its numbers when it is pointed at.
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

/// Which of the report's columns make a plot.
struct PlottedColumns {
  std::string title;
  std::string series;  // text: a line for each
  std::string x, y;    // numbers
  std::string x_label, y_label;
};
LinePlot PlotRows(const Json& rows, const PlottedColumns& columns);

struct BarPlot {
  struct Series {
    std::string name;
    std::vector<double> values;  // by category; not above 0: no bar
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
  Json rows;                         // as a table below the figures, as in the report
};
std::string HtmlOf(const PlotPage& page);
/// Whether WriteHtml can write there: to be asked before the work that the page is about. Says what is wrong.
absl::Status CheckHtmlPath(const std::string& path);
/// In one step: who looks sees the whole page, or what was there before. Says which file could not be
/// written.
absl::Status WriteHtml(const std::string& path, const std::string& html);
absl::Status WritePage(const std::string& path, const PlotPage& page);

}  // namespace nam
