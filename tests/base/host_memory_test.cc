#include "base/host_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace nam {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    root_ = testing::TempDir() + "host-XXXXXX";
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    Write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n");
  }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Group(const std::string& folder, const char* limit_file, uint64_t limit, const char* usage_file,
             uint64_t usage) {
    Write(folder + "/" + limit_file, std::to_string(limit) + "\n");
    Write(folder + "/" + usage_file, std::to_string(usage) + "\n");
  }
  std::vector<MemoryLimit> Read() const { return ReadMemoryLimits(root_ + "/proc", root_ + "/sys"); }
  std::string root_;
};

TEST_F(HostMemoryTest, TheHostAlone) {
  const auto limits = Read();
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].name, kHostMemory);
  EXPECT_EQ(limits[0].limit_bytes, 16 * kGiB);
  EXPECT_EQ(limits[0].available_bytes, 8 * kGiB);
}

TEST_F(HostMemoryTest, NothingIsNoLimit) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_TRUE(Read().empty());
  EXPECT_EQ(LeastAvailable(Read()).available_bytes, UINT64_MAX);
}

TEST_F(HostMemoryTest, GroupsOfVersion1) {
  Write("proc/self/cgroup", "5:devices:/box\n4:memory:/box/one\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  Group("sys/fs/cgroup/memory/box", "memory.limit_in_bytes", 4 * kGiB, "memory.usage_in_bytes", 3 * kGiB);
  Group("sys/fs/cgroup/memory/box/one", "memory.limit_in_bytes", 2 * kGiB, "memory.usage_in_bytes", kGiB / 2);
  const MemoryLimit tightest = TightestLimit(Read()), least = LeastAvailable(Read());
  EXPECT_EQ(tightest.name, "control group /box/one (memory.limit_in_bytes)");
  EXPECT_EQ(tightest.limit_bytes, 2 * kGiB);
  EXPECT_EQ(least.name, "control group /box (memory.limit_in_bytes)");
  EXPECT_EQ(least.available_bytes, kGiB);
  // Unused file pages count as free.
  Write("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 2147483648\n");
  EXPECT_EQ(LeastAvailable(Read()).available_bytes, kGiB + kGiB / 2);
}

TEST_F(HostMemoryTest, GroupsOfVersion2) {
  Write("proc/self/cgroup", "0::/user.slice/nam.scope\n");
  Write("sys/fs/cgroup/user.slice/nam.scope/memory.max", "max\n");
  Group("sys/fs/cgroup/user.slice", "memory.max", 3 * kGiB, "memory.current", 2 * kGiB);
  Write("sys/fs/cgroup/user.slice/memory.stat", "anon 5\ninactive_file 1073741824\n");
  const MemoryLimit least = LeastAvailable(Read());
  EXPECT_EQ(least.name, "control group /user.slice (memory.max)");
  EXPECT_EQ(least.available_bytes, 2 * kGiB);
}

TEST_F(HostMemoryTest, AGroupThatUsesMoreThanItMayHasNothingLeft) {
  Write("proc/self/cgroup", "4:cpu,memory:/\n");
  Group("sys/fs/cgroup/cpu,memory", "memory.limit_in_bytes", kGiB, "memory.usage_in_bytes", 2 * kGiB);
  EXPECT_EQ(LeastAvailable(Read()).available_bytes, 0u);
}

}  // namespace
}  // namespace nam
