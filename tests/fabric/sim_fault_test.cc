#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/sim/world.h"
#include "tests/fabric/sim_cluster.h"

/// Faults of a process, a card, one direction of a path, and one operation, other than death.
namespace nam::fabric::sim {
namespace {

void SetWord(std::byte* at, uint64_t word) {
  std::memcpy(at, &word, sizeof(word));
}

/// Posts all requests at once and waits for the last one.
bool RunAll(Client& client, std::vector<WorkRequest> requests) {
  for (WorkRequest& request : requests) request.signal = Signal::kUnsignaled;
  requests.back().signal = Signal::kSignaled;
  if (!client.pair->Post(requests).ok()) return false;
  Completion completion;
  return client.completions->Wait({&completion, 1}, Deadline::Never()) == 1 && completion.ok();
}

// -- Pauses.

TEST(SimPause, ThreadsStandStillAndTimePassesForThem) {
  World world({});
  const auto paused = Take(world.OpenFabric("h", {}));
  const auto other = Take(world.OpenFabric("h", {}));
  int64_t woke_ns = 0, others_woke_ns = 0;
  const int64_t begin_ns = world.NowNs();
  auto sleeper = paused->StartThread("sleeper", [&] {
    Sleep(world, 2 * kMs);
    woke_ns = world.NowNs() - begin_ns;
  });
  auto neighbour = other->StartThread("neighbour", [&] {
    Sleep(world, 2 * kMs);
    others_woke_ns = world.NowNs() - begin_ns;
  });
  Sleep(world, kMs);
  world.Pause(world.ProcessOf(*paused), false);
  EXPECT_TRUE(world.Paused(world.ProcessOf(*paused)));
  Sleep(world, 9 * kMs);
  EXPECT_EQ(woke_ns, 0);
  EXPECT_EQ(others_woke_ns, 2 * kMs) << "another process of the same host";
  world.Resume(world.ProcessOf(*paused));
  sleeper.reset();
  EXPECT_EQ(woke_ns, 10 * kMs) << "it finds its deadline long past";
}

TEST(SimPause, AThreadThatCouldRunIsHeldToo) {
  World world({});
  const auto fabric = Take(world.OpenFabric("h", {}));
  bool ran = false;
  auto thread = fabric->StartThread("ready", [&] { ran = true; });
  world.Pause(world.ProcessOf(*fabric), false);
  Sleep(world, kMs);
  EXPECT_FALSE(ran);
  world.Resume(world.ProcessOf(*fabric));
  thread.reset();
  EXPECT_TRUE(ran);
}

TEST(SimPause, ACardOfHardwareGoesOnAndOneOfSoftwareDoesNot) {
  for (const bool card_too : {false, true}) {
    World world({});
    MemoryServer server(world, "m0");
    Client client(world, "c0", server);
    world.Pause(world.ProcessOf(*server.fabric), card_too);
    const WorkRequest add = WorkRequest::FetchAdd(1, client.local->Slice(0, 8), client.At(0), 1);
    ASSERT_TRUE(client.pair->Post({&add, 1}).ok());
    Completion completion;
    EXPECT_EQ(client.completions->Wait({&completion, 1}, world.clock().After(1'000)), card_too ? 0u : 1u);
    EXPECT_EQ(server.Word(0), card_too ? 0u : 1u);
    world.Resume(world.ProcessOf(*server.fabric));
    if (!card_too) continue;
    ASSERT_EQ(client.completions->Wait({&completion, 1}, world.clock().After(1'000)), 1u);
    EXPECT_TRUE(completion.ok()) << "shorter than the peer timeout";
    EXPECT_EQ(server.Word(0), 1u);
  }
}

TEST(SimPause, WhatAStoppedCardHadPostedArrivesLateAndIsRefusedOnceItsKeyIsGone) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const auto own = Take(server.fabric->Allocate(4096, {.huge_pages = false}));
  const auto kept = Take(server.fabric->Allocate(4096, {.huge_pages = false}));
  const auto word_at = [](const MemoryRegion& region, size_t offset) {
    uint64_t value;
    std::memcpy(&value, region.data() + offset, sizeof(value));
    return value;
  };
  SetWord(client.local->data(), 7);
  const LocalBuffer word = client.local->Slice(0, 8);
  const ProcessId process = world.ProcessOf(*client.fabric);
  const int64_t at_ns = world.NowNs() + kMs;
  auto thread = client.fabric->StartThread("writer", [&] {
    // The card takes one after the other; it is stopped before it comes to the last two.
    std::vector<WorkRequest> batch(126, WorkRequest::Write(0, word, {kept->rkey(), 8}, Signal::kUnsignaled));
    batch.push_back(WorkRequest::Write(2, word, {kept->rkey(), 0}));
    batch.push_back(WorkRequest::Write(1, word, {own->rkey(), 0}));
    world.clock().SleepUntil({at_ns});
    EXPECT_TRUE(client.pair->Post(batch).ok());
    Completion completion;
    for (const uint64_t id : {2u, 1u}) {
      EXPECT_EQ(client.completions->Wait({&completion, 1}, Deadline::Never()), 1u);
      EXPECT_EQ(completion.id, id);
      EXPECT_EQ(completion.status, id == 1 ? CompletionStatus::kRemoteAccessError : CompletionStatus::kOk);
    }
  });
  world.clock().SleepUntil({at_ns + 1'000});
  world.Pause(process, true);
  Sleep(world, kMs);
  EXPECT_TRUE(own->Revoke());
  EXPECT_EQ(word_at(*kept, 8), 7u) << "those before it had left";
  EXPECT_EQ(word_at(*kept, 0), 0u) << "it has not left";
  world.Resume(process);
  thread.reset();
  EXPECT_EQ(word_at(*own, 0), 0u);
  EXPECT_EQ(word_at(*kept, 0), 7u);
}

/// Every member lives, and all have the same key.
class Everybody final : public MemberKeys {
 public:
  absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) override {
    return std::vector<std::optional<MemberKey>>(members.size(), MemberKey{});
  }
};

TEST(SimPause, WhatAStoppedCardHadPostedDoesNothingBehindAFence) {
  Everybody everybody;
  World world({});
  MemoryServer server(world, "m0");
  const auto gate = Take(server.fabric->Listen({.address = ":0", .member_keys = &everybody}));
  Client client(world, "c0", server);
  const QueuePairOptions options{.send_depth = 256, .receive_depth = 0, .member = {MemberId(1), {}}};
  client.pair = Take(
      client.fabric->Connect(gate->address(), *client.completions, options, world.clock().After(1'000'000)));
  SetWord(client.local->data(), 7);
  world.Pause(world.ProcessOf(*client.fabric), true);
  const WorkRequest write = WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0));
  ASSERT_TRUE(client.pair->Post({&write, 1}).ok());
  Sleep(world, kMs);
  EXPECT_TRUE(gate->Fence(MemberId(1), false));
  world.Resume(world.ProcessOf(*client.fabric));
  Completion completion;
  ASSERT_EQ(client.completions->Wait({&completion, 1}, world.clock().After(10'000)), 1u);
  EXPECT_FALSE(completion.ok());
  EXPECT_EQ(server.Word(0), 0u);
  EXPECT_TRUE(client.pair->Disconnect(world.clock().After(10'000)).ok());
}

TEST(SimPause, WhatHasArrivedAtAStoppedCardIsGivenUpByAFence) {
  for (const bool fenced : {false, true}) {
    Everybody everybody;
    World world({});
    MemoryServer server(world, "m0");
    const auto gate = Take(server.fabric->Listen({.address = ":0", .member_keys = &everybody}));
    Client client(world, "c0", server, {.secret = "secret", .peer_timeout_us = 5'000});
    const QueuePairOptions options{.send_depth = 256, .receive_depth = 0, .member = {MemberId(1), {}}};
    client.pair = Take(client.fabric->Connect(gate->address(), *client.completions, options,
                                              world.clock().After(1'000'000)));
    world.Pause(world.ProcessOf(*server.fabric), true);
    SetWord(client.local->data(), 7);
    EXPECT_EQ(client.Run(WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0))).status,
              CompletionStatus::kPeerLost);
    world.Resume(world.ProcessOf(*server.fabric));
    EXPECT_EQ(gate->Members(), std::vector<MemberId>{MemberId(1)}) << "the WRITE is still there";
    if (fenced) {
      EXPECT_TRUE(gate->Fence(MemberId(1), false));
    }
    Sleep(world, 10 * kMs);
    EXPECT_EQ(server.Word(0), fenced ? 0u : 7u);
    EXPECT_TRUE(gate->Members().empty());
  }
}

TEST(SimPause, APausedServerAdmitsNobody) {
  Everybody everybody;
  World world({});
  MemoryServer server(world, "m0");
  const auto gate = Take(server.fabric->Listen({.address = ":0", .member_keys = &everybody}));
  Client client(world, "c0", server);
  const QueuePairOptions options{.send_depth = 256, .receive_depth = 0, .member = {MemberId(1), {}}};
  world.Pause(world.ProcessOf(*server.fabric), false);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client.fabric->Connect(gate->address(), *client.completions, options, world.clock().After(1'000))
          .status()));
  world.Resume(world.ProcessOf(*server.fabric));
  Sleep(world, kMs);
  EXPECT_TRUE(gate->Members().empty());
}

TEST(SimPause, PeersOfAStoppedCardGiveUpAfterTheirTimeout) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server, {.secret = "secret", .peer_timeout_us = 5'000});
  Client idle(world, "c1", server, {.secret = "secret", .peer_timeout_us = 5'000});
  world.Pause(world.ProcessOf(*server.fabric), true);
  const int64_t begin_ns = world.NowNs();
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_GE(world.NowNs() - begin_ns, 4 * kMs);
  EXPECT_FALSE(client.pair->Disconnect(world.clock().After(10'000)).ok()) << "no peer confirms it";
  EXPECT_FALSE(idle.pair->Disconnect(world.clock().After(10'000)).ok()) << "though nothing has arrived there";
  world.Resume(world.ProcessOf(*server.fabric));
  EXPECT_TRUE(client.pair->Disconnect(world.clock().After(10'000)).ok());
  EXPECT_TRUE(idle.pair->Disconnect(world.clock().After(10'000)).ok());
  client.pair = client.Connect();
  EXPECT_TRUE(client.Add(0).ok());
}

/// Requests that have arrived at a stopped card take effect when it continues, although their requester has
/// given up: before the end of the connection is confirmed, and not after.
TEST(SimPause, WhatAStoppedCardHasTakesEffectBeforeTheEndIsConfirmed) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server, {.secret = "secret", .peer_timeout_us = 5'000});
  world.Pause(world.ProcessOf(*server.fabric), true);
  SetWord(client.local->data(), 7);
  EXPECT_EQ(client.Run(WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0))).status,
            CompletionStatus::kPeerLost);
  SetWord(client.local->data(), 8);
  EXPECT_FALSE(client.pair->Disconnect(world.clock().After(10'000)).ok());
  EXPECT_EQ(server.Word(0), 0u);
  world.Resume(world.ProcessOf(*server.fabric));
  EXPECT_TRUE(client.pair->Disconnect(world.clock().After(10'000)).ok());
  EXPECT_EQ(server.Word(0), 7u);
  // After the confirmed end of a connection nothing of it arrives.
  client.pair = client.Connect();
  SetWord(client.local->data(), 9);
  EXPECT_TRUE(client.Run(WorkRequest::Write(2, client.local->Slice(0, 8), client.At(0))).ok());
  Sleep(world, 100 * kMs);
  EXPECT_EQ(server.Word(0), 9u);
}

TEST(SimPause, AKilledProcessIsPausedNoMore) {
  World world({});
  const auto fabric = Take(world.OpenFabric("h", {}));
  const auto event = fabric->CreateEvent();
  auto thread = fabric->StartThread("waiter", [&] { event->Wait(Deadline::Never()); });
  world.Pause(world.ProcessOf(*fabric), true);
  event->Set();
  world.KillProcess(world.ProcessOf(*fabric));
  thread.reset();
  EXPECT_FALSE(world.Paused(world.ProcessOf(*fabric)));
}

// -- One way.

TEST(SimOneWay, RequestsArriveAndAnswersDoNot) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server, {.secret = "secret", .peer_timeout_us = 5'000});
  world.PartitionOneWay("m0", "c0");
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_EQ(server.Word(0), 1u) << "it has taken effect";
  world.Heal("m0", "c0");

  client.pair = client.Connect();
  world.PartitionOneWay("c0", "m0");
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_EQ(server.Word(0), 1u) << "it has not arrived";
}

TEST(SimOneWay, CallsNeedBothWays) {
  for (const bool there : {false, true}) {
    World world({});
    const auto here = Take(world.OpenFabric("a", {.peer_timeout_us = 5'000}));
    const auto server = Take(world.OpenFabric("b", {}));
    world.PartitionOneWay(there ? "a" : "b", there ? "b" : "a");
    EXPECT_EQ(world.Reachable(world.ProcessOf(*here), world.ProcessOf(*server)), !there);
    const auto answer = here->CreateEvent();
    EXPECT_EQ(
        world.Await(*answer, world.ProcessOf(*here), world.ProcessOf(*server), Deadline::Never()).code(),
        absl::StatusCode::kUnavailable);
  }
}

// -- Cards.

TEST(SimCard, ASlowOneTakesItsTimesAsLong) {
  World world({});
  MemoryServer server(world, "m0"), other(world, "m1");
  Client client(world, "c0", server), to_other(world, "c1", other);
  const auto latency_ns = [&](Client& of) {
    const int64_t begin_ns = world.NowNs();
    EXPECT_TRUE(of.Add(0).ok());
    return world.NowNs() - begin_ns;
  };
  EXPECT_EQ(latency_ns(client), 2'000);
  world.SlowDown("m0", 50);
  EXPECT_GT(latency_ns(client), 40'000);
  EXPECT_EQ(latency_ns(to_other), 2'000);
  world.SlowDown("m0", 1);
  EXPECT_EQ(latency_ns(client), 2'000);
}

// -- Freedom of READs in fabric.h, and its limits.

FaultPlan Overtaking() {
  FaultPlan plan;
  plan.overtaking_fetch = 1;
  plan.overtaking_ns_max = 20'000;
  return plan;
}

/// A counter in every word of a line, raised from first to last or in reverse.
void RaiseWords(World& world, MemoryServer& server, size_t words, bool upwards, const bool& stop) {
  for (uint64_t count = 1; !stop; ++count) {
    for (size_t i = 0; i < words; ++i) {
      SetWord(server.region->data() + 8 * (upwards ? i : words - 1 - i), count);
      Sleep(world, 200);
    }
  }
}

TEST(SimOvertaking, WordsOfAReadAreFetchedInAnyOrder) {
  constexpr size_t kWords = 32;
  for (const bool upwards : {true, false}) {
    World world({.faults = Overtaking()});
    MemoryServer server(world, "m0");
    Client client(world, "c0", server);
    bool stop = false;
    auto writer =
        server.fabric->StartThread("writer", [&] { RaiseWords(world, server, kWords, upwards, stop); });
    int rises = 0, falls = 0;
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(client.Run(WorkRequest::Read(1, client.local->Slice(0, 8 * kWords), client.At(0))).ok());
      for (size_t word = 1; word < kWords; ++word) {
        rises += client.LocalWord(8 * word) > client.LocalWord(8 * word - 8);
        falls += client.LocalWord(8 * word) < client.LocalWord(8 * word - 8);
      }
    }
    stop = true;
    writer.reset();
    EXPECT_GT(rises, 100);
    EXPECT_GT(falls, 100);
  }
}

TEST(SimOvertaking, AReadBehindAReadSeesNothingOlder) {
  World world({.faults = Overtaking()});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  bool stop = false;
  constexpr size_t kWords = 32;
  auto writer = server.fabric->StartThread("writer", [&] { RaiseWords(world, server, kWords, true, stop); });
  for (int i = 0; i < 100; ++i) {
    constexpr size_t kBytes = 8 * kWords;
    ASSERT_TRUE(RunAll(client, {WorkRequest::Read(1, client.local->Slice(0, kBytes), client.At(0)),
                                WorkRequest::Read(2, client.local->Slice(kBytes, kBytes), client.At(0)),
                                WorkRequest::Read(3, client.local->Slice(2 * kBytes, 8), client.At(0))}));
    for (size_t word = 0; word < kWords; ++word) {
      EXPECT_GE(client.LocalWord(kBytes + 8 * word), client.LocalWord(8 * word));
    }
    EXPECT_GE(client.LocalWord(2 * kBytes), client.LocalWord(kBytes));
  }
  stop = true;
}

TEST(SimOvertaking, AReadSeesTheWritesAndAtomicsBeforeItAndMayMissThoseBehindIt) {
  World world({.faults = Overtaking()});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  int passed = 0;
  for (uint64_t round = 1; round <= 100; ++round) {
    SetWord(client.local->data(), round);
    ASSERT_TRUE(RunAll(client, {WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0)),
                                WorkRequest::FetchAdd(2, client.local->Slice(8, 8), client.At(8), 1),
                                WorkRequest::Read(3, client.local->Slice(16, 24), client.At(0)),
                                WorkRequest::FetchAdd(4, client.local->Slice(40, 8), client.At(16), 1)}));
    EXPECT_EQ(client.LocalWord(16), round);
    EXPECT_EQ(client.LocalWord(24), round);
    passed += client.LocalWord(32) == round ? 1 : 0;
  }
  EXPECT_GT(passed, 10);
}

// -- In place.

TEST(SimInPlace, AViewIsTheMemoryItselfAndOutlivesItsRegion) {
  World world({.in_place = true});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  ASSERT_TRUE(client.fabric->capabilities().in_place);
  auto region = Take(server.fabric->Allocate(4096, {}));
  SetWord(region->data(), 7);
  const auto view = Take(client.pair->View({region->rkey(), 0}, 8));
  SetWord(region->data(), 8);
  uint64_t seen = 0;
  std::memcpy(&seen, view.data(), sizeof(seen));
  EXPECT_EQ(seen, 8u);
  const RemoteKey key = region->rkey();
  region.reset();
  std::memcpy(&seen, view.data(), sizeof(seen));
  EXPECT_EQ(seen, 8u);
  EXPECT_EQ(client.pair->View({key, 0}, 8).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(SimInPlace, AViewOfADeadPeerIsUnavailableBeforeTheNewsOfItsEndArrives) {
  World world({.in_place = true});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  ASSERT_TRUE(client.pair->View(client.At(0), 8).ok());
  world.KillHost("m0");
  EXPECT_EQ(client.pair->state(), QueuePairState::kReady);
  EXPECT_EQ(client.pair->View(client.At(0), 8).status().code(), absl::StatusCode::kUnavailable);
}

TEST(SimInPlace, OperationsHaveTakenEffectWhenTheyReturnBehindAllThatWasPosted) {
  World world({.in_place = true});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  auto* const now = dynamic_cast<ImmediateOperations*>(client.pair.get());
  ASSERT_NE(now, nullptr);
  const WorkRequest add = WorkRequest::FetchAdd(1, client.local->Slice(0, 8), client.At(0), 5);
  ASSERT_TRUE(client.pair->Post({&add, 1}).ok());
  uint64_t old = 0;
  EXPECT_EQ(now->FetchAddNow(client.At(0), 1, &old), CompletionStatus::kOk);
  EXPECT_EQ(old, 5u);
  EXPECT_EQ(server.Word(0), 6u);
  EXPECT_EQ(now->CompareAndSwapNow(client.At(0), 6, 9, &old), CompletionStatus::kOk);
  EXPECT_EQ(server.Word(0), 9u);
  const std::array<std::byte, 8> bytes{};
  EXPECT_EQ(now->WriteNow(bytes.data(), 8, client.At(kRegionBytes)), CompletionStatus::kRemoteAccessError);
  EXPECT_EQ(client.pair->state(), QueuePairState::kError);
}

TEST(SimInPlace, ConnectionsBreakAndSlowCardsAreSlow) {
  int executed = 0;
  constexpr int kSeeds = 20;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FaultPlan plan;
    plan.queue_pair_error = 1;
    World world({.seed = seed, .faults = plan, .in_place = true});
    MemoryServer server(world, "m0");
    Client client(world, "c0", server);
    world.SlowDown("m0", 1'000);
    auto* const now = dynamic_cast<ImmediateOperations*>(client.pair.get());
    const int64_t begin_ns = world.NowNs();
    uint64_t old = 0;
    EXPECT_EQ(now->FetchAddNow(client.At(0), 1, &old), CompletionStatus::kPeerLost);
    world.clock().SleepUntil({world.NowNs()});
    EXPECT_GE(world.NowNs() - begin_ns, 50'000);
    EXPECT_EQ(client.pair->state(), QueuePairState::kError);
    executed += server.Word(0) == 1;
  }
  EXPECT_GT(executed, 0);
  EXPECT_LT(executed, kSeeds);
}

TEST(SimInPlace, AKeyThatIsRevokedInTheMiddleOfAWriteEndsIt) {
  FaultPlan plan;
  plan.torn_operation = 1;
  plan.torn_ns_max = 10'000;
  int ended_between = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    World world({.seed = seed, .faults = plan, .in_place = true});
    MemoryServer server(world, "m0");
    Client client(world, "c0", server);
    const auto own = Take(server.fabric->Allocate(4096, {.huge_pages = false}));
    CompletionStatus status = CompletionStatus::kOk;
    auto writer = client.fabric->StartThread("writer", [&] {
      std::array<std::byte, 256> bytes;
      bytes.fill(std::byte{1});
      auto* const now = dynamic_cast<ImmediateOperations*>(client.pair.get());
      status = now->WriteNow(bytes.data(), bytes.size(), {own->rkey(), 0});
    });
    Sleep(world, static_cast<int64_t>(200 * seed));
    EXPECT_TRUE(own->Revoke());
    const std::vector<std::byte> frozen(own->data(), own->data() + 256);
    writer.reset();
    EXPECT_TRUE(std::equal(frozen.begin(), frozen.end(), own->data())) << "changed after the fence";
    const auto ones = std::count(frozen.begin(), frozen.end(), std::byte{1});
    EXPECT_EQ(status, ones < 256 ? CompletionStatus::kRemoteAccessError : CompletionStatus::kOk);
    ended_between += ones > 0 && ones < 256;
  }
  EXPECT_GT(ended_between, 5);
}

}  // namespace
}  // namespace nam::fabric::sim
