#include "cli/doctor_host.h"

#include <gtest/gtest.h>
#include <linux/membarrier.h>

#include "tests/cli/host_tree.h"

namespace nam::cli {
namespace {

class DoctorHost : public testing::Test {
 protected:
  FakeHost host_;
};

TEST_F(DoctorHost, KernelByItsAge) {
  EXPECT_EQ(CheckKernel(host_.tree()).state, FindingState::kOk);
  host_.Write("proc/sys/kernel/osrelease", "5.10.0-8-amd64\n");
  const Finding old = CheckKernel(host_.tree());
  EXPECT_EQ(old.state, FindingState::kWarning);
  EXPECT_EQ(old.found, "5.10.0-8-amd64");
  EXPECT_NE(old.remedy, "");
  host_.Write("proc/sys/kernel/osrelease", "5.2.21\n");
  EXPECT_EQ(CheckKernel(host_.tree()).state, FindingState::kMissing);
  host_.Remove("proc/sys");
  EXPECT_EQ(CheckKernel(host_.tree()).found, "unknown");
}

TEST_F(DoctorHost, ProcessorsThatMayBeUsed) {
  EXPECT_EQ(CheckProcessors(host_.tree()).found, "5");
  EXPECT_EQ(CheckProcessors(host_.tree()).state, FindingState::kOk);
  host_.Write("proc/self/status", "Cpus_allowed_list:\t2\n");
  EXPECT_EQ(CheckProcessors(host_.tree()).found, "1");
  EXPECT_EQ(CheckProcessors(host_.tree()).state, FindingState::kWarning);
  host_.Remove("proc/self/status");
  EXPECT_EQ(CheckProcessors(host_.tree()).found, "unknown");
}

TEST_F(DoctorHost, SimdOfTheProcessor) {
  EXPECT_EQ(CheckSimd(host_.tree()).found, "sse2, sse4_2, avx2");
  EXPECT_EQ(CheckSimd(host_.tree()).state, FindingState::kOk);
  host_.Write("proc/cpuinfo", "flags\t: fpu sse\n");
  EXPECT_EQ(CheckSimd(host_.tree()).state, FindingState::kMissing);
}

TEST_F(DoctorHost, ClockSource) {
  EXPECT_EQ(CheckClock(host_.tree(), 1).state, FindingState::kOk);
  EXPECT_EQ(CheckClock(host_.tree(), 4'000'000).state, FindingState::kWarning) << "a coarse clock";
  const std::string source = "sys/devices/system/clocksource/clocksource0/";
  host_.Write(source + "current_clocksource", "hpet\n");
  const Finding slow = CheckClock(host_.tree(), 1);
  EXPECT_EQ(slow.state, FindingState::kWarning);
  EXPECT_EQ(slow.found, "hpet, 1 ns");
  EXPECT_TRUE(slow.remedy.starts_with("echo tsc > /sys/")) << slow.remedy;
  host_.Write(source + "available_clocksource", "hpet acpi_pm\n");
  EXPECT_FALSE(CheckClock(host_.tree(), 1).remedy.starts_with("echo tsc"));
  host_.Write(source + "current_clocksource", "kvm-clock\n");
  EXPECT_EQ(CheckClock(host_.tree(), 1).state, FindingState::kOk);
}

TEST_F(DoctorHost, TimeStampCounter) {
  EXPECT_EQ(CheckTimeStampCounter(host_.tree()).state, FindingState::kOk);
  host_.Write("proc/cpuinfo", "flags\t: sse2 constant_tsc\n");
  EXPECT_EQ(CheckTimeStampCounter(host_.tree()).found, "constant, may stop");
  host_.Write("proc/cpuinfo", "flags\t: sse2\n");
  EXPECT_EQ(CheckTimeStampCounter(host_.tree()).state, FindingState::kWarning);
}

TEST_F(DoctorHost, Membarrier) {
  EXPECT_EQ(CheckMembarrier(MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_GLOBAL_EXPEDITED).state,
            FindingState::kOk);
  EXPECT_EQ(CheckMembarrier(MEMBARRIER_CMD_GLOBAL).state, FindingState::kWarning);
  EXPECT_EQ(CheckMembarrier(-1).found, "refused");
  EXPECT_EQ(CheckMembarrier(-1).fabrics, std::vector{fabric::Kind::kShm});
}

TEST_F(DoctorHost, DescriptorsForTheRegions) {
  EXPECT_EQ(CheckDescriptors(host_.tree(), kGiB).state, FindingState::kOk);
  const Finding few = CheckDescriptors(host_.tree(), 100 * kGiB);  // 1,600 regions
  EXPECT_EQ(few.state, FindingState::kMissing);
  EXPECT_EQ(few.found, "1024");
  EXPECT_EQ(few.needed, "1856");
  EXPECT_EQ(few.remedy, "ulimit -n 1856");
  host_.Limits("unlimited", "0", "0");
  EXPECT_EQ(CheckDescriptors(host_.tree(), 100 * kGiB).state, FindingState::kOk);
  host_.Remove("proc/self/limits");
  EXPECT_EQ(CheckDescriptors(host_.tree(), kGiB).state, FindingState::kWarning);
}

}  // namespace
}  // namespace nam::cli
