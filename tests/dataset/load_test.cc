#include "dataset/load.h"

#include <set>

#include "gtest/gtest.h"
#include "ssb/generator.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/dataset/rows.h"

/// Over SSB's tables: there are some of two file names, and keys that are dates.
namespace nam::dataset {
namespace {

TEST(LoadTest, EveryThreadCountAndBatchSizeGivesTheSameRows) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.002});
  for (size_t table : ssb::kAllTables) {
    const std::vector<std::string> expected = Sorted(Lines(GeneratedText(generator, table)));
    for (int threads : {1, 2, 5}) {
      for (uint32_t batch_rows : {1u, 100u, 32'768u}) {
        if (batch_rows == 1 && threads != 2) continue;
        Collected collected(ssb::Tables()[table]);
        const auto rows = LoadGenerated(fabric, generator, table, collected.sink(),
                                        {.threads = threads, .batch_rows = batch_rows});
        ASSERT_TRUE(rows.ok()) << rows.status().ToString();
        EXPECT_EQ(*rows, generator.Rows(table));
        ASSERT_EQ(collected.sorted(), expected)
            << ssb::Tables()[table].schema.name << " " << threads << " " << batch_rows;
      }
    }
  }
}

TEST(LoadTest, TheFirstErrorStopsEverything) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.1});
  std::atomic<int> calls = 0;
  const Sink sink = [&](const partitioner::ColumnBatch&) {
    return ++calls < 3 ? absl::OkStatus() : absl::ResourceExhaustedError("memory servers are full");
  };
  const auto rows =
      LoadGenerated(fabric, generator, ssb::kLineorder, sink, {.threads = 3, .batch_rows = 400});
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(rows.status().message(), "memory servers are full");
  EXPECT_LE(calls, 5);  // the third call, and work that the two other threads had begun
}

TEST(LoadTest, Cancelled) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.1});
  std::atomic<bool> cancelled = false;
  std::atomic<int> calls = 0;
  const Sink sink = [&](const partitioner::ColumnBatch&) {
    if (++calls == 4) cancelled = true;
    return absl::OkStatus();
  };
  const auto rows = LoadGenerated(fabric, generator, ssb::kLineorder, sink,
                                  {.threads = 2, .batch_rows = 400, .cancelled = &cancelled});
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
  EXPECT_LE(calls, 5);
}

TEST(LoadTest, CancelledBeforeItStarts) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.01});
  const std::atomic<bool> cancelled = true;
  Collected collected(ssb::Tables()[ssb::kPart]);
  const auto rows =
      LoadGenerated(fabric, generator, ssb::kPart, collected.sink(), {.threads = 2, .cancelled = &cancelled});
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(collected.batches(), 0);
}

TEST(LoadTest, ProgressIsReportedAndEndsAtAllRows) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.01});
  std::vector<Progress> reports;  // calls never overlap
  WorkOptions options{.threads = 3, .batch_rows = 1000, .progress_interval_us = 0};
  options.progress = [&](const Progress& progress) { reports.push_back(progress); };
  Collected collected(ssb::Tables()[ssb::kLineorder]);
  ASSERT_TRUE(LoadGenerated(fabric, generator, ssb::kLineorder, collected.sink(), options).ok());
  ASSERT_GE(reports.size(), 2u);
  uint64_t previous = 0;
  for (const Progress& report : reports) {
    EXPECT_EQ(report.table, "lineorder");
    EXPECT_GE(report.rows_done, previous);
    EXPECT_LE(report.rows_done, report.rows_expected);
    EXPECT_EQ(report.rows_expected, 60'175u);
    EXPECT_GE(report.seconds_left, 0);
    EXPECT_EQ(report.finished, &report == &reports.back());
    previous = report.rows_done;
  }
  EXPECT_EQ(reports.back().rows_done, 60'175u);
  EXPECT_GT(reports.back().rows_per_second, 0);
}

TEST(LoadTest, ProgressIsThrottled) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.01});
  int reports = 0;
  WorkOptions options{.threads = 2, .batch_rows = 100, .progress_interval_us = 3'600'000'000};
  options.progress = [&](const Progress&) { ++reports; };
  Collected collected(ssb::Tables()[ssb::kLineorder]);
  ASSERT_TRUE(LoadGenerated(fabric, generator, ssb::kLineorder, collected.sink(), options).ok());
  EXPECT_EQ(reports, 1);  // the last one
}

TEST(LoadTest, OptionsAreChecked) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.001});
  Collected collected(ssb::Tables()[ssb::kDate]);
  for (const WorkOptions& bad : {WorkOptions{.threads = 0}, WorkOptions{.threads = 1 << 20},
                                 WorkOptions{.batch_rows = 0}, WorkOptions{.read_bytes = 0}}) {
    const auto rows = LoadGenerated(fabric, generator, ssb::kDate, collected.sink(), bad);
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LoadTest, FromFiles) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.001});
  const TestDirectory directory;
  directory.Write("supplier.tbl", GeneratedText(generator, ssb::kSupplier));
  Collected collected(ssb::Tables()[ssb::kSupplier]);
  const auto rows = LoadTbl(fabric, directory.path(), ssb::Tables()[ssb::kSupplier], collected.sink(), {});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(*rows, 2u);
  EXPECT_EQ(
      LoadTbl(fabric, directory.path(), ssb::Tables()[ssb::kPart], collected.sink(), {}).status().code(),
      absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace nam::dataset
