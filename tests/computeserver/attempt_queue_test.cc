#include "computeserver/attempt_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "tests/catalog/fake_fabric.h"

namespace nam::computeserver {
namespace {

class FakeCall final : public catalog::IncomingCall {
 public:
  bool Cancelled() const override { return cancelled; }
  std::atomic<bool> cancelled = false;
};

/// Until the queue has so many waiters, whom another caller would be behind.
void AwaitWaiters(AttemptQueue& queue, size_t waiters) {
  while (queue.waiting() < waiters) std::this_thread::yield();
}

TEST(AttemptQueue, TurnsComeInTheOrderOfTheCallers) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, 2, 3);
  FakeCall call;
  std::optional<AttemptQueue::Turn> first = queue.Begin(call).value();
  std::optional<AttemptQueue::Turn> second = queue.Begin(call).value();
  std::atomic<int> order = 0;
  std::vector<int> came(3, -1);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < came.size(); ++i) {
    callers.emplace_back([&, i] {
      const auto turn = queue.Begin(call);
      EXPECT_TRUE(turn.ok()) << turn.status();
      came[i] = order++;
    });
    AwaitWaiters(queue, i + 1);
  }
  EXPECT_EQ(queue.Begin(call).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(queue.empty());
  first.reset();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(came, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(queue.empty());
  second.reset();
  EXPECT_TRUE(queue.empty());
}

/// However many wait: it has begun what others may wait for.
TEST(AttemptQueue, WhoResumesIsNotRefused) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, 1, 0);
  FakeCall call;
  std::optional<AttemptQueue::Turn> turn = queue.Begin(call).value();
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Begin(call).status()));
  std::atomic<bool> served = false;
  std::thread resuming([&] {
    EXPECT_TRUE(queue.Begin(call, AttemptQueue::Kind::kResumed).ok());
    served = true;
  });
  while (queue.waiting() == 0 && !served) std::this_thread::yield();
  EXPECT_FALSE(served);
  turn.reset();
  resuming.join();
  EXPECT_TRUE(served);
}

TEST(AttemptQueue, WhoGivesUpLeavesItsPlace) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, 1, 2);
  FakeCall call, impatient;
  std::optional<AttemptQueue::Turn> turn = queue.Begin(call).value();
  std::thread leaving([&] { EXPECT_TRUE(absl::IsCancelled(queue.Begin(impatient).status())); });
  AwaitWaiters(queue, 1);
  std::atomic<bool> served = false;
  std::thread staying([&] {
    EXPECT_TRUE(queue.Begin(call).ok());
    served = true;
  });
  AwaitWaiters(queue, 2);
  impatient.cancelled = true;
  leaving.join();
  EXPECT_FALSE(served);
  turn.reset();
  staying.join();
  EXPECT_TRUE(served);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace nam::computeserver
