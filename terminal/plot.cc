#include "terminal/plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "terminal/text_width.h"
#include "terminal/units.h"

namespace nam {
namespace {

constexpr double kWidth = 760, kHeight = 400;
constexpr double kLeft = 74, kRight = 20, kTop = 64, kBottom = 52;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLegendMark = 16, kLegendGap = 18, kLegendRow = 16, kLabelRow = 14;
constexpr double kTitleRow = 18, kTitleWidth = 1.35;          // a title's characters are wider by this factor
constexpr int kLegendRowsOfAPlot = 2, kLabelRowsOfAPlot = 2;  // more rows make the plot higher
/// Width of a label's character: a generous estimate, because fonts are unknown here.
constexpr double kCharacterWidth = 7;

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

std::string ShortX(const LinePlot& plot, double x) {
  return plot.x_sizes ? FormatBytes(static_cast<uint64_t>(x)) : absl::StrCat(Short(x), " ", plot.x_label);
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
  /// Has room for what lies beside a power of 2, with a tick for each of at most eight powers.
  static Scale Powers(double low, double high) {
    const double from = std::log2(std::max(low, 1e-12)),
                 to = std::max(from + 1, std::log2(std::max(high, 1e-12)));
    Scale scale(from * std::log10(2), to * std::log10(2), true);
    const double step = std::ceil((to - from) / 8);
    for (double power = std::ceil(from); power <= to + 1e-9; power += step)
      scale.ticks_.push_back(std::exp2(power));
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

double WidthOf(const std::string& text) {
  return kCharacterWidth * static_cast<double>(DisplayWidth(text));
}

/// A text that may be wider than `room` is narrowed to it.
std::string Narrowed(const std::string& text, double room) {
  return WidthOf(text) <= room
             ? ""
             : absl::StrFormat(" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\"", std::max(1.0, room));
}

std::string Text(double x, double y, const char* anchor, const std::string& text, double room = kWidth,
                 const std::string& more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s%s>%s</text>\n", x, y, anchor,
                         Narrowed(text, room), more, EscapedHtml(text));
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
  return absl::StrCat(shape, "<title>", EscapedHtml(says), "</title></", end, ">\n");
}

std::string YAxis(const Scale& scale, const std::string& label) {
  std::string svg;
  for (const double tick : scale.ticks()) {
    const double y = Y(scale.Place(tick));
    svg += Line(kLeft, y, kWidth - kRight, y, "grid");
    svg += Text(kLeft - 6, y + 4, "end", Short(tick), kLeft - 30);
  }
  svg += Line(kLeft, kTop, kLeft, Y(0), "axis");
  svg += Line(kLeft, Y(0), kWidth - kRight, Y(0), "axis");
  return svg + absl::StrFormat(
                   "<text x=\"16\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 16 "
                   "%.1f)\"%s>%s</text>\n",
                   kTop + kPlotHeight / 2, kTop + kPlotHeight / 2, Narrowed(label, kPlotHeight),
                   EscapedHtml(label));
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
  double x = kLeft;  // of the next entry

  /// Draws `mark(x, y)` and its name, in a new row if this one has no room for it.
  template <typename Mark>
  void Add(const std::string& name, const Mark& mark) {
    const double width = std::min(kLegendMark + WidthOf(name), kWidth - kLeft);
    if (x > kLeft && x + width > kWidth) x = kLeft, ++rows;
    const double y = 36 + kLegendRow * (rows - 1);
    svg += mark(x, y) + Text(x + kLegendMark, y + 4, "start", name, width - kLegendMark);
    x += width + kLegendGap;
  }
};

template <typename Series>
Legend LegendOf(const std::vector<Series>& series, bool bars) {
  Legend legend;
  for (size_t i = 0; i < series.size(); ++i) {
    legend.Add(series[i].name, [&](double x, double y) {
      if (bars) {
        return absl::StrFormat("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x,
                               y - 5, ColorOf(i));
      }
      if (!Dashed(series[i])) return Marker(i, x + 5, y, series[i].name);
      return absl::StrFormat(
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2\" "
          "stroke-dasharray=\"5 3\"/>\n",
          x, y, x + 13, y, ColorOf(i));
    });
  }
  return legend;
}

std::string Cross(double x, double y, const std::string& color, const std::string& says) {
  return absl::StrFormat(
      "<path d=\"M%.1f %.1fl8 8m0 -8l-8 8\" fill=\"none\" stroke=\"%s\" "
      "stroke-width=\"2.5\"><title>%s</title></path>\n",
      x - 4, y - 4, color, EscapedHtml(says));
}

std::string SpreadLine(double x, double from_y, double to_y, const std::string& color) {
  return absl::StrFormat(
      "<path d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\" fill=\"none\" stroke=\"%s\" class=\"spread\"/>\n", x - 3,
      from_y, to_y, color);
}

/// The whole picture: title, legend, and below them `plot`, which is drawn for a legend of two rows.
std::string Picture(const std::string& title, const Legend& legend, const std::string& plot, int label_rows) {
  const std::vector<std::string> lines = Wrapped(title, (kWidth - kLeft) / kTitleWidth);
  const double titles = kTitleRow * static_cast<double>(lines.size() - 1);
  const double lower = titles + kLegendRow * std::max(0, legend.rows - kLegendRowsOfAPlot);
  const double height = kHeight + lower + kLabelRow * std::max(0, label_rows - kLabelRowsOfAPlot);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n",
      kWidth, height, EscapedHtml(title));
  for (size_t i = 0; i < lines.size(); ++i) {
    svg += Text(kLeft, 20 + kTitleRow * static_cast<double>(i), "start", lines[i],
                (kWidth - kLeft) / kTitleWidth, " class=\"title\"");
  }
  absl::StrAppendFormat(&svg, "<g transform=\"translate(0 %.0f)\">\n%s</g>\n", titles, legend.svg);
  return absl::StrCat(svg, absl::StrFormat("<g transform=\"translate(0 %.0f)\">\n", lower), plot,
                      "</g>\n</svg>\n");
}

/// False for what has no place on a logarithmic axis.
bool Fits(const LinePlot& plot, double x, double y) {
  return (!plot.x_sizes || x > 0) && (!plot.log_y || y > 0);
}

std::string Curve(const LinePlot::Series& series, size_t number, const LinePlot& plot, const Scale& x_scale,
                  const Scale& y_scale) {
  std::string path, markers;
  for (const LinePlot::Point& point : series.points) {
    if (!Fits(plot, point.x, point.y)) continue;
    const double at_x = X(x_scale.Place(point.x)), at_y = Y(y_scale.Place(point.y));
    absl::StrAppend(&path, path.empty() ? "M" : "L", absl::StrFormat("%.1f %.1f", at_x, at_y));
    if (series.dashed) continue;
    std::string says = absl::StrCat(series.name, ": ", Short(point.y), " at ", ShortX(plot, point.x));
    if (point.spread.has_value()) {
      absl::StrAppend(&says, "; runs from ", Short(point.spread->least), " to ",
                      Short(point.spread->greatest));
      markers += SpreadLine(at_x, Y(y_scale.Place(point.spread->least)),
                            Y(y_scale.Place(point.spread->greatest)), ColorOf(number));
    }
    markers += Marker(number, at_x, at_y, says);
  }
  return absl::StrFormat("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n%s", path,
                         ColorOf(number), series.dashed ? " stroke-dasharray=\"6 5\"" : "", markers);
}

std::optional<size_t> NumberOf(const LinePlot& plot, const std::string& series) {
  for (size_t i = 0; i < plot.series.size(); ++i) {
    if (plot.series[i].name == series) return i;
  }
  return std::nullopt;
}

/// The paper's points, and their sources' entries in the legend.
std::string PaperPoints(const LinePlot& plot, const Scale& x_scale, const Scale& y_scale, Legend& legend) {
  std::string svg;
  std::vector<std::string> named;
  for (const LinePlot::PaperPoint& point : plot.paper) {
    const std::optional<size_t> number = NumberOf(plot, point.series);
    if (!number.has_value() || !Fits(plot, point.x.value_or(1), point.y)) continue;
    const std::string color = ColorOf(*number);
    std::string says = absl::StrCat("the paper, ", point.series, ": ", Short(point.y));
    const double y = Y(y_scale.Place(point.y));
    if (point.x.has_value()) {
      absl::StrAppend(&says, " at ", ShortX(plot, *point.x), " (", point.source, ")");
      svg += Cross(X(x_scale.Place(*point.x)), y, color, says);
    } else {
      absl::StrAppend(&says, " (", point.source, ")");
      absl::StrAppendFormat(&svg,
                            "<path d=\"M%.1f %.1fH%.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
                            "stroke-dasharray=\"1 4\"><title>%s</title></path>\n",
                            kLeft, y, kWidth - kRight, color, EscapedHtml(says));
    }
    if (std::find(named.begin(), named.end(), point.source) != named.end()) continue;
    named.push_back(point.source);
    legend.Add(absl::StrCat("the paper: ", point.source),
               [&](double x, double legend_y) { return Cross(x + 5, legend_y, "var(--ink)", point.source); });
  }
  return svg;
}

/// The values that a plot shows, of one axis.
struct Extent {
  double low = 1e300, high = -1e300;
  void Add(double value) { low = std::min(low, value), high = std::max(high, value); }
};

}  // namespace

std::optional<Spread> SpreadOf(const std::vector<double>& runs) {
  if (runs.size() < 2) return std::nullopt;
  const auto [least, greatest] = std::minmax_element(runs.begin(), runs.end());
  return Spread{*least, *greatest};
}

LinePlot PlotRows(const Json& rows, const PlottedColumns& columns) {
  LinePlot plot{.title = columns.title, .x_label = columns.x_label, .y_label = columns.y_label};
  for (const Json& row : rows) {
    if (!row.contains(columns.x) || !row.contains(columns.y)) continue;
    const std::string name = row.at(columns.series).get<std::string>();
    auto series = std::find_if(plot.series.begin(), plot.series.end(),
                               [&](const LinePlot::Series& each) { return each.name == name; });
    if (series == plot.series.end()) series = plot.series.insert(series, LinePlot::Series{.name = name});
    LinePlot::Point& point = series->points.emplace_back();
    point = {.x = row.at(columns.x).get<double>(), .y = row.at(columns.y).get<double>()};
    if (row.contains(columns.runs)) point.spread = SpreadOf(row.at(columns.runs).get<std::vector<double>>());
  }
  return plot;
}

std::string SvgOf(const LinePlot& plot) {
  NAM_CHECK(plot.series.size() <= kPlotSeriesMax, "more series than there are colours");
  Extent xs, ys;
  const auto add = [&](double x, double y) {
    if (Fits(plot, x, y)) xs.Add(x), ys.Add(y);
  };
  for (const LinePlot::Series& series : plot.series) {
    for (const LinePlot::Point& point : series.points) {
      add(point.x, point.y);
      if (point.spread.has_value()) add(point.x, point.spread->least), add(point.x, point.spread->greatest);
    }
  }
  if (xs.low > xs.high) add(1, 1), add(10, 10);
  for (const LinePlot::PaperPoint& point : plot.paper) {
    if (NumberOf(plot, point.series).has_value()) add(point.x.value_or(xs.high), point.y);
  }
  const Scale x_scale =
      plot.x_sizes ? Scale::Powers(xs.low, xs.high) : Scale::Linear(std::min(xs.low, 0.0), xs.high);
  const Scale y_scale = plot.log_y ? Scale::Log(ys.low, ys.high) : Scale::FromZero(ys.high);
  std::string svg = YAxis(y_scale, plot.y_label);
  for (const double tick : x_scale.ticks()) {
    const double x = X(x_scale.Place(tick));
    svg += Line(x, Y(0), x, Y(0) + 5, "axis") +
           Text(x, Y(0) + 18, "middle", plot.x_sizes ? ShortX(plot, tick) : Short(tick));
  }
  svg += Text(kLeft + kPlotWidth / 2, kHeight - 10, "middle", plot.x_label, kPlotWidth);
  for (size_t i = 0; i < plot.series.size(); ++i) svg += Curve(plot.series[i], i, plot, x_scale, y_scale);
  Legend legend = LegendOf(plot.series, false);
  svg += PaperPoints(plot, x_scale, y_scale, legend);
  return Picture(plot.title, legend, svg, 1);
}

std::string SvgOf(const BarPlot& plot) {
  NAM_CHECK(plot.series.size() <= kPlotSeriesMax, "more series than there are colours");
  double high = 0;
  for (const BarPlot::Series& series : plot.series) {
    for (const double value : series.values) high = std::max(high, value);
    for (const std::optional<Spread>& spread : series.spread)
      high = std::max(high, spread ? spread->greatest : 0);
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
      svg += Text(left + group * 0.4, Y(0) + 18 + kLabelRow * static_cast<double>(row), "middle", label[row],
                  group);
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
          EscapedHtml(absl::StrCat(plot.series[i].name, ", ", plot.categories[c], ": ", Short(value))));
      if (c >= plot.series[i].spread.size() || !plot.series[i].spread[c].has_value()) continue;
      const Spread& spread = *plot.series[i].spread[c];
      svg += SpreadLine(left + bar * (static_cast<double>(i) + 0.46), Y(scale.Place(spread.least)),
                        Y(scale.Place(spread.greatest)), "var(--ink)");
    }
  }
  return Picture(plot.title, LegendOf(plot.series, true), svg, label_rows);
}

}  // namespace nam
