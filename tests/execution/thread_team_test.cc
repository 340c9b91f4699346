#include "execution/thread_team.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sim/world.h"

namespace nam::execution {
namespace {

constexpr int64_t kWaitUs = 1'000'000;

/// Rows without end, which take their time.
class Endless final : public SourceTask {
 public:
  explicit Endless(fabric::Fabric& fabric) : clock_(fabric.clock()), never_(fabric.CreateEvent()) {}
  Step Next(TaskContext&, Chunk& out) override {
    never_->Wait(clock_.After(1));
    out.SelectAll(1);
    return Step::kHaveMore;
  }

 private:
  Clock& clock_;
  const std::unique_ptr<fabric::Event> never_;
};

/// Waits for a gate that nobody opens, after the first chunk.
class Blocked final : public SinkTask {
 public:
  explicit Blocked(fabric::Event* blocked) : blocked_(blocked) {}
  Step Consume(TaskContext& context, const Chunk&) override {
    if (blocked_ == nullptr) return Step::kNeedInput;
    blocked_->Set();
    return context.BlockOn(gate_);
  }

 private:
  fabric::Event* const blocked_;  // null: takes in all
  const Gate gate_;
};

class ThreadTeamTest : public ::testing::Test {
 protected:
  void Open(uint64_t seed) {
    TearDown();
    world_ = std::make_unique<fabric::sim::World>(fabric::sim::WorldOptions{.seed = seed});
    fabric_ = world_->OpenFabric("host", {}).value();
    cancel_ = false;
    team_ = std::make_unique<ThreadTeam>(*fabric_, budget_, cancel_, 2);
  }
  void TearDown() override {
    team_.reset();
    fabric_.reset();
    world_.reset();
  }
  std::unique_ptr<PipelineTask> Task(std::unique_ptr<SourceTask> source, fabric::Event* blocked) {
    std::vector<std::unique_ptr<Chunk>> chunks;
    chunks.push_back(std::make_unique<Chunk>(0, 0));
    return std::make_unique<PipelineTask>(std::move(source), std::vector<std::unique_ptr<StepTask>>(),
                                          std::make_unique<Blocked>(blocked), std::move(chunks));
  }
  bool Wait(fabric::Event& event) { return event.Wait(fabric_->clock().After(kWaitUs)); }

  MemoryBudget budget_{1 << 20};
  std::atomic<bool> cancel_ = false;
  std::unique_ptr<fabric::sim::World> world_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<ThreadTeam> team_;
};

TEST_F(ThreadTeamTest, AllThreadsWorkAtOnce) {
  Open(1);
  const std::unique_ptr<fabric::Event> here[] = {fabric_->CreateEvent(), fabric_->CreateEvent()};
  std::atomic<int> met = 0;
  const absl::Status status = team_->Together(2, [&](size_t thread) {
    here[thread]->Set();
    met += Wait(*here[1 - thread]);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(met, 2);
  EXPECT_EQ(team_->started(), 1u);
  EXPECT_TRUE(team_->Together(1, [](size_t) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(team_->started(), 1u) << "work of one thread is the caller's";
}

TEST_F(ThreadTeamTest, TheErrorOfOneThreadEndsAll) {
  // The caller waits for a gate, or has rows without end, when the other thread fails.
  for (const bool gate : {true, false}) {
    Open(gate ? 1 : 2);
    const std::unique_ptr<fabric::Event> blocked = fabric_->CreateEvent();
    const auto task =
        Task(team_->Guarded(std::make_unique<Endless>(*fabric_)), gate ? blocked.get() : nullptr);
    const absl::Status status = team_->Together(2, [&](size_t thread) -> absl::Status {
      if (thread == 0) return team_->Run(0, *task).status();
      if (gate && !Wait(*blocked)) return absl::InternalError("the caller does not wait");
      return absl::DataLossError("broken");
    });
    EXPECT_EQ(status, absl::DataLossError("broken"));
    EXPECT_EQ(team_->Together(2, [](size_t) { return absl::OkStatus(); }), status) << "no work begins";
  }
}

TEST_F(ThreadTeamTest, ACancelledQueryEndsAllThreads) {
  Open(1);
  const std::unique_ptr<fabric::Event> blocked[] = {fabric_->CreateEvent(), fabric_->CreateEvent()};
  const std::unique_ptr<PipelineTask> tasks[] = {Task(std::make_unique<Endless>(*fabric_), blocked[0].get()),
                                                 Task(std::make_unique<Endless>(*fabric_), blocked[1].get())};
  const std::unique_ptr<fabric::Thread> user = fabric_->StartThread("user", [&] {
    for (const auto& event : blocked) EXPECT_TRUE(Wait(*event));
    cancel_ = true;
  });
  const absl::Status status =
      team_->Together(2, [&](size_t thread) { return team_->Run(thread, *tasks[thread]).status(); });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(ThreadTeamTest, ACancelledQueryEndsThreadsThatTheCallerWaitsFor) {
  Open(1);
  const std::unique_ptr<fabric::Event> blocked = fabric_->CreateEvent();
  const std::unique_ptr<PipelineTask> task = Task(std::make_unique<Endless>(*fabric_), blocked.get());
  const std::unique_ptr<fabric::Thread> user = fabric_->StartThread("user", [&] {
    EXPECT_TRUE(Wait(*blocked));
    cancel_ = true;
  });
  const absl::Status status = team_->Together(2, [&](size_t thread) -> absl::Status {
    return thread == 0 ? absl::OkStatus() : team_->Run(1, *task).status();
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

/// Who takes what is decided by the seed alone.
TEST_F(ThreadTeamTest, ASeedReplaysWhoTakesWhat) {
  const auto taken = [&](uint64_t seed) {
    Open(seed);
    std::string log;
    int left = 64;
    EXPECT_TRUE(team_
                    ->Together(2,
                               [&](size_t thread) {
                                 const auto never = fabric_->CreateEvent();
                                 for (; left > 0; --left) {
                                   log += thread == 0 ? 'a' : 'b';
                                   never->Wait(fabric_->clock().After(1));
                                 }
                                 return absl::OkStatus();
                               })
                    .ok());
    return log;
  };
  const std::string first = taken(1);
  EXPECT_NE(first.find('a'), std::string::npos);
  EXPECT_NE(first.find('b'), std::string::npos);
  EXPECT_EQ(taken(1), first);
  EXPECT_NE(taken(2), first);
}

}  // namespace
}  // namespace nam::execution
