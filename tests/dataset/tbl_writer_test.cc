#include "dataset/tbl_writer.h"

#include <sys/resource.h>

#include <csignal>

#include "gtest/gtest.h"
#include "ssb/generator.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/dataset/rows.h"

/// Over SSB's tables: there are some of two file names, and keys that are dates.
namespace nam::dataset {
namespace {

constexpr std::array<size_t, 5> kEvery = {0, 1, 2, 3, 4};

TEST(TblWriterTest, WritesDbgensFormatInOrderForAnyNumberOfThreads) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.002});
  for (int threads : {1, 2, 6}) {
    const TestDirectory directory;
    const auto written = WriteTbl(fabric, generator, kEvery, directory.path() + "/new/dir",
                                  {.work = {.threads = threads, .batch_rows = 64}});
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    ASSERT_EQ(written->size(), 5u);
    for (const WrittenTable& table : *written) {
      const std::string name = "new/dir/" + ssb::Tables()[table.table].schema.name + ".tbl";
      const std::string expected = GeneratedText(generator, table.table);
      EXPECT_TRUE(directory.Read(name) == expected) << name << " by " << threads;
      EXPECT_EQ(table.path, directory.path() + "/" + name);
      EXPECT_EQ(table.rows, generator.Rows(table.table));
      EXPECT_EQ(table.bytes, expected.size());
    }
  }
}

TEST(TblWriterTest, ALine) {
  const std::string text = GeneratedText(ssb::Generator({.scale_factor = 0.001}), ssb::kDate);
  EXPECT_EQ(Lines(text)[0],
            "19920101|January 1, 1992|Wednesday|January|1992|199201|Jan1992|4|1|1|1|1|Winter|0|0|1|1|");
  EXPECT_EQ(text.back(), '\n');
}

TEST(TblWriterTest, KeepsFilesUnlessAskedToReplaceThem) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.001});
  const TestDirectory directory;
  directory.Write("part.tbl", "mine");
  const std::array<size_t, 2> tables = {ssb::kCustomer, ssb::kPart};
  const auto refused = WriteTbl(fabric, generator, tables, directory.path(), {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(directory.Names(), std::vector<std::string>{"part.tbl"});
  EXPECT_EQ(directory.Read("part.tbl"), "mine");
  ASSERT_TRUE(WriteTbl(fabric, generator, tables, directory.path(), {.replace = true}).ok());
  EXPECT_EQ(directory.Read("part.tbl"), GeneratedText(generator, ssb::kPart));
}

TEST(TblWriterTest, NothingIsLeftWhenCancelled) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.01});
  const TestDirectory directory;
  directory.Write("lineorder.tbl", "old");
  std::atomic<bool> cancelled = false;
  WorkOptions work{.threads = 3, .batch_rows = 500, .progress_interval_us = 0, .cancelled = &cancelled};
  work.progress = [&](const Progress& progress) { cancelled = progress.table == "lineorder"; };
  const auto written = WriteTbl(fabric, generator, kEvery, directory.path(), {.work = work, .replace = true});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(directory.Names(), std::vector<std::string>{"lineorder.tbl"});
  EXPECT_EQ(directory.Read("lineorder.tbl"), "old");
}

// A full disk in small: the process may not make files longer than 100 KB.
TEST(TblWriterTest, NothingIsLeftWhenTheDiskIsFull) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.01});
  const TestDirectory directory;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto written =
      WriteTbl(fabric, generator, kEvery, directory.path(), {.work = {.threads = 3, .batch_rows = 500}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(written.status().code(), absl::StatusCode::kResourceExhausted) << written.status().ToString();
  EXPECT_NE(written.status().message().find(directory.path() + "/part.tbl"), absl::string_view::npos)
      << written.status().ToString();
  EXPECT_TRUE(directory.Names().empty());
}

TEST(TblWriterTest, ADirectoryThatCannotBe) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.001});
  const TestDirectory directory;
  directory.Write("file", "x");
  const auto written = WriteTbl(fabric, generator, kEvery, directory.path() + "/file/below", {});
  EXPECT_FALSE(written.ok());
  EXPECT_NE(written.status().message().find("file/below"), absl::string_view::npos)
      << written.status().ToString();
}

}  // namespace
}  // namespace nam::dataset
