#include <gtest/gtest-spi.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/sim/world.h"
#include "tests/fabric/child.h"
#include "tests/fabric/provider.h"

namespace nam::fabric::conformance {
namespace {

constexpr int64_t kSimTimeoutUs = 10'000'000;

/// One world for all cases, with a host for each process.
sim::World& TheWorld() {
  static sim::World world([] {
    sim::WorldOptions options;
    const char* seed = std::getenv("NAM_TEST_SEED");
    if (seed != nullptr) options.seed = std::strtoull(seed, nullptr, 10);
#ifdef NAM_SIM_IN_PLACE
    options.in_place = true;
#endif
    return options;
  }());
  return world;
}

absl::StatusOr<std::unique_ptr<Fabric>> OpenOnNewHost(const std::string& secret) {
  static int hosts = 0;
  return TheWorld().OpenFabric(absl::StrCat("host-", ++hosts), {.secret = secret});
}

/// A simulated process, with a thread that plays the role.
class SimulatedChild final : public ChildProcess, public Console {
 public:
  explicit SimulatedChild(const std::vector<std::string>& role)
      : fabric_(OpenOnNewHost(role[1]).value()),
        process_(TheWorld().ProcessOf(*fabric_)),
        news_(fabric_->CreateEvent()),
        end_(fabric_->CreateEvent()),
        thread_(fabric_->StartThread("child", [this, role] {
          // Like a separate process: its failed checks show by their consequences.
          testing::TestPartResultArray unseen;
          testing::ScopedFakeTestPartResultReporter reporter(
              testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &unseen);
          exit_code_ = PlayRole(role, *fabric_, *this);
          ended_ = true;
          news_->Set();
        })) {}
  ~SimulatedChild() override { Kill(); }

  std::optional<std::string> ReadLine() override {
    if (lines_.empty() && !ended_) news_->Wait(TheWorld().clock().After(kSimTimeoutUs));
    if (lines_.empty()) return std::nullopt;
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    if (lines_.empty() && !ended_) news_ = fabric_->CreateEvent();
    return line;
  }
  void Kill() override {
    TheWorld().KillProcess(process_);
    end_->Set();
    thread_.reset();
  }
  int pid() const override { return static_cast<int>(process_.value()); }
  int Finish() override {
    end_->Set();
    const Deadline deadline = TheWorld().clock().After(kSimTimeoutUs);
    while (!ended_ && !TheWorld().clock().Passed(deadline)) ReadLine();
    return ended_ ? exit_code_ : -1;
  }

  // The console.
  void Print(const std::string& line) override {
    lines_.push_back(line);
    news_->Set();
  }
  void AwaitEnd() override { end_->Wait(Deadline::Never()); }

 private:
  // No locks: one thread of the world runs at a time.
  const std::unique_ptr<Fabric> fabric_;
  const sim::ProcessId process_;
  std::unique_ptr<Event> news_;  // a line, or the end; a new one for the next
  const std::unique_ptr<Event> end_;
  std::deque<std::string> lines_;
  bool ended_ = false;
  int exit_code_ = -1;
  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

class SimProvider final : public Provider {
 public:
  absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) override {
    return OpenOnNewHost(secret);
  }
  std::string ListenAddress() override { return ":0"; }
  std::string DeadAddress() override { return "host-1:9"; }

  std::unique_ptr<ChildProcess> StartChild(const std::vector<std::string>& role) override {
    return std::make_unique<SimulatedChild>(role);
  }

  /// There is no wire for junk: strangers connect and stay.
  std::vector<std::shared_ptr<void>> Harass(const std::string& address, const std::string&) override {
    std::vector<std::shared_ptr<void>> strangers;
    for (int i = 0; i < 20; ++i) {
      std::shared_ptr<Fabric> stranger = OpenOnNewHost("a stranger's secret").value();
      const auto completions = stranger->CreateCompletionQueue(512).value();
      stranger->Connect(address, *completions, {}, stranger->clock().After(kSimTimeoutUs))
          .status()
          .IgnoreError();
      strangers.push_back(std::move(stranger));
    }
    return strangers;
  }

  std::vector<std::string> NamesOf(int pid) override {
    return TheWorld().AddressesOf(sim::ProcessId(static_cast<uint32_t>(pid)));
  }
};

}  // namespace

Provider& CurrentProvider() {
  static SimProvider provider;
  return provider;
}

}  // namespace nam::fabric::conformance
