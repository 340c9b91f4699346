#include "csv/byte_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "base/interruption.h"
#include "base/unique_fd.h"
#include "csv/byte_source.h"
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

TEST_F(ByteSinkTest, ALinkWithoutAFileGetsOne) {
  const std::string folder = folder_.File("folder"), shortcut = folder_.File("link.csv");
  ASSERT_EQ(symlink("folder/second.csv", shortcut.c_str()), 0);
  EXPECT_EQ(SqlErrorOf(CreateFile(shortcut).status())->sqlstate, "58P01");
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  ASSERT_EQ(symlink("../third.csv", (folder + "/second.csv").c_str()), 0);
  const auto sink = CreateFile(shortcut);
  ASSERT_TRUE(sink.ok() && (*sink)->Write("new").ok() && (*sink)->Finish().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(shortcut));
  EXPECT_EQ(TextOf(folder_.File("third.csv")), "new");
  ASSERT_EQ(symlink("round.csv", folder_.File("round.csv").c_str()), 0);
  EXPECT_EQ(SqlErrorOf(CreateFile(folder_.File("round.csv")).status())->sqlstate, "58030");
}

TEST_F(ByteSinkTest, AFileOfSeveralNamesKeepsThem) {
  const std::string path = folder_.File("a.csv"), other = folder_.File("b.csv");
  std::ofstream(path) << "a longer text";
  ASSERT_EQ(link(path.c_str(), other.c_str()), 0);
  ASSERT_TRUE(CreateFile(path).ok());
  EXPECT_EQ(TextOf(other), "a longer text") << "nothing was written";
  const auto sink = CreateFile(path);
  ASSERT_TRUE(sink.ok() && (*sink)->Write("ne").ok() && (*sink)->Write("w").ok() && (*sink)->Finish().ok());
  EXPECT_EQ(TextOf(path), "new");
  EXPECT_EQ(TextOf(other), "new");
  const auto empty = CreateFile(path);
  ASSERT_TRUE(empty.ok() && (*empty)->Finish().ok());
  EXPECT_EQ(TextOf(other), "");
}

/// As /dev/stdout names one.
TEST_F(ByteSinkTest, ADescriptorIsWrittenToFromWhereItIs) {
  const std::string path = folder_.File("out.txt"), shortcut = folder_.File("descriptor");
  const UniqueFd out(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(out.get(), "before\n", 7), 7);
  ASSERT_EQ(symlink(("/dev/fd/" + std::to_string(out.get())).c_str(), shortcut.c_str()), 0);
  const auto sink = CreateFile(shortcut);
  ASSERT_TRUE(sink.ok() && (*sink)->Write("rows\n").ok() && (*sink)->Finish().ok());
  ASSERT_EQ(write(out.get(), "behind\n", 7), 7);
  EXPECT_EQ(TextOf(path), "before\nrows\nbehind\n");
}

TEST_F(ByteSinkTest, ANameMayBeAsLongAsTheSystemTakes) {
  const std::string path = folder_.File(std::string(251, 'x') + ".csv");
  const auto sink = CreateFile(path);
  ASSERT_TRUE(sink.ok()) << sink.status();
  ASSERT_TRUE((*sink)->Write("new").ok() && (*sink)->Finish().ok());
  EXPECT_EQ(TextOf(path), "new");
  EXPECT_EQ(SqlErrorOf(CreateFile(folder_.File(std::string(256, 'x'))).status())->sqlstate, "58030")
      << "before any row is made";
}

class PipeTest : public ByteSinkTest {
 protected:
  void SetUp() override {
    alarm(kLongS);  // ends what waits for ever
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  void TearDown() override { alarm(0); }
  /// Runs `waits`, which is cancelled once `when` holds.
  template <typename Waits>
  absl::Status Cancelled(const std::function<bool()>& when, Waits waits) {
    std::atomic<bool> cancelled = false;
    std::thread canceller([&] {
      while (!when()) std::this_thread::yield();
      cancelled = true;
    });
    const Interruption interruption(&cancelled);
    const absl::Status status = waits();
    canceller.join();
    return status;
  }
  static int BytesIn(const UniqueFd& pipe) {
    int bytes = 0;
    EXPECT_EQ(ioctl(pipe.get(), FIONREAD, &bytes), 0);
    return bytes;
  }
  UniqueFd Reader() const { return UniqueFd(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); }

  static constexpr unsigned kLongS = 60;
  const std::string path_ = folder_.File("pipe");
};

TEST_F(PipeTest, AWaitForAReaderIsCancelled) {
  const absl::Status status = Cancelled([] { return true; }, [this] { return CreateFile(path_).status(); });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(PipeTest, AReaderThatStandsStillIsNotWaitedForAfterACancel) {
  const UniqueFd reader = Reader();
  const int capacity = fcntl(reader.get(), F_GETPIPE_SZ);
  const auto sink = CreateFile(path_);
  ASSERT_TRUE(sink.ok()) << sink.status();
  const absl::Status status = Cancelled([&] { return BytesIn(reader) == capacity; },
                                        [&] { return (*sink)->Write(std::string(1 << 20, 'x')); });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(PipeTest, AWriterThatStandsStillIsNotWaitedForAfterACancel) {
  const auto source = OpenFile(path_);
  ASSERT_TRUE(source.ok()) << source.status();
  char byte = 0;
  const auto read = [&] { return (*source)->Read(&byte, 1).status(); };
  EXPECT_TRUE(absl::IsCancelled(Cancelled([] { return true; }, read))) << "nothing writes";
  const UniqueFd writer(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  EXPECT_TRUE(read().ok());
  EXPECT_TRUE(absl::IsCancelled(Cancelled([] { return true; }, read)));
}

TEST_F(PipeTest, WhatGoesThroughAPipeComesOut) {
  std::string all;
  std::thread reader([&] { all = TextOf(path_); });
  const std::string text(1'000'000, 'x');
  {
    const auto sink = CreateFile(path_);
    EXPECT_TRUE(sink.ok() && (*sink)->Write(text).ok() && (*sink)->Write("y").ok() && (*sink)->Finish().ok());
  }
  reader.join();
  EXPECT_TRUE(all == text + "y");
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
