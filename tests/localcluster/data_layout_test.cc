#include "localcluster/data_layout.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"
#include "localcluster/state_directory.h"

namespace nam {
namespace {

class DataLayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/ada", 1);
  }
};

TEST_F(DataLayoutTest, DataOfTheDefaultClusterOutliveTheHost) {
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), "/home/ada/.local/share/nam");
  setenv("XDG_DATA_HOME", "/srv/share", 1);
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), "/srv/share/nam");
  setenv("XDG_DATA_HOME", "share", 1);  // relative paths are ignored, as the specification says
  EXPECT_EQ(DataDirectoryOf(DefaultStateDirectory(), ""), "/home/ada/.local/share/nam");
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
  const std::string above = testing::TempDir() + "/share";
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
