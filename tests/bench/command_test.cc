// The frame of the commands: options, reports and pages.
#include "bench/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "terminal/exit_codes.h"

namespace nam::bench {
namespace {

using ::testing::HasSubstr;

class Sums final : public Command {
 public:
  Sums() : Command("sums", "adds numbers up") {}
  std::vector<Option> Options() override {
    return {{"--numbers", &numbers, "to be added", {{1, 9}}},
            {"--block-bytes", Option::Bytes{&bytes}, "a size", {{1024, 65536}}},
            {"--way", &way, "of adding", {}, {"fast", "slow", "sim"}},
            {"--seed", &seed, "other numbers"},
            {"--state-dir", &folder, "a place", {}, {}, "DIR"}};
  }
  bool has_charts() const override { return true; }
  absl::Status Check() override {
    return numbers.empty() ? absl::InvalidArgumentError("--numbers names none") : absl::OkStatus();
  }
  absl::StatusOr<Report> Measure(Run& run) override {
    ++measured;
    if (!run.Proceed("adding")) return absl::CancelledError("interrupted");
    auto directory = run.Directory();
    if (directory.ok()) used = *directory;
    EXPECT_TRUE(std::filesystem::is_directory(used));
    return Report{.config = {{"threads", 2}},
                  .rows = {{{"sum", 3}, {"rounds_ms", {1, 2}}}},
                  .summary = {{"equal", right}},
                  .charts = {"<svg/>"},
                  .correct = right};
  }

  std::vector<uint32_t> numbers = {1, 2};
  uint64_t bytes = 2048, seed = 17;
  std::string way = "fast", folder, used;
  bool right = true;
  int measured = 0;
};

std::string Printed(Command& command, int expected) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunCommand(command), expected);
  return ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
}

TEST(Command, RefusesNumbersSizesAndWordsThatThereAreNot) {
  Sums sums;
  sums.numbers = {3, 10};
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("--numbers is 1 to 9, not 10"));
  sums.numbers = {1, 9};
  sums.bytes = 512;
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("--block-bytes is 1 KiB to 64 KiB, not 512 B"));
  sums.bytes = 65536;
  sums.way = "new";
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("--way is fast, slow or sim, not new"));
  sums.way = "slow";
  sums.output().format = "xml";
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("xml"));
  sums.output() = {.html = "/no/such/folder/page.html"};
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("cannot write"));
  sums.output() = {};
  sums.numbers.clear();
  EXPECT_THAT(Printed(sums, kExitUsage), HasSubstr("names none"));
  EXPECT_EQ(sums.measured, 0);
}

TEST(Command, ReportsItsOptionsAndRemovesItsFolder) {
  Sums sums;
  sums.output().format = "json";
  const Json report = Json::parse(Printed(sums, kExitOk));
  EXPECT_EQ(report["command"], "bench sums");
  EXPECT_EQ(report["config"]["numbers"], Json({1, 2}));
  EXPECT_EQ(report["config"]["block_bytes"], 2048);
  EXPECT_EQ(report["config"]["threads"], 2);
  EXPECT_FALSE(report["config"].contains("state_dir")) << "a place of this host";
  EXPECT_TRUE(report["config"].contains("load_average"));
  EXPECT_EQ(report["rows"][0]["rounds_ms"], Json({1, 2}));
  EXPECT_FALSE(std::filesystem::exists(sums.used));
}

TEST(Command, WrongAnswersFailAndAreShown) {
  Sums sums;
  sums.right = false;
  const std::string table = Printed(sums, kExitCheckFailed);
  EXPECT_THAT(table, HasSubstr("equal: false"));
  EXPECT_THAT(table, HasSubstr("sum"));
  EXPECT_THAT(table, ::testing::Not(HasSubstr("rounds_ms"))) << "an array is no cell";
}

TEST(Command, APageSaysWhereItIsFrom) {
  Sums sums;
  sums.output().html = ::testing::TempDir() + "sums.html";
  Printed(sums, kExitOk);
  std::ifstream file(sums.output().html);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const char* part : {"<svg/>", "nam bench sums", "<dt>seed</dt><dd>17</dd>", "<dt>date</dt><dd>20",
                           "<dt>program</dt><dd>nam ", "<dt>host</dt>", "command_test"})
    EXPECT_THAT(page, HasSubstr(part));
}

}  // namespace
}  // namespace nam::bench
