#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "tests/fabric/sim_cluster.h"

/// Faults, calls and the history of a simulated world.
namespace nam::fabric::sim {
namespace {

// -- One history for one seed.

/// Clients add and read under a low rate of all faults.
struct Outcome {
  uint64_t hash = 0;
  uint64_t acknowledged = 0;
  uint64_t attempted = 0;
  uint64_t sum = 0;
  bool operator==(const Outcome&) const = default;
};

FaultPlan Weather() {
  FaultPlan plan;
  plan.delay_probability = 0.2;
  plan.delay_ns_max = 20'000;
  plan.queue_pair_error = 0.005;
  plan.torn_operation = 0.3;
  plan.wake_delay_ns_max = 2'000;
  plan.partitions = {{World::kStartNs + 1 * kMs, World::kStartNs + 2 * kMs, "m0", "c1"}};
  plan.queue_pair_errors = {{World::kStartNs + 3 * kMs, "m0", "c2"}};
  return plan;
}

/// Counters at 0, one per client; adds until its share is done, over as many queue pairs as break.
void AddShare(Client& client, int number, Outcome* outcome) {
  constexpr int kShare = 200;
  const auto offset = static_cast<uint64_t>(number) * 8;
  for (int done = 0; done < kShare;) {
    if (client.pair == nullptr || client.pair->state() == QueuePairState::kError) {
      client.pair.reset();
      client.pair = client.Connect();
      if (client.pair == nullptr) return;
    }
    ++outcome->attempted;
    const Completion completion = client.Add(offset);
    if (!completion.ok()) {
      EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
      continue;
    }
    ++done;
    ++outcome->acknowledged;
  }
}

Outcome RunShares(uint64_t seed, const FaultPlan& plan, const std::string& trace_path = "") {
  Outcome outcome;
  World world({.seed = seed, .faults = plan, .duration_ns_max = 60'000 * kMs, .trace_path = trace_path});
  MemoryServer server(world, "m0");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i)
    clients.push_back(std::make_unique<Client>(world, absl::StrCat("c", i), server));
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 3; ++i) {
      threads.push_back(clients[static_cast<size_t>(i)]->fabric->StartThread(
          "adder", [&, i] { AddShare(*clients[static_cast<size_t>(i)], i, &outcome); }));
    }
  }
  for (size_t i = 0; i < 3; ++i) outcome.sum += server.Word(i * 8);
  outcome.hash = world.TraceHash();
  return outcome;
}

TEST(SimHistory, EverySeedKeepsItsPromisesAndRepeats) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Outcome outcome = RunShares(seed, Weather());
    EXPECT_EQ(outcome.acknowledged, 600u);
    EXPECT_GE(outcome.sum, outcome.acknowledged) << "what completed took effect, once";
    EXPECT_LE(outcome.sum, outcome.attempted) << "what failed did at most once";
    EXPECT_TRUE(hashes.insert(outcome.hash).second) << "another seed, another history";
    if (seed <= 10) {
      EXPECT_TRUE(RunShares(seed, Weather()) == outcome) << "the same seed, the same history";
    }
  }
}

TEST(SimHistory, TheTraceIsTheSameByteForByte) {
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    const std::string path = testing::TempDir() + "/trace-" + std::to_string(i);
    RunShares(7, Weather(), path);
    std::ifstream file(path);
    texts[i].assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_GT(texts[0].size(), 10'000u);
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(SimHistory, RandomnessComesFromTheSeed) {
  const auto draw = [](uint64_t seed) {
    World world({.seed = seed});
    const auto one = Take(world.OpenFabric("h", {}));
    const auto other = Take(world.OpenFabric("h", {}));
    return std::array{one->Random(), one->Random(), other->Random()};
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  EXPECT_NE(draw(1)[0], draw(1)[2]);
}

// -- Faults.

TEST(SimFaults, DelayLetsQueuePairsOvertakeEachOther) {
  FaultPlan plan;
  plan.delay_probability = 0.5;
  plan.delay_ns_max = 50'000;
  World world({.faults = plan});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const auto second = client.Connect();
  int overtaken = 0;
  for (uint64_t round = 1; round <= 50; ++round) {
    const WorkRequest earlier = WorkRequest::FetchAdd(1, client.local->Slice(0, 8), client.At(0), 1);
    const WorkRequest later = WorkRequest::FetchAdd(2, client.local->Slice(8, 8), client.At(0), 1);
    ASSERT_TRUE(client.pair->Post({&earlier, 1}).ok() && second->Post({&later, 1}).ok());
    Completion completion;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(client.completions->Wait({&completion, 1}, Deadline::Never()), 1u);
    overtaken += client.LocalWord(8) < client.LocalWord(0) ? 1 : 0;
  }
  EXPECT_GT(overtaken, 5);
  EXPECT_LT(overtaken, 45);
}

TEST(SimFaults, TornOperationsAreSeenByOthersAndWholeInTheEnd) {
  FaultPlan plan;
  plan.torn_operation = 1;
  World world({.faults = plan});
  MemoryServer server(world, "m0");
  Client writer(world, "c0", server);
  Client reader(world, "c1", server);
  constexpr size_t kBytes = 256;
  int torn = 0;
  bool stop = false;
  const auto thread = writer.fabric->StartThread("writer", [&] {
    for (int round = 1; round < 200; ++round) {
      std::memset(writer.local->data(), round, kBytes);
      EXPECT_TRUE(writer.Run(WorkRequest::Write(1, writer.local->Slice(0, kBytes), writer.At(0))).ok());
      EXPECT_TRUE(std::equal(writer.local->data(), writer.local->data() + kBytes, server.region->data()));
    }
    stop = true;
  });
  while (!stop) {
    ASSERT_TRUE(reader.Run(WorkRequest::Read(1, reader.local->Slice(0, kBytes), reader.At(0))).ok());
    const std::byte* data = reader.local->data();
    torn += std::all_of(data, data + kBytes, [&](std::byte b) { return b == data[0]; }) ? 0 : 1;
    for (size_t i = 0; i < kBytes; i += 8) {
      ASSERT_TRUE(std::all_of(data + i, data + i + 8, [&](std::byte b) { return b == data[i]; }))
          << "a torn word";
    }
  }
  EXPECT_GT(torn, 10);
}

TEST(SimFaults, BrokenQueuePairsAreLostAtBothEndsAndNewOnesWork) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  Client other(world, "c1", server);
  ASSERT_TRUE(client.Add(0).ok());
  world.BreakQueuePairs("c0", "m0");
  EXPECT_EQ(client.pair->state(), QueuePairState::kError);
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kFlushed);
  EXPECT_TRUE(other.Add(0).ok());
  client.pair = client.Connect();
  EXPECT_TRUE(client.Add(0).ok());
  EXPECT_EQ(server.Word(0), 3u);
}

TEST(SimFaults, AShortPartitionDelaysAndALongOneBreaks) {
  World world({});
  const FabricOptions options{.secret = "secret", .peer_timeout_us = 10'000};
  MemoryServer server(world, "m0", options);
  Client client(world, "c0", server, options);
  const auto heal = [&](int64_t after_ns) {
    return client.fabric->StartThread("healer", [&world, after_ns] {
      Sleep(world, after_ns);
      world.Heal("c0", "m0");
    });
  };
  world.Partition("m0", "c0");
  {
    const auto healer = heal(5 * kMs);
    const int64_t begin_ns = world.NowNs();
    EXPECT_TRUE(client.Add(0).ok());
    EXPECT_GE(world.NowNs() - begin_ns, 5 * kMs);
  }
  world.Partition("m0", "c0");
  const int64_t begin_ns = world.NowNs();
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_NEAR(static_cast<double>(world.NowNs() - begin_ns), 10.0 * kMs, 1'000);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client.fabric->Connect(client.address, *client.completions, {}, world.clock().After(1'000)).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      client.fabric->Connect(client.address, *client.completions, {}, world.clock().After(1'000'000))
          .status()));
  const auto healer = heal(5 * kMs);
  client.pair.reset();
  client.pair = client.Connect();
  EXPECT_TRUE(client.Add(0).ok());
  EXPECT_EQ(server.Word(0), 2u);
}

TEST(SimFaults, WhatOneEndGivesUpIsLostAtTheOtherToo) {
  World world({});
  const auto impatient = Take(world.OpenFabric("a", {.secret = "s", .peer_timeout_us = 5'000}));
  const auto patient = Take(world.OpenFabric("b", {.secret = "s", .peer_timeout_us = 50'000}));
  const auto listener = Take(patient->Listen({.address = ":0", .passive = false}));
  const auto here = Take(impatient->CreateCompletionQueue(512));
  const auto there = Take(patient->CreateCompletionQueue(512));
  const auto connect = [&] {
    return Take(impatient->Connect(listener->address(), *here, {}, world.clock().After(1'000'000)));
  };
  const auto accept = [&] { return Take(listener->Accept(*there, {}, world.clock().After(1'000'000))); };
  const auto gives_up = connect();
  const auto other_end = accept();
  world.Partition("a", "b");
  Sleep(world, 10 * kMs);
  EXPECT_EQ(gives_up->state(), QueuePairState::kError);
  EXPECT_EQ(other_end->state(), QueuePairState::kReady) << "it cannot know yet";
  world.Heal("a", "b");
  Sleep(world, kMs);
  EXPECT_EQ(other_end->state(), QueuePairState::kError);
  // The news of a killed process is on its way when its host dies, and never comes.
  const auto killed = connect();
  const auto waits = accept();
  world.KillProcess(world.ProcessOf(*impatient));
  world.KillHost("a");
  Sleep(world, 40 * kMs);
  EXPECT_EQ(waits->state(), QueuePairState::kReady);
  Sleep(world, 20 * kMs);
  EXPECT_EQ(waits->state(), QueuePairState::kError);
}

TEST(SimFaults, ADeadHostIsNoticedByTimeoutAndADeadProcessAtOnce) {
  World world({});
  const FabricOptions options{.secret = "secret", .peer_timeout_us = 10'000};
  MemoryServer server(world, "m0", options);
  MemoryServer neighbour(world, "m1", options);
  Client client(world, "c0", server, options);
  Client second(world, "c1", neighbour, options);
  world.KillProcess(world.ProcessOf(*neighbour.fabric));
  int64_t begin_ns = world.NowNs();
  EXPECT_EQ(second.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_LT(world.NowNs() - begin_ns, kMs);
  world.KillHost("m0");
  begin_ns = world.NowNs();
  EXPECT_EQ(client.Add(0).status, CompletionStatus::kPeerLost);
  EXPECT_GE(world.NowNs() - begin_ns, 10 * kMs);
  EXPECT_EQ(server.Word(0), 0u);
  EXPECT_TRUE(absl::IsUnavailable(world.OpenFabric("m0", options).status()));
  world.RestartHost("m0");
  MemoryServer again(world, "m0", options);
  Client third(world, "c2", again, options);
  EXPECT_TRUE(third.Add(0).ok());
  EXPECT_EQ(again.Word(0), 1u);
}

TEST(SimFaults, ADeadProcessReachesNobodyAndItsThreadsUnwind) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  bool unwound = false;
  {
    const auto thread = client.fabric->StartThread("adder", [&] {
      while (client.Add(0).ok()) {
      }
      EXPECT_EQ(client.pair->state(), QueuePairState::kError);
      EXPECT_EQ(client.Add(0).status, CompletionStatus::kFlushed);
      const Deadline soon = world.clock().After(1'000'000);
      EXPECT_TRUE(absl::IsUnavailable(
          client.fabric->Connect(client.address, *client.completions, {}, soon).status()));
      EXPECT_TRUE(absl::IsUnavailable(client.fabric->Listen({.address = ":0"}).status()));
      EXPECT_TRUE(absl::IsUnavailable(client.fabric->Allocate(4096, {}).status()));
      unwound = true;
    });
    Sleep(world, kMs);
    // What is posted now never takes effect.
    const uint64_t before = server.Word(0);
    world.KillProcess(world.ProcessOf(*client.fabric));
    EXPECT_EQ(server.Word(0), before);
    EXPECT_GT(before, 100u);
    Sleep(world, kMs);
    EXPECT_EQ(server.Word(0), before);
  }
  EXPECT_TRUE(unwound);
  EXPECT_FALSE(world.Alive(world.ProcessOf(*client.fabric)));
  EXPECT_TRUE(world.AddressesOf(world.ProcessOf(*client.fabric)).empty());
}

TEST(SimFaults, ThePlanKillsAndRestarts) {
  FaultPlan plan;
  plan.deaths = {{World::kStartNs + 5 * kMs, World::kStartNs + 8 * kMs, "m0"}};
  World world({.faults = plan});
  MemoryServer server(world, "m0");
  const ProcessId process = world.ProcessOf(*server.fabric);
  EXPECT_TRUE(world.Alive(process));
  Sleep(world, 6 * kMs);
  EXPECT_FALSE(world.Alive(process));
  EXPECT_FALSE(world.OpenFabric("m0", {}).ok());
  Sleep(world, 3 * kMs);
  EXPECT_TRUE(world.OpenFabric("m0", {}).ok());
  EXPECT_FALSE(world.Alive(process)) << "the host is back, and what ran there is not";
}

/// How often each of 1,000 numbered datagrams arrived, and how many came before an earlier one.
struct Arrivals {
  std::vector<int> times = std::vector<int>(1'000);
  int late = 0;
  auto Count(int times_wanted) const { return std::count(times.begin(), times.end(), times_wanted); }
};

Arrivals SendDatagrams(const FaultPlan& plan) {
  World world({.faults = plan});
  const auto one = Take(world.OpenFabric("a", {.secret = "s"}));
  const auto other = Take(world.OpenFabric("b", {.secret = "s"}));
  const auto from = Take(one->Allocate(4096, {}));
  const auto into = Take(other->Allocate(64 * 4000, {}));
  const auto sent = Take(one->CreateCompletionQueue(1));
  const auto received = Take(other->CreateCompletionQueue(4001));
  const auto sender = Take(one->CreateDatagramQueuePair(*sent, {.send_depth = 1, .receive_depth = 0}));
  const auto receiver =
      Take(other->CreateDatagramQueuePair(*received, {.send_depth = 1, .receive_depth = 4000}));
  for (uint64_t i = 0; i < 4000; ++i) {
    const ReceiveRequest receive{.id = i, .into = into->Slice(i * 64, 64)};
    EXPECT_TRUE(receiver->PostReceive({&receive, 1}).ok());
  }
  const DatagramTarget target = Take(sender->Resolve(receiver->address()));
  Completion completion;
  for (uint64_t i = 0; i < 1'000; ++i) {
    std::memcpy(from->data(), &i, 8);
    const DatagramRequest request{.local = from->Slice(0, 8), .to = target};
    EXPECT_TRUE(sender->Post({&request, 1}).ok());
    EXPECT_EQ(sent->Wait({&completion, 1}, Deadline::Never()), 1u);
  }
  Arrivals arrivals;
  uint64_t highest = 0;
  while (received->Wait({&completion, 1}, world.clock().After(1'000)) == 1) {
    uint64_t number;
    std::memcpy(&number, into->data() + completion.id * 64 + kDatagramHeadroomBytes, 8);
    ++arrivals.times.at(number);
    arrivals.late += number < highest ? 1 : 0;
    highest = std::max(highest, number);
  }
  return arrivals;
}

TEST(SimFaults, DatagramsAreLostDoubledAndLate) {
  const Arrivals calm = SendDatagrams({});
  EXPECT_EQ(calm.Count(1), 1'000);
  EXPECT_EQ(calm.late, 0);
  FaultPlan plan;
  plan.datagram_loss = 0.1;
  const Arrivals lost = SendDatagrams(plan);
  EXPECT_NEAR(static_cast<double>(lost.Count(0)), 100, 50);
  EXPECT_EQ(lost.Count(0) + lost.Count(1), 1'000);
  plan = {};
  plan.datagram_duplicate = 0.1;
  EXPECT_NEAR(static_cast<double>(SendDatagrams(plan).Count(2)), 100, 50);
  plan = {};
  plan.datagram_reorder = 0.1;
  const Arrivals late = SendDatagrams(plan);
  EXPECT_EQ(late.Count(1), 1'000);
  EXPECT_GT(late.late, 20);
}

// -- The parts of control-plane calls.

class SimCalls : public testing::Test {
 protected:
  /// A call whose handler takes `handler_ns`.
  absl::Status Call(ProcessId from, ProcessId to, int64_t handler_ns, Deadline deadline) {
    const auto answered = std::shared_ptr<Event>(client_->CreateEvent());
    world_.StartDetached(to, "handler", [this, answered, handler_ns] {
      Sleep(world_, world_.RpcDelayNs() + handler_ns + world_.RpcDelayNs());
      answered->Set();
    });
    return world_.Await(*answered, from, to, deadline);
  }

  World world_{{}};
  const FabricOptions options_{.peer_timeout_us = 10'000};
  const std::unique_ptr<Fabric> server_ = Take(world_.OpenFabric("m0", options_));
  const std::unique_ptr<Fabric> client_ = Take(world_.OpenFabric("c0", options_));
  const ProcessId there_ = world_.ProcessOf(*server_);
  const ProcessId here_ = world_.ProcessOf(*client_);
};

TEST_F(SimCalls, AnAnswerTakesTheWayThereAndBack) {
  const int64_t begin_ns = world_.NowNs();
  EXPECT_TRUE(Call(here_, there_, 0, Deadline::Never()).ok());
  EXPECT_GE(world_.NowNs() - begin_ns, 2 * FaultPlan().rpc_delay_ns_min);
  EXPECT_LE(world_.NowNs() - begin_ns, 2 * FaultPlan().rpc_delay_ns_max + 1'000);
  EXPECT_TRUE(Call({}, there_, 0, Deadline::Never()).ok()) << "the driver reaches all processes";
}

TEST_F(SimCalls, ADeadlineEndsTheWait) {
  const Deadline deadline = world_.clock().After(1'000);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Call(here_, there_, 100 * kMs, deadline)));
  EXPECT_NEAR(static_cast<double>(world_.NowNs()), static_cast<double>(deadline.ns), 1'000);
  world_.AwaitDetached(there_);
  EXPECT_GE(world_.NowNs(), deadline.ns + 99 * kMs);
}

TEST_F(SimCalls, APartitionEndsItAfterThePeerTimeoutUnlessItHeals) {
  const auto parter = client_->StartThread("parter", [&] {
    Sleep(world_, kMs);
    world_.Partition("c0", "m0");
    Sleep(world_, 5 * kMs);
    world_.Heal("c0", "m0");
    Sleep(world_, 10 * kMs);
    world_.Partition("c0", "m0");
  });
  EXPECT_TRUE(Call(here_, there_, 12 * kMs, Deadline::Never()).ok()) << "a short one only delays";
  const absl::Status parted = Call(here_, there_, 100 * kMs, Deadline::Never());
  EXPECT_TRUE(absl::IsUnavailable(parted)) << parted.ToString();
  EXPECT_FALSE(world_.Reachable(here_, there_));
  EXPECT_TRUE(world_.Reachable({}, there_));
  world_.Heal("m0", "c0");
  EXPECT_TRUE(world_.Reachable(here_, there_));
}

TEST_F(SimCalls, AKilledServerIsNoticedAtOnceAndADeadHostByTimeout) {
  const auto killer = client_->StartThread("killer", [&] {
    Sleep(world_, kMs);
    world_.KillProcess(there_);
  });
  int64_t begin_ns = world_.NowNs();
  EXPECT_TRUE(absl::IsUnavailable(Call(here_, there_, 100 * kMs, Deadline::Never())));
  EXPECT_LT(world_.NowNs() - begin_ns, 2 * kMs);
  const auto other = Take(world_.OpenFabric("m1", options_));
  world_.KillHost("m1");
  begin_ns = world_.NowNs();
  EXPECT_TRUE(absl::IsUnavailable(Call(here_, world_.ProcessOf(*other), 100 * kMs, Deadline::Never())));
  EXPECT_GE(world_.NowNs() - begin_ns, 10 * kMs);
  EXPECT_TRUE(absl::IsUnavailable(Call(there_, here_, kMs, Deadline::Never())))
      << "a dead process makes no calls";
}

}  // namespace
}  // namespace nam::fabric::sim
