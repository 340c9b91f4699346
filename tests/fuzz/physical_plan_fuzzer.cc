// A physical plan as a session sent it. It is refused, or Check accepts it; then it is sent on unchanged, and
// a reference engine runs it without finding anything missing.

#include <exception>
#include <string>

#include "base/check.h"
#include "plan/check.h"
#include "plan/codec.h"
#include "plan/print.h"
#include "tests/fuzz/fuzz.h"
#include "tests/plan/random_plan.h"

namespace nam::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (uint32_t seed = 1; seed <= 24; ++seed)
    seeds.push_back(plan::ToProto(plan::testing::RandomPlan(seed).Make()).SerializeAsString());
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  proto::PhysicalPlan sent;
  if (!sent.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto decoded = plan::FromProto(sent);
  if (!decoded.ok()) return 0;
  NAM_CHECK(plan::Check(*decoded).ok());
  const proto::PhysicalPlan sent_on = plan::ToProto(*decoded);
  const auto again = plan::FromProto(sent_on);
  NAM_CHECK(again.ok(), "what was decoded can be sent on");
  NAM_CHECK(plan::ToProto(*again).SerializeAsString() == sent_on.SerializeAsString());
  // Printing and evaluation recurse, and sanitizers make their frames large: tests/plan/depth_test.cc looks
  // at deep expressions.
  constexpr size_t kBytesMax = 6000;
  if (sent_on.ByteSizeLong() > kBytesMax) return 0;
  plan::Print(*decoded, [](uint32_t, uint32_t) { return "c"; });
  try {
    (void)plan::testing::Run(*decoded, plan::testing::RandomPlan(1).ARowsOf(*decoded));
  } catch (const std::exception& broken) {
    NAM_CHECK(false, "what flows is what the schemas say");
  }
  return 0;
}
