#include "csv/byte_sink.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "csv/inflated_source.h"
#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

class ByteSinkTest : public ::testing::Test {
 protected:
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t Files() const {
    const std::filesystem::path path(folder_.File(""));
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  const TempFolder folder_;
};

TEST_F(ByteSinkTest, AFileIsThereOnceItIsFinished) {
  const std::string path = folder_.File("a.csv");
  std::ofstream(path) << "old";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  {
    const auto sink = CreateFile(path);
    ASSERT_TRUE(sink.ok()) << sink.status();
    EXPECT_TRUE((*sink)->Write("new").ok());
    EXPECT_EQ(TextOf(path), "old");
  }
  EXPECT_EQ(TextOf(path), "old");
  EXPECT_EQ(Files(), 1u) << "what was begun is removed";
  const auto sink = CreateFile(path);
  EXPECT_TRUE((*sink)->Write("ne").ok() && (*sink)->Write("w").ok() && (*sink)->Finish().ok());
  EXPECT_EQ(TextOf(path), "new");
  EXPECT_EQ(Files(), 1u);
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(ByteSinkTest, TheFileBehindALinkIsReplaced) {
  const std::string path = folder_.File("a.csv"), shortcut = folder_.File("link.csv");
  std::ofstream(path) << "old";
  ASSERT_EQ(symlink(path.c_str(), shortcut.c_str()), 0);
  const auto sink = CreateFile(shortcut);
  ASSERT_TRUE(sink.ok() && (*sink)->Write("new").ok() && (*sink)->Finish().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(shortcut));
  EXPECT_EQ(TextOf(path), "new");
}

TEST_F(ByteSinkTest, ADeviceIsWrittenTo) {
  const auto sink = CreateFile("/dev/null");
  ASSERT_TRUE(sink.ok() && (*sink)->Write("x").ok() && (*sink)->Finish().ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const auto full = CreateFile("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(SqlErrorOf((*full)->Write("x"))->sqlstate, "53100");
}

TEST_F(ByteSinkTest, ErrorsSayWhy) {
  EXPECT_EQ(SqlErrorOf(CreateFile("/nowhere/a.csv").status())->sqlstate, "58P01");
  EXPECT_EQ(SqlErrorOf(CreateFile("/tmp").status())->sqlstate, "42809");
  EXPECT_EQ(SqlErrorOf(CreateFile("/dev/null/a.csv").status())->sqlstate, "58P01");
}

TEST_F(ByteSinkTest, WhatIsCompressedIsReadBack) {
  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    for (const size_t writes : {0, 1, 7}) {
      const std::string path = folder_.File("a.bin");
      std::mt19937_64 random(writes);
      std::string all;
      auto sink = Deflate(*CreateFile(path), compression);
      for (size_t n = 0; n < writes; ++n) {
        std::string part(random() % 700'000, ' ');
        for (char& c : part) c = static_cast<char>(random() % 256);
        ASSERT_TRUE(sink->Write(part).ok());
        all += part;
      }
      ASSERT_TRUE(sink->Finish().ok());
      const auto source = Inflate(*OpenFile(path), compression);
      std::string read, buffer(100'000, ' ');
      while (true) {
        const absl::StatusOr<size_t> n = source->Read(buffer.data(), buffer.size());
        ASSERT_TRUE(n.ok()) << n.status();
        if (*n == 0) break;
        read.append(buffer, 0, *n);
      }
      EXPECT_EQ(read.size(), all.size());
      EXPECT_TRUE(read == all);
    }
  }
}

}  // namespace
}  // namespace nam::csv
