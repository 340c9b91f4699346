#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "terminal/json_report.h"

/// Plots for benchmark reports: SVG in one self-contained HTML page without scripts. It follows the browser's
/// light or dark scheme, and marks show their numbers on hover. Texts are broken or narrowed to the room that
/// they have, so that none is cut off.
namespace nam {

/// The least and the greatest of several runs: a thin line through a mark.
struct Spread {
  double least = 0, greatest = 0;
  bool operator==(const Spread&) const = default;
};
/// Empty for fewer than two runs.
std::optional<Spread> SpreadOf(const std::vector<double>& runs);

struct LinePlot {
  struct Point {
    double x = 0, y = 0;
    std::optional<Spread> spread = {};  // of y
    bool operator==(const Point&) const = default;
  };
  struct Series {
    std::string name;
    std::vector<Point> points;  // by x
    bool dashed = false;        // a bound, not a measurement
  };
  /// A value that a paper's text gives: a cross, or, where the text names no x, a dotted line across the
  /// plot.
  struct PaperPoint {
    std::string series;  // has its colour
    std::string source;  // `I-Store, figure 7c`
    std::optional<double> x;
    double y = 0;
  };
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;          // at most kPlotSeriesMax
  std::vector<PaperPoint> paper = {};  // of series that there are not: left out
  bool x_sizes = false;                // x are bytes above 0, evenly spaced by powers of 2
  bool log_y = false;                  // values above 0 only
};

/// The report's columns that make a plot.
struct PlottedColumns {
  std::string title;
  std::string series;  // text: one line per value
  std::string x, y;    // numbers
  std::string x_label, y_label;
  std::string runs;  // an array with the y of each run, if any
};
/// Rows that lack a column have no point.
LinePlot PlotRows(const Json& rows, const PlottedColumns& columns);

struct BarPlot {
  struct Series {
    std::string name;
    std::vector<double> values;                      // by category; 0 or less: no bar
    std::vector<std::optional<Spread>> spread = {};  // by category, if any
  };
  std::string title;
  std::string y_label;
  std::vector<std::string> categories;
  std::vector<Series> series;  // at most kPlotSeriesMax
};

inline constexpr size_t kPlotSeriesMax = 8;

std::string SvgOf(const LinePlot& plot);
std::string SvgOf(const BarPlot& plot);
/// Text as HTML and SVG show it, also in attributes.
std::string EscapedHtml(const std::string& text);

struct PlotPage {
  std::string title;
  std::string text;                  // below it
  std::vector<std::string> figures;  // SVG
  Json rows;                         // shown as a table below the figures, without its arrays
  std::string seed;                  // of the data; empty: nothing was drawn from one
};
/// The page says besides when, on what host, by what command line and by what commit it was made.
std::string HtmlOf(const PlotPage& page);
/// Checks that WriteHtml can write there, before the work that the page reports.
absl::Status CheckHtmlPath(const std::string& path);
/// Writes in one step: readers see the whole page or the previous one. Errors name the file.
absl::Status WriteHtml(const std::string& path, const std::string& html);
absl::Status WritePage(const std::string& path, const PlotPage& page);

}  // namespace nam
