#include "terminal/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stack>
#include <string>

namespace nam {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Every tag is closed, in order; attributes are quoted.
void ExpectWellFormed(const std::string& svg) {
  static const std::regex tag(
      R"re(<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*="[^"<]*")*)\s*(/?)>|<)re");
  std::stack<std::string> open;
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    ASSERT_TRUE((*it)[2].matched) << "not a tag: " << svg.substr(static_cast<size_t>(it->position()), 80);
    if ((*it)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.top(), (*it)[2]);
      open.pop();
    } else if ((*it)[4] != "/") {
      open.push((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
}

int Count(const std::string& text, const std::string& piece) {
  int count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

LinePlot Lines(bool log_y) {
  return {.title = "a <title>",
          .x_label = "clients",
          .y_label = "per second",
          .series = {{.name = "one & two", .points = {{1, 10}, {2, 20'000}, {70, 1'800'000}}},
                     {.name = "other", .points = {{1, 5}, {70, 0}}},
                     {.name = "bound", .points = {{1, 10}, {70, 2e6}}, .dashed = true}},
          .log_y = log_y};
}

TEST(Plot, LinesAreWellFormedWithAxesLegendAndTitle) {
  for (const bool log_y : {false, true}) {
    const std::string svg = SvgOf(Lines(log_y));
    ExpectWellFormed(svg);
    EXPECT_THAT(svg, HasSubstr("a &lt;title&gt;"));
    EXPECT_THAT(svg, HasSubstr("one &amp; two"));
    EXPECT_THAT(svg, HasSubstr(">clients<"));
    EXPECT_THAT(svg, HasSubstr(">per second<"));
    EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
    EXPECT_THAT(svg, HasSubstr("one &amp; two: 1.8 M at 70 clients"));
    EXPECT_EQ(Count(svg, "<path "), 3);
    // On a logarithmic scale there is no place for 0.
    EXPECT_EQ(Count(svg, "other: 0 at"), log_y ? 0 : 1);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(Plot, WithoutPointsItIsEmptyAxes) {
  ExpectWellFormed(SvgOf(LinePlot{.title = "nothing", .series = {{.name = "none"}}}));
  ExpectWellFormed(SvgOf(BarPlot{.title = "nothing"}));
}

TEST(Plot, BarsStandByCategoryAndSeries) {
  const std::string svg = SvgOf(BarPlot{.title = "queries",
                                        .y_label = "ms",
                                        .categories = {"Q1.1", "Q1.2"},
                                        .series = {{"ours", {10, 20}}, {"theirs", {30}}}});
  ExpectWellFormed(svg);
  EXPECT_EQ(Count(svg, "<rect "), 3 + 2);  // with the legend's
  EXPECT_THAT(svg, HasSubstr("theirs, Q1.1: 30"));
}

/// The largest x that a text reaches, by the width that its characters may take.
double RightEnd(const std::string& svg) {
  static const std::regex text(R"re(<text x="([0-9.]+)"[^>]*text-anchor="start"[^>]*>([^<]*)<)re");
  double end = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), last; it != last; ++it) {
    end = std::max(end, std::stod((*it)[1]) + 6.5 * static_cast<double>((*it)[2].length()));
  }
  return end;
}

TEST(Plot, LongLegendsAndLabelsAreNotCutOff) {
  BarPlot plot{.title = "t", .categories = {"a label of many words that a narrow group cannot hold", "b"}};
  for (int i = 0; i < 8; ++i) plot.series.push_back({"shuffle, from memory servers", {1, 2}});
  const std::string svg = SvgOf(plot);
  ExpectWellFormed(svg);
  EXPECT_LE(RightEnd(svg), 760);
  // Three rows of the legend: the picture is higher by one.
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 760 416\""));
  EXPECT_THAT(svg, Not(HasSubstr("a label of many words that a narrow group cannot hold<")));
}

TEST(Plot, TheLegendShowsTheMarksThatTheCurveHas) {
  const std::string svg = SvgOf(Lines(false));
  // Two curves with a circle and a square at each point, and the same in the legend; a bound has no marks.
  EXPECT_EQ(Count(svg, "<circle "), 3 + 1);
  EXPECT_EQ(Count(svg, "<rect "), 2 + 1);
  EXPECT_EQ(Count(svg, "<polygon "), 0);
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 2);
}

TEST(Plot, RowsOfAReportBecomeALineForEachName) {
  const Json rows = {{{"way", "read"}, {"receivers", 1}, {"rate", 5.0}},
                     {{"way", "multicast"}, {"receivers", 1}, {"rate", 4.0}},
                     {{"way", "read"}, {"receivers", 2}, {"rate", 3.0}}};
  const LinePlot plot = PlotRows(rows, {.title = "t", .series = "way", .x = "receivers", .y = "rate"});
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(plot.series[0].name, "read");
  EXPECT_EQ(plot.series[0].points, (std::vector<LinePlot::Point>{{1, 5}, {2, 3}}));
}

TEST(Plot, TheSpreadOfRunsIsDrawn) {
  EXPECT_FALSE(SpreadOf({7}).has_value()) << "one run has none";
  EXPECT_EQ(SpreadOf({7, 3, 5}), (Spread{3, 7}));
  const Json rows = {{{"way", "read"}, {"n", 1}, {"rate", 5}, {"runs", {2, 5, 90}}},
                     {{"way", "read"}, {"n", 2}}};
  const LinePlot plot =
      PlotRows(rows, {.title = "t", .series = "way", .x = "n", .y = "rate", .runs = "runs"});
  ASSERT_EQ(plot.series[0].points.size(), 1u) << "a row without the column has no point";
  const std::string svg = SvgOf(plot);
  ExpectWellFormed(svg);
  EXPECT_EQ(Count(svg, "class=\"spread\""), 1);
  EXPECT_THAT(svg, HasSubstr("runs from 2 to 90"));
  EXPECT_THAT(svg, HasSubstr(">80<")) << "the axis reaches to the greatest run";
  const std::string bars = SvgOf(BarPlot{
      .title = "t", .categories = {"a", "b"}, .series = {{"ours", {1, 2}, {Spread{1, 30}, std::nullopt}}}});
  ExpectWellFormed(bars);
  EXPECT_EQ(Count(bars, "class=\"spread\""), 1);
  EXPECT_THAT(bars, HasSubstr(">30<"));
}

TEST(Plot, ThePapersPointsLieOverTheCurves) {
  LinePlot plot = Lines(false);
  plot.paper = {{"other", "a paper, figure 6", 100, 3e6},
                {"one & two", "a paper, figure 6", {}, 2.5e6},
                {"none", "another paper", 1, 1}};
  const std::string svg = SvgOf(plot);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("the paper, other: 3 M at 100 clients (a paper, figure 6)"));
  EXPECT_THAT(svg, HasSubstr("the paper, one &amp; two: 2.5 M (a paper, figure 6)"))
      << "a level, as it has no x";
  EXPECT_THAT(svg, HasSubstr(">the paper: a paper, figure 6<"));
  EXPECT_EQ(Count(svg, ">the paper: "), 1) << "a source is named once";
  EXPECT_THAT(svg, Not(HasSubstr("another paper"))) << "the series was not measured";
  EXPECT_THAT(svg, HasSubstr(">100<")) << "the axis reaches to the paper's point";
}

TEST(Plot, SizesAreEvenlySpacedByPowersOfTwo) {
  LinePlot plot{.title = "t",
                .x_label = "size",
                .series = {{.name = "read", .points = {{8, 1}, {2048, 2}, {1 << 20, 9}}}},
                .x_sizes = true};
  const std::string svg = SvgOf(plot);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr(">8 B<"));
  EXPECT_THAT(svg, HasSubstr(">512 B<"));
  EXPECT_THAT(svg, HasSubstr(">32 KiB<"));
  EXPECT_THAT(svg, HasSubstr("read: 2 at 2 KiB<"));
}

TEST(Plot, LongTitlesAndAxesAreNotCutOff) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += "a_long_word ";
  LinePlot plot = Lines(false);
  plot.title = plot.x_label = plot.y_label = words;
  plot.series[0].name = words;
  const std::string svg = SvgOf(plot);
  ExpectWellFormed(svg);
  EXPECT_GT(Count(svg, "class=\"title\""), 1) << "a title goes on in the next line";
  EXPECT_EQ(Count(svg, "textLength="), 3) << "the axes' labels and the legend's are narrowed";
  BarPlot bars{
      .title = "t", .categories = std::vector<std::string>(20, "unbreakable_words"), .series = {{"a", {1}}}};
  EXPECT_EQ(Count(SvgOf(bars), "textLength="), 20);
}

TEST(Plot, APageNeedsNothingElse) {
  const PlotPage page{.title = "t",
                      .text = "x < y",
                      .figures = {SvgOf(Lines(false))},
                      .rows = {{{"a", 1}, {"rounds", {1, 2}}}}};
  const std::string html = HtmlOf(page);
  EXPECT_THAT(html, Not(HasSubstr("rounds"))) << "an array is no cell";
  EXPECT_THAT(html, Not(HasSubstr("<dt>seed"))) << "nothing was drawn from one";
  for (const char* origin : {"date", "program", "command", "host"})
    EXPECT_THAT(html, HasSubstr(std::string("<dt>") + origin + "</dt><dd>"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("href")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, HasSubstr("x &lt; y"));
  EXPECT_THAT(html, HasSubstr("<td>1</td>"));
  EXPECT_FALSE(WritePage("/no/such/folder/page.html", page).ok());
}

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Plot, APageIsWrittenInOneStepOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "pages";
  std::filesystem::create_directories(folder / "inner");
  const std::string path = folder / "page.html";
  EXPECT_TRUE(CheckHtmlPath(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path)) << "asking leaves nothing";
  ASSERT_TRUE(WriteHtml(path, "one").ok());
  EXPECT_TRUE(CheckHtmlPath(path).ok());
  EXPECT_EQ(Contents(path), "one") << "asking changes nothing";
  // A reader with the old page open keeps it whole.
  std::ifstream old(path);
  ASSERT_TRUE(WriteHtml(path, "another, longer one").ok());
  EXPECT_EQ(Contents(path), "another, longer one");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "one");
  // A link stays one.
  std::filesystem::create_symlink(path, folder / "link.html");
  ASSERT_TRUE(WriteHtml(folder / "link.html", "through a link").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.html"));
  EXPECT_EQ(Contents(path), "through a link");
  for (const std::string& bad : {(folder / "inner").string(), (folder / "none" / "page.html").string(),
                                 std::string("/dev/null"), std::string("/proc/page.html"), std::string()}) {
    EXPECT_FALSE(CheckHtmlPath(bad).ok()) << bad;
    EXPECT_FALSE(WriteHtml(bad, "text").ok()) << bad;
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += !entry.is_directory();
  EXPECT_EQ(files, 2u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nam
