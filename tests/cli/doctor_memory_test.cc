#include "cli/doctor_memory.h"

#include <gtest/gtest.h>

#include "tests/cli/host_tree.h"

namespace nam::cli {
namespace {

class DoctorMemory : public testing::Test {
 protected:
  FakeHost host_;
};

TEST_F(DoctorMemory, AvailableOfTheHost) {
  EXPECT_EQ(CheckAvailableMemory(host_.tree(), 8 * kGiB).state, FindingState::kOk);
  EXPECT_EQ(CheckAvailableMemory(host_.tree(), 8 * kGiB + 1).state, FindingState::kMissing);
  host_.Remove("proc/meminfo");
  EXPECT_EQ(CheckAvailableMemory(host_.tree(), 1).state, FindingState::kWarning);
}

TEST_F(DoctorMemory, ControlGroupOfVersion2) {
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB).found, "no limit");
  host_.Write("sys/fs/cgroup/user.slice/nam.scope/memory.max", "max\n");
  host_.Write("sys/fs/cgroup/user.slice/nam.scope/memory.current", "4096\n");
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB).found, "no limit");
  // A limit anywhere on the way counts.
  host_.Write("sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
  host_.Write("sys/fs/cgroup/user.slice/memory.current", "1073741824\n");
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB).state, FindingState::kOk);
  const Finding tight = CheckControlGroup(host_.tree(), kGiB + 1);
  EXPECT_EQ(tight.state, FindingState::kMissing);
  EXPECT_EQ(tight.found, "1 GiB left");
  EXPECT_NE(tight.remedy.find("/user.slice (memory.max)"), std::string::npos) << tight.remedy;
}

TEST_F(DoctorMemory, ControlGroupOfVersion1) {
  host_.Write("proc/self/cgroup", "5:devices:/box\n4:memory:/box/one\n0::/\n");
  host_.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB).found, "no limit");
  host_.Write("sys/fs/cgroup/memory/box/one/memory.limit_in_bytes", "536870912\n");
  host_.Write("sys/fs/cgroup/memory/box/one/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB).state, FindingState::kMissing);
  EXPECT_EQ(CheckControlGroup(host_.tree(), kGiB / 2).state, FindingState::kOk);
}

TEST_F(DoctorMemory, LockedMemoryForPinning) {
  EXPECT_EQ(CheckLockedMemory(host_.tree(), kGiB).state, FindingState::kOk);
  host_.Limits("1024", "8388608", "unlimited");
  const Finding little = CheckLockedMemory(host_.tree(), kGiB);
  EXPECT_EQ(little.state, FindingState::kMissing);
  EXPECT_EQ(little.found, "8 MiB");
  EXPECT_TRUE(little.remedy.starts_with("ulimit -l unlimited"));
  EXPECT_EQ(little.fabrics, std::vector{fabric::Kind::kVerbs});
  EXPECT_EQ(CheckLockedMemory(host_.tree(), 8 << 20).state, FindingState::kOk);
  host_.Write("proc/self/status", "CapEff:\t0000000000004000\n");  // CAP_IPC_LOCK
  EXPECT_EQ(CheckLockedMemory(host_.tree(), kGiB).state, FindingState::kOk);
}

TEST_F(DoctorMemory, HugePagesForAllOfIt) {
  EXPECT_EQ(CheckHugePages(host_.tree(), 2 * kGiB).state, FindingState::kOk);
  // Memory that other processes hold has to stay reserved for them.
  host_.Meminfo(8 << 20, 100, 60);
  const Finding few = CheckHugePages(host_.tree(), kGiB);
  EXPECT_EQ(few.state, FindingState::kWarning);
  EXPECT_EQ(few.found, "60 free of 100");
  EXPECT_EQ(few.needed, "512 of 2 MiB");
  EXPECT_EQ(few.remedy, "sysctl -w vm.nr_hugepages=552");
  host_.Remove("proc/meminfo");
  EXPECT_EQ(CheckHugePages(host_.tree(), kGiB).state, FindingState::kWarning);
}

TEST_F(DoctorMemory, TransparentHugePages) {
  EXPECT_EQ(CheckTransparentHugePages(host_.tree()).state, FindingState::kOk);
  EXPECT_EQ(CheckSharedHugePages(host_.tree()).state, FindingState::kOk);
  host_.Write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  host_.Write("sys/kernel/mm/transparent_hugepage/shmem_enabled",
              "always within_size advise [never] deny force\n");
  EXPECT_EQ(CheckTransparentHugePages(host_.tree()).found, "never");
  EXPECT_EQ(CheckTransparentHugePages(host_.tree()).state, FindingState::kWarning);
  EXPECT_EQ(CheckSharedHugePages(host_.tree()).state, FindingState::kWarning);
  host_.Remove("sys/kernel");
  EXPECT_EQ(CheckTransparentHugePages(host_.tree()).found, "not there");
}

TEST_F(DoctorMemory, FilesMayHoldARegion) {
  EXPECT_EQ(CheckFileSize(host_.tree()).state, FindingState::kOk);
  host_.Limits("1024", "0", "67108863");
  EXPECT_EQ(CheckFileSize(host_.tree()).state, FindingState::kMissing);
  EXPECT_EQ(CheckFileSize(host_.tree()).remedy, "ulimit -f unlimited");
}

TEST_F(DoctorMemory, SharedMemory) {
  EXPECT_EQ(CheckMemfd(absl::OkStatus()).state, FindingState::kOk);
  const Finding refused = CheckMemfd(absl::UnavailableError("memfd_create: Operation not permitted"));
  EXPECT_EQ(refused.state, FindingState::kMissing);
  EXPECT_EQ(refused.found, "memfd_create: Operation not permitted");
  EXPECT_EQ(CheckSharedMemorySize(64 << 20).found, "64 MiB");
  EXPECT_EQ(CheckSharedMemorySize(std::nullopt).state, FindingState::kOk) << "nothing needs /dev/shm";
}

}  // namespace
}  // namespace nam::cli
