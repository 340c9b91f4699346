#include "terminal/plot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "terminal/text_width.h"

namespace nam {
namespace {

constexpr double kWidth = 760, kHeight = 400;
constexpr double kLeft = 74, kRight = 20, kTop = 64, kBottom = 52;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLegendMark = 16, kLegendGap = 18, kLegendRow = 16, kLabelRow = 14;
constexpr int kLegendRowsOfAPlot = 2, kLabelRowsOfAPlot = 2;  // more rows make the plot higher
/// Width of a label's character: a generous estimate, because fonts are unknown here.
constexpr double kCharacterWidth = 7;

/// Distinct without colours: each series also has its own marker.
constexpr char kStyle[] = R"(<style>
:root { --paper: #fff; --ink: #1b1b1b; --faint: #d9d9d9;
  --s0: #0b62c4; --s1: #d1580a; --s2: #14863c; --s3: #8a3ab9; --s4: #b01e3c; --s5: #4d6a78; --s6: #8a6d00; --s7: #00798c; }
@media (prefers-color-scheme: dark) { :root { --paper: #161616; --ink: #e6e6e6; --faint: #3a3a3a;
  --s0: #6bb0ff; --s1: #ff9c57; --s2: #62cf86; --s3: #cf9bf0; --s4: #ff7d94; --s5: #a3bcc8; --s6: #e0c24a; --s7: #5fd0e0; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.45 sans-serif; margin: 2em auto; padding: 0 1em; width: fit-content; }
h1, p, svg { max-width: 60em; }
svg { width: 100%; height: auto; margin: 1em 0; }
svg text { fill: var(--ink); font: 12px sans-serif; }
svg .title { font-size: 15px; font-weight: bold; }
svg .grid { stroke: var(--faint); stroke-width: 1; }
svg .axis { stroke: var(--ink); stroke-width: 1; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--faint); padding: 2px 8px; text-align: right; }
th { border-bottom-color: var(--ink); }
</style>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

/// `1.8 M`, `320 k`, `0.25`.
std::string Short(double number) {
  const char* unit = "";
  if (std::abs(number) >= 1e9) {
    number /= 1e9, unit = " G";
  } else if (std::abs(number) >= 1e6) {
    number /= 1e6, unit = " M";
  } else if (std::abs(number) >= 1e4) {
    number /= 1e3, unit = " k";
  }
  return absl::StrFormat("%.4g%s", number, unit);
}

/// Maps values to positions on an axis, and lists the labelled values.
class Scale {
 public:
  static Scale Linear(double low, double high) {
    Scale scale(low, high <= low ? low + 1 : high, false);
    const double raw = (scale.high_ - scale.low_) / 6;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step < raw) step = power * factor;
    }
    for (double tick = std::ceil(scale.low_ / step) * step; tick <= scale.high_ * (1 + 1e-9); tick += step) {
      scale.ticks_.push_back(tick);
    }
    return scale;
  }
  static Scale FromZero(double high) {
    const double top = high <= 0 ? 1 : high * 1.05;
    return Linear(0, top);
  }
  static Scale Log(double low, double high) {
    const double from = std::floor(std::log10(std::max(low, 1e-12)));
    const double to = std::max(from + 1, std::ceil(std::log10(std::max(high, 1e-12))));
    Scale scale(from, to, true);
    for (double power = from; power <= to; ++power) scale.ticks_.push_back(std::pow(10, power));
    return scale;
  }

  /// 0 … 1
  double Place(double value) const {
    const double at = log_ ? std::log10(std::max(value, 1e-12)) : value;
    return (at - low_) / (high_ - low_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  Scale(double low, double high, bool log) : low_(low), high_(high), log_(log) {}
  double low_, high_;
  bool log_;
  std::vector<double> ticks_;
};

double X(double place) {
  return kLeft + place * kPlotWidth;
}
double Y(double place) {
  return kTop + (1 - place) * kPlotHeight;
}
std::string ColorOf(size_t series) {
  return absl::StrCat("var(--s", series, ")");
}

std::string Text(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more,
                         Escaped(text));
}
std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2,
                         y2, style);
}

/// Circle, square, triangle and diamond in turn.
std::string Marker(size_t series, double x, double y, const std::string& says) {
  const std::string color = ColorOf(series);
  std::string shape;
  switch (series % 4) {
    case 0:
      shape = absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\">", x, y, color);
      break;
    case 1:
      shape = absl::StrFormat("<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"%s\">", x - 3.5,
                              y - 3.5, color);
      break;
    case 2:
      shape = absl::StrFormat("<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"%s\">", x, y - 5,
                              x - 4.5, y + 3.5, x + 4.5, y + 3.5, color);
      break;
    default:
      shape = absl::StrFormat("<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"%s\">", x,
                              y - 5, x + 5, y, x, y + 5, x - 5, y, color);
  }
  const std::string end = shape.substr(1, shape.find(' ') - 1);
  return absl::StrCat(shape, "<title>", Escaped(says), "</title></", end, ">\n");
}

std::string YAxis(const Scale& scale, const std::string& label) {
  std::string svg;
  for (const double tick : scale.ticks()) {
    const double y = Y(scale.Place(tick));
    svg += Line(kLeft, y, kWidth - kRight, y, "grid");
    svg += Text(kLeft - 6, y + 4, "end", Short(tick));
  }
  svg += Line(kLeft, kTop, kLeft, Y(0), "axis");
  svg += Line(kLeft, Y(0), kWidth - kRight, Y(0), "axis");
  return svg +
         absl::StrFormat(
             "<text x=\"16\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 16 %.1f)\">%s</text>\n",
             kTop + kPlotHeight / 2, kTop + kPlotHeight / 2, Escaped(label));
}

double WidthOf(const std::string& text) {
  return kCharacterWidth * static_cast<double>(DisplayWidth(text));
}

/// Splits text at blanks, with as many words per line as fit.
std::vector<std::string> Wrapped(const std::string& text, double width) {
  std::vector<std::string> lines;
  for (const absl::string_view piece : absl::StrSplit(text, ' ')) {
    const std::string word(piece);
    if (!lines.empty() && WidthOf(lines.back() + " " + word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

bool Dashed(const LinePlot::Series& series) {
  return series.dashed;
}
bool Dashed(const BarPlot::Series&) {
  return false;
}

/// The appearance of each series in the plot.
struct Legend {
  std::string svg;
  int rows = 1;
};
template <typename Series>
Legend LegendOf(const std::vector<Series>& series, bool bars) {
  Legend legend;
  double x = kLeft;
  for (size_t i = 0; i < series.size(); ++i) {
    const double width = kLegendMark + WidthOf(series[i].name);
    if (x > kLeft && x + width > kWidth) x = kLeft, ++legend.rows;
    const double y = 36 + kLegendRow * (legend.rows - 1);
    if (bars) {
      absl::StrAppendFormat(&legend.svg,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x,
                            y - 5, ColorOf(i));
    } else if (Dashed(series[i])) {
      absl::StrAppendFormat(&legend.svg,
                            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                            "stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\n",
                            x, y, x + 13, y, ColorOf(i));
    } else {
      legend.svg += Marker(i, x + 5, y, series[i].name);
    }
    legend.svg += Text(x + kLegendMark, y + 4, "start", series[i].name);
    x += width + kLegendGap;
  }
  return legend;
}

/// The whole picture: title, legend, and below them `plot`, which is drawn for a legend of two rows.
std::string Picture(const std::string& title, const Legend& legend, const std::string& plot, int label_rows) {
  const double lower = kLegendRow * std::max(0, legend.rows - kLegendRowsOfAPlot);
  const double height = kHeight + lower + kLabelRow * std::max(0, label_rows - kLabelRowsOfAPlot);
  return absl::StrFormat(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
             "aria-label=\"%s\">\n",
             kWidth, height, Escaped(title)) +
         Text(kLeft, 20, "start", title, " class=\"title\"") + legend.svg +
         absl::StrFormat("<g transform=\"translate(0 %.0f)\">\n", lower) + plot + "</g>\n</svg>\n";
}

std::string Curve(const LinePlot::Series& series, size_t number, const LinePlot& plot, const Scale& x_scale,
                  const Scale& y_scale) {
  std::string path, markers;
  for (const auto& [x, y] : series.points) {
    if (plot.log_y && y <= 0) continue;
    const double at_x = X(x_scale.Place(x)), at_y = Y(y_scale.Place(y));
    absl::StrAppend(&path, path.empty() ? "M" : "L", absl::StrFormat("%.1f %.1f", at_x, at_y));
    if (series.dashed) continue;
    markers += Marker(number, at_x, at_y,
                      absl::StrCat(series.name, ": ", Short(y), " at ", Short(x), " ", plot.x_label));
  }
  return absl::StrFormat("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n%s", path,
                         ColorOf(number), series.dashed ? " stroke-dasharray=\"6 5\"" : "", markers);
}

std::string TableHtml(const Json& rows) {
  const session::ResultSet table = TableOf(rows);
  std::string html = "<table>\n<tr>";
  for (const auto& column : table.columns) {
    absl::StrAppend(&html, "<th>", absl::StrReplaceAll(Escaped(column.name), {{"_", "_<wbr>"}}), "</th>");
  }
  html += "</tr>\n";
  for (const Json& row : rows) {
    html += "<tr>";
    for (const auto& column : table.columns) {
      const auto cell = row.find(column.name);
      std::string text;
      if (cell != row.end()) text = cell->is_string() ? cell->get<std::string>() : cell->dump();
      absl::StrAppend(&html, "<td>", Escaped(text), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

LinePlot PlotRows(const Json& rows, const PlottedColumns& columns) {
  LinePlot plot{.title = columns.title, .x_label = columns.x_label, .y_label = columns.y_label};
  for (const Json& row : rows) {
    const std::string name = row.at(columns.series).get<std::string>();
    auto series = std::find_if(plot.series.begin(), plot.series.end(),
                               [&](const LinePlot::Series& each) { return each.name == name; });
    if (series == plot.series.end()) series = plot.series.insert(series, LinePlot::Series{.name = name});
    series->points.emplace_back(row.at(columns.x).get<double>(), row.at(columns.y).get<double>());
  }
  return plot;
}

std::string SvgOf(const LinePlot& plot) {
  NAM_CHECK(plot.series.size() <= kPlotSeriesMax, "more series than there are colours");
  double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = 0;
  for (const LinePlot::Series& series : plot.series) {
    for (const auto& [x, y] : series.points) {
      x_low = std::min(x_low, x), x_high = std::max(x_high, x);
      if (!plot.log_y || y > 0) y_low = std::min(y_low, y), y_high = std::max(y_high, y);
    }
  }
  if (x_low > x_high) x_low = 0, x_high = 1, y_low = 1, y_high = 10;
  const Scale x_scale = Scale::Linear(std::min(x_low, 0.0), x_high);
  const Scale y_scale = plot.log_y ? Scale::Log(y_low, y_high) : Scale::FromZero(y_high);
  std::string svg = YAxis(y_scale, plot.y_label);
  for (const double tick : x_scale.ticks()) {
    const double x = X(x_scale.Place(tick));
    svg += Line(x, Y(0), x, Y(0) + 5, "axis") + Text(x, Y(0) + 18, "middle", Short(tick));
  }
  svg += Text(kLeft + kPlotWidth / 2, kHeight - 10, "middle", plot.x_label);
  for (size_t i = 0; i < plot.series.size(); ++i) svg += Curve(plot.series[i], i, plot, x_scale, y_scale);
  return Picture(plot.title, LegendOf(plot.series, false), svg, 1);
}

std::string SvgOf(const BarPlot& plot) {
  NAM_CHECK(plot.series.size() <= kPlotSeriesMax, "more series than there are colours");
  double high = 0;
  for (const BarPlot::Series& series : plot.series) {
    for (const double value : series.values) high = std::max(high, value);
  }
  const Scale scale = Scale::FromZero(high);
  std::string svg = YAxis(scale, plot.y_label);
  int label_rows = 1;
  const double group = kPlotWidth / static_cast<double>(std::max<size_t>(1, plot.categories.size()));
  const double bar = group * 0.8 / static_cast<double>(std::max<size_t>(1, plot.series.size()));
  for (size_t c = 0; c < plot.categories.size(); ++c) {
    const double left = kLeft + group * (static_cast<double>(c) + 0.1);
    const std::vector<std::string> label = Wrapped(plot.categories[c], group);
    for (size_t row = 0; row < label.size(); ++row) {
      svg += Text(left + group * 0.4, Y(0) + 18 + kLabelRow * static_cast<double>(row), "middle", label[row]);
    }
    label_rows = std::max(label_rows, static_cast<int>(label.size()));
    for (size_t i = 0; i < plot.series.size(); ++i) {
      if (c >= plot.series[i].values.size() || !(plot.series[i].values[c] > 0)) continue;
      const double value = plot.series[i].values[c];
      const double top = Y(scale.Place(value));
      absl::StrAppendFormat(
          &svg,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n",
          left + bar * static_cast<double>(i), top, bar * 0.92, Y(0) - top, ColorOf(i),
          Escaped(absl::StrCat(plot.series[i].name, ", ", plot.categories[c], ": ", Short(value))));
    }
  }
  return Picture(plot.title, LegendOf(plot.series, true), svg, label_rows);
}

std::string HtmlOf(const PlotPage& page) {
  std::string html = absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                                  "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
                                  Escaped(page.title), "</title>\n", kStyle, "</head>\n<body>\n<h1>",
                                  Escaped(page.title), "</h1>\n<p>", Escaped(page.text), "</p>\n");
  for (const std::string& figure : page.figures) html += figure;
  return absl::StrCat(html, TableHtml(page.rows), "</body>\n</html>\n");
}

namespace {

absl::Status CannotWrite(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", why));
}

/// A new file beside the page that can replace it in one step.
struct FreshFile {
  std::string path;  // of the page, with links resolved
  std::string fresh_path;
  UniqueFd fd;
};

absl::StatusOr<FreshFile> OpenFresh(const std::string& path) {
  std::error_code error;
  FreshFile file{.path = path};
  if (path.empty()) return CannotWrite(path, "it has no name");
  if (std::filesystem::exists(path, error)) {
    file.path = std::filesystem::canonical(path, error);
    if (error || !std::filesystem::is_regular_file(file.path, error))
      return CannotWrite(path, "it is no file");
    if (access(file.path.c_str(), W_OK) != 0) return CannotWrite(path, std::strerror(errno));
  }
  file.fresh_path = absl::StrCat(file.path, ".", getpid(), ".new");
  file.fd.reset(open(file.fresh_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.fd.valid()) return CannotWrite(path, std::strerror(errno));
  return file;
}

}  // namespace

absl::Status CheckHtmlPath(const std::string& path) {
  const absl::StatusOr<FreshFile> file = OpenFresh(path);
  if (file.ok()) unlink(file->fresh_path.c_str());
  return file.status();
}

absl::Status WriteHtml(const std::string& path, const std::string& html) {
  NAM_ASSIGN_OR_RETURN(const FreshFile file, OpenFresh(path));
  size_t written = 0;
  while (written < html.size()) {
    const ssize_t n = write(file.fd.get(), html.data() + written, html.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (written == html.size() && rename(file.fresh_path.c_str(), file.path.c_str()) == 0)
    return absl::OkStatus();
  const absl::Status status = CannotWrite(path, std::strerror(errno));
  unlink(file.fresh_path.c_str());
  return status;
}

absl::Status WritePage(const std::string& path, const PlotPage& page) {
  return WriteHtml(path, HtmlOf(page));
}

}  // namespace nam
