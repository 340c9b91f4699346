#include "localcluster/data_layout.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "localcluster/state_directory.h"

namespace nam {
namespace {

/// As the layout writes paths: without a doubled slash.
std::string Temporary(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / name).lexically_normal().string();
}

class DataLayoutTest : public testing::Test {
 protected:
  const std::string home_ = Temporary("home");
  const std::string share_ = home_ + "/.local/share/nam";

  void SetUp() override {
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", home_.c_str(), 1);
    std::filesystem::create_directories(home_);
  }
};

TEST_F(DataLayoutTest, DataOfTheDefaultClusterOutliveTheHost) {
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), share_);
  setenv("XDG_DATA_HOME", "/srv/share", 1);
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), "/srv/share/nam");
  setenv("XDG_DATA_HOME", "share", 1);  // relative paths are ignored, as the specification says
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), share_);
}

TEST_F(DataLayoutTest, DataOfFormerVersionsStay) {
  const std::string runtime = Temporary("runtime");
  std::filesystem::create_directories(runtime + "/nam/data");
  setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
  std::ofstream(StoreIn(runtime + "/nam/data")) << "a store";
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), runtime + "/nam/data");
  std::filesystem::create_directories(share_);
  std::ofstream(StoreIn(share_)) << "another";
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), share_);
  unsetenv("XDG_RUNTIME_DIR");
  std::filesystem::remove_all(home_);
}

TEST_F(DataLayoutTest, DataOfAnotherClusterAreInItsDirectory) {
  EXPECT_EQ(DataDirectoryOf("/srv/cluster", ""), "/srv/cluster/data");
  unsetenv("HOME");
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), DefaultStateDirectory() + "/data");
}

TEST_F(DataLayoutTest, AnOptionOverrulesBoth) {
  for (const std::string& state : {DefaultStateDirectory(), std::string("/srv/cluster")}) {
    EXPECT_EQ(DataDirectoryOf(state, "/disk/nam"), "/disk/nam");
    EXPECT_EQ(DataDirectoryOf(state, kNoDataDirectory), "");
  }
}

TEST_F(DataLayoutTest, ParentsAreMadeAndClosed) {
  const std::string above = Temporary("share");
  const absl::Status made = MakeDataDirectory(above + "/of/nam");
  ASSERT_TRUE(made.ok()) << made;
  for (const std::string& path : {above, above + "/of", above + "/of/nam"}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0700) << path;
  }
  EXPECT_EQ(MakeDataDirectory("/proc/no/nam").code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(above);
}

}  // namespace
}  // namespace nam
