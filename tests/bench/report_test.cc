#include "bench/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

namespace nam::bench {
namespace {

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ReportTest, ATableHasAColumnForEveryKey) {
  const auto table = TableOf({{{"operation", "read"}, {"bytes", 8}, {"p50_us", 1.25}},
                              {{"operation", "send"}, {"over_limit", 0.5}}});
  std::vector<std::string> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  EXPECT_EQ(names, (std::vector<std::string>{"operation", "bytes", "p50_us", "over_limit"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][2].ToString(), "1.250");
  EXPECT_TRUE(table.rows[0][3].null);
  EXPECT_TRUE(table.rows[1][1].null);
}

TEST(ReportTest, MedianOfOddAndEvenNumbersOfValues) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 7}), 6);
}

TEST(ReportTest, GeometricMean) {
  EXPECT_DOUBLE_EQ(*GeometricMean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(*GeometricMean({1, 10, 100}), 10);
  EXPECT_FALSE(GeometricMean({}).has_value());
  EXPECT_TRUE(std::isfinite(*GeometricMean({0, 1})));
}

TEST(ReportTest, NamesSettingsThatDiffer) {
  const Json older{{"scale_factor", 1}, {"fabric", "shm"}, {"repeat", 3}};
  EXPECT_EQ(DifferingSettings(older, {{"scale_factor", 1}, {"fabric", "shm"}, {"repeat", 7}}), "");
  EXPECT_EQ(DifferingSettings(older, {{"scale_factor", 10}, {"fabric", "shm"}}), "scale_factor (1, now 10)");
}

TEST(ReportTest, ComparesRowsOfTheSameSettings) {
  const ComparedFigures compared{.settings = {"operation", "bytes"}, .figures = {"rate"}};
  const Json older = {{"rows",
                       {{{"operation", "read"}, {"bytes", 8}, {"rate", 100}},
                        {{"operation", "read"}, {"bytes", 16}, {"rate", 0}}}}};
  Json rows = {{{"operation", "read"}, {"bytes", 8}, {"rate", 150}},
               {{"operation", "read"}, {"bytes", 16}, {"rate", 150}},
               {{"operation", "write"}, {"bytes", 8}, {"rate", 150}}};
  Json summary = Json::object();
  Compare(older, compared, rows, summary);
  EXPECT_EQ(summary["rate_new_over_old_geomean"], 1.5);
  EXPECT_EQ(rows[0]["rate_new_over_old"], 1.5);
  EXPECT_FALSE(rows[1].contains("rate_new_over_old")) << "nothing to divide by";
  EXPECT_FALSE(rows[2].contains("rate_new_over_old")) << "not in the older report";
}

TEST(ReportTest, ReadsItsOwnReportsOnly) {
  JsonReport report{.command = "bench fabric", .rows = {{{"bytes", 8}}}};
  const std::string path = WriteFile("report.json", report.ToString());
  const auto read = ReadReport(path, "bench fabric");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)["rows"][0]["bytes"], 8);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadReport(path, "bench prefetch").status()));
  EXPECT_TRUE(absl::IsNotFound(ReadReport("/nonexistent/report.json", "bench fabric").status()));
  for (const std::string text :
       {"", "{", "[]", "{\"command\": \"bench fabric\"}", "{\"rows\": []}",
        "{\"command\": \"bench fabric\", \"rows\": [1]}",
        "{\"command\": \"bench fabric\", \"config\": 7, \"rows\": []}", "{\"command\": 7, \"rows\": []}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadReport(WriteFile("no.json", text), "bench fabric").status()))
        << text;
  }
}

}  // namespace
}  // namespace nam::bench
