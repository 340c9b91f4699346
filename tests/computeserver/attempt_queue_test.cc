#include "computeserver/attempt_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "execution/methods.h"
#include "tests/catalog/fake_fabric.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

class CountedCall final : public catalog::IncomingCall {
 public:
  std::string Connection() const override { return "a test"; }
  bool Cancelled() const override {
    ++asked;
    return cancelled;
  }
  std::atomic<bool> cancelled = false;
  mutable std::atomic<int> asked = 0;  // each waiting caller asks now and then
};

using Needs = AttemptQueue::Needs;

/// Returns when the queue has this many waiters; another caller would be behind them.
void AwaitWaiters(AttemptQueue& queue, size_t waiters) {
  while (queue.waiting() < waiters) std::this_thread::yield();
}

void Nobody() {}

/// A caller that waits, and what it has got then.
class Waiting {
 public:
  Waiting(AttemptQueue& queue, const Needs& needs)
      : thread_([this, &queue, needs] {
          begun_.emplace(queue.Begin(call_, needs, Nobody));
          served_ = true;
        }) {}
  ~Waiting() {
    if (thread_.joinable()) thread_.join();
  }
  bool served() const { return served_; }
  void GiveUp() { call_.cancelled = true; }
  absl::StatusOr<AttemptQueue::Beginning> Take() {
    thread_.join();
    return *std::move(begun_);
  }

 private:
  CountedCall call_;
  std::atomic<bool> served_ = false;
  std::optional<absl::StatusOr<AttemptQueue::Beginning>> begun_;
  std::thread thread_;
};

TEST(AttemptQueue, TurnsComeInTheOrderOfTheCallers) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 2, .waiting_max = 3});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> first = queue.Begin(call, {}, Nobody).value();
  std::optional<AttemptQueue::Beginning> second = queue.Begin(call, {}, Nobody).value();
  std::atomic<int> order = 0;
  std::vector<int> came(3, -1);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < came.size(); ++i) {
    callers.emplace_back([&, i] {
      const auto turn = queue.Begin(call, {}, Nobody);
      EXPECT_TRUE(turn.ok()) << turn.status();
      came[i] = order++;
    });
    AwaitWaiters(queue, i + 1);
  }
  const absl::Status refused = queue.Begin(call, {}, Nobody).status();
  EXPECT_EQ(SqlErrorOf(refused).value_or(SqlError{}).sqlstate, execution::kTooManyQueries) << refused;
  EXPECT_FALSE(queue.empty());
  first.reset();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(came, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(queue.empty());
  second.reset();
  EXPECT_TRUE(queue.empty());
}

/// An attempt that needs all memory waits for those that began before it; small ones do not wait for it. Once
/// the earlier ones have ended, small ones wait behind it, or it would wait for ever.
TEST(AttemptQueue, SmallAttemptsPassALargeOneWhileEarlierOnesHoldItUp) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 9, .waiting_max = 9, .memory_bytes = 100});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> large = queue.Begin(call, {.memory_bytes = 60}, Nobody).value();
  std::optional<AttemptQueue::Beginning> small = queue.Begin(call, {.memory_bytes = 30}, Nobody).value();
  EXPECT_EQ(queue.memory().used(), 90);
  Waiting whole(queue, {.memory_bytes = 1'000'000});
  AwaitWaiters(queue, 1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(queue.Begin(call, {.memory_bytes = 5}, Nobody).ok());
  std::optional<AttemptQueue::Beginning> passed = queue.Begin(call, {.memory_bytes = 5}, Nobody).value();
  large.reset();
  EXPECT_TRUE(queue.Begin(call, {.memory_bytes = 5}, Nobody).ok()) << "it lacks what the second holds";
  // A turn that ends releases no memory: the attempt may be suspended.
  AttemptQueue::Beginning stands = *std::exchange(small, std::nullopt);
  { const AttemptQueue::Turn ended = std::move(stands.turn); }
  EXPECT_EQ(queue.waiting(), 1);
  stands.place.reset();
  Waiting little(queue, {.memory_bytes = 5});
  AwaitWaiters(queue, 2);
  EXPECT_FALSE(whole.served() || little.served()) << "what came later holds 5";
  passed.reset();
  std::optional<AttemptQueue::Beginning> all = whole.Take().value();
  EXPECT_EQ(queue.memory().used(), 100);
  EXPECT_FALSE(little.served());
  all.reset();
  EXPECT_TRUE(little.Take().ok());
}

/// What an earlier attempt has taken since it began counts, and two large ones are served in their order.
TEST(AttemptQueue, LargeAttemptsAreServedInTheirOrder) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 9, .waiting_max = 9, .memory_bytes = 8 << 20});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> grown = queue.Begin(call, {.memory_bytes = 1 << 20}, Nobody).value();
  ASSERT_TRUE(grown->place->memory().Reserve(3 << 20));
  Waiting first(queue, {.memory_bytes = 6 << 20});
  AwaitWaiters(queue, 1);
  Waiting second(queue, {.memory_bytes = 7 << 20});
  AwaitWaiters(queue, 2);
  EXPECT_TRUE(queue.Begin(call, {.memory_bytes = 1 << 20}, Nobody).ok());
  grown->place->memory().Release(3 << 20);
  grown.reset();
  std::optional<AttemptQueue::Beginning> begun = first.Take().value();
  EXPECT_FALSE(second.served());
  EXPECT_TRUE(queue.Begin(call, {.memory_bytes = 1 << 20}, Nobody).ok());
  begun.reset();
  EXPECT_TRUE(second.Take().ok());
}

TEST(AttemptQueue, WhoGivesUpDoesNotHoldUpOthers) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 9, .waiting_max = 9, .memory_bytes = 100});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> earlier = queue.Begin(call, {.memory_bytes = 60}, Nobody).value();
  Waiting whole(queue, {.memory_bytes = 100});
  AwaitWaiters(queue, 1);
  const auto later = queue.Begin(call, {.memory_bytes = 5}, Nobody).value();
  earlier.reset();
  Waiting little(queue, {.memory_bytes = 5});
  AwaitWaiters(queue, 2);
  EXPECT_FALSE(little.served());
  whole.GiveUp();
  EXPECT_TRUE(absl::IsCancelled(whole.Take().status()));
  EXPECT_TRUE(little.Take().ok());
}

/// Places for windows come back when clients read on, so other attempts need not wait for them.
TEST(AttemptQueue, WhoLacksAPlaceForWindowsIsPassed) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 3, .waiting_max = 3, .open_max = 1});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> open = queue.Begin(call, {.windows = true}, Nobody).value();
  Waiting windows(queue, {.windows = true});
  AwaitWaiters(queue, 1);
  EXPECT_TRUE(queue.Begin(call, {}, Nobody).ok());
  EXPECT_FALSE(windows.served());
  open.reset();
  EXPECT_TRUE(windows.Take().ok());
}

/// The first caller that waits for what attempts hold, and not for a turn, has the server relieved.
TEST(AttemptQueue, WhoIsHeldUpByWhatStandsStillIsRelieved) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 1, .waiting_max = 3, .memory_bytes = 10});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> standing = queue.Begin(call, {.memory_bytes = 10}, Nobody).value();
  std::optional<AttemptQueue::Turn> turn = std::move(standing->turn);
  std::atomic<int> relieved = 0;
  std::atomic<bool> end = false;
  std::thread waiting([&] {
    EXPECT_TRUE(queue
                    .Begin(call, {.memory_bytes = 10},
                           [&] {
                             const bool ends = end;  // as of before others hear of this one
                             ++relieved;
                             if (ends) standing.reset();
                           })
                    .ok());
  });
  AwaitWaiters(queue, 1);
  while (call.asked < 3) std::this_thread::yield();
  EXPECT_EQ(relieved, 0) << "it waits for a turn";
  turn.reset();
  while (relieved == 0) std::this_thread::yield();
  EXPECT_EQ(queue.waiting(), 1);
  end = true;
  waiting.join();
  EXPECT_GT(relieved, 1);
}

/// It comes first however many others wait, and whatever for: they wait for what it holds.
TEST(AttemptQueue, WhoResumesComesFirst) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 1, .waiting_max = 1, .memory_bytes = 10});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> begun = queue.Begin(call, {.memory_bytes = 6}, Nobody).value();
  Waiting whole(queue, {.memory_bytes = 10});
  AwaitWaiters(queue, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Begin(call, {}, Nobody).status()));
  std::atomic<bool> served = false, go_on = false;
  std::thread resuming([&] {
    const auto turn = queue.Resume(call);
    EXPECT_TRUE(turn.ok());
    served = true;
    while (!go_on) std::this_thread::yield();
  });
  AwaitWaiters(queue, 2);
  EXPECT_FALSE(served);
  { const AttemptQueue::Turn ended = std::move(begun->turn); }
  while (!served) std::this_thread::yield();
  EXPECT_FALSE(whole.served());
  go_on = true;
  resuming.join();
  begun.reset();
  EXPECT_TRUE(whole.Take().ok());
}

/// Two attempts that always want to resume would pass the one turn to each other.
TEST(AttemptQueue, WhoResumesAgainAndAgainLeavesTurnsToOthers) {
  constexpr int kTurns = 100;
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 1, .waiting_max = 1});
  CountedCall call;
  std::optional<AttemptQueue::Beginning> begun = queue.Begin(call, {}, Nobody).value();
  Waiting other(queue, {});
  AwaitWaiters(queue, 1);
  std::atomic<int> turns = 0;
  const auto resume = [&] {
    while (turns < kTurns && !other.served()) {
      const auto turn = queue.Resume(call);
      EXPECT_TRUE(turn.ok());
      ++turns;
      while (turns < kTurns && !other.served() && queue.waiting() < 2) std::this_thread::yield();
    }
  };
  std::thread first(resume), second(resume);
  AwaitWaiters(queue, 3);
  begun.reset();
  EXPECT_TRUE(other.Take().ok());
  first.join();
  second.join();
  EXPECT_LT(turns, kTurns);
}

TEST(AttemptQueue, WhoGivesUpLeavesItsPlace) {
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric, {.running_max = 1, .waiting_max = 2});
  CountedCall call, impatient;
  std::optional<AttemptQueue::Beginning> turn = queue.Begin(call, {}, Nobody).value();
  std::thread leaving([&] { EXPECT_TRUE(absl::IsCancelled(queue.Resume(impatient).status())); });
  AwaitWaiters(queue, 1);
  Waiting staying(queue, {});
  AwaitWaiters(queue, 2);
  impatient.cancelled = true;
  leaving.join();
  EXPECT_FALSE(staying.served());
  turn.reset();
  EXPECT_TRUE(staying.Take().ok());
  EXPECT_TRUE(queue.empty());
}

/// Whatever the attempts need, all of them get it in the end, and never more than there is.
TEST(AttemptQueue, EverybodyIsServed) {
  constexpr uint64_t kMemory = 50;
  constexpr int kCallers = 12, kRounds = 200;
  fabric::FakeFabric fabric;
  AttemptQueue queue(fabric,
                     {.running_max = 3, .waiting_max = kCallers, .open_max = 2, .memory_bytes = kMemory});
  CountedCall call;
  std::atomic<uint64_t> held = 0;
  std::atomic<int> running = 0, open = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      RandomStream random(static_cast<uint64_t>(c));
      for (int i = 0; i < kRounds; ++i) {
        const Needs needs{.memory_bytes = random.Below(kMemory + 1), .windows = random.OneIn(2)};
        auto begun = queue.Begin(call, needs, Nobody);
        ASSERT_TRUE(begun.ok()) << begun.status();
        EXPECT_LE(++running, 3);
        EXPECT_LE(held += needs.memory_bytes, kMemory);
        if (needs.windows) {
          EXPECT_LE(++open, 2);
        }
        std::optional<AttemptQueue::Turn> turn = std::move(begun->turn);
        for (int windows = 0; needs.windows && windows < 3; ++windows) {
          --running;
          turn.reset();
          turn.emplace(queue.Resume(call).value());
          EXPECT_LE(++running, 3);
        }
        --running;
        held -= needs.memory_bytes;
        if (needs.windows) --open;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.memory().used(), 0);
}

}  // namespace
}  // namespace nam::computeserver
