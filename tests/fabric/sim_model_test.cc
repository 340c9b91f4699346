#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cache_costs.h"
#include "fabric/fabric.h"
#include "fabric/sim/cache_model.h"
#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"
#include "tests/fabric/sim_cluster.h"

/// Predictions of the network card model: latencies, line rate, and the shapes of the papers' figures.
namespace nam::fabric::sim {
namespace {

constexpr uint32_t kBlockBytes = 2048;

TEST(SimModel, SmallOperationsTakeTheModelsLatency) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const LocalBuffer word = client.local->Slice(0, 8);
  const auto latency_ns = [&](const WorkRequest& request) {
    const int64_t begin_ns = world.NowNs();
    EXPECT_TRUE(client.Run(request).ok());
    return world.NowNs() - begin_ns;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(latency_ns(WorkRequest::Write(1, word, client.At(0))), 1'000);
    EXPECT_EQ(latency_ns(WorkRequest::Read(1, word, client.At(0))), 2'000);
    EXPECT_EQ(latency_ns(WorkRequest::FetchAdd(1, word, client.At(0), 1)), 2'000);
    EXPECT_EQ(latency_ns(WorkRequest::CompareAndSwap(1, word, client.At(0), 0, 1)), 2'000);
  }
}

TEST(SimModel, ASendTakesItsLatencyToBothEnds) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const auto active = Take(server.fabric->Listen({.address = ":0", .passive = false}));
  const auto queue = Take(server.fabric->CreateCompletionQueue(512));
  client.address = active->address();
  client.pair = client.Connect();
  const auto accepted = Take(active->Accept(*queue, {}, world.clock().After(1'000'000)));
  const ReceiveRequest receive{.id = 1, .into = server.region->Slice(0, 64)};
  ASSERT_TRUE(accepted->PostReceive({&receive, 1}).ok());
  int64_t received_ns = 0;
  auto receiver = server.fabric->StartThread("receiver", [&] {
    Completion completion;
    EXPECT_EQ(queue->Wait({&completion, 1}, Deadline::Never()), 1u);
    received_ns = world.NowNs();
  });
  world.clock().SleepUntil(world.clock().After(100));
  const int64_t begin_ns = world.NowNs();
  EXPECT_TRUE(client.Run(WorkRequest::Send(2, client.local->Slice(0, 8))).ok());
  EXPECT_EQ(world.NowNs() - begin_ns, 1'000);
  receiver.reset();
  EXPECT_EQ(received_ns - begin_ns, 1'000);
}

/// READs blocks with `window` in flight on `threads` queue pairs for a while; each block costs `block_ns` of
/// CPU. Millions of blocks per second.
class Readers {
 public:
  Readers(World& world, const MemoryServer& server, const std::string& host, int threads, uint32_t window,
          int64_t block_ns, Opcode opcode = Opcode::kRead)
      : world_(world),
        end_ns_(world.NowNs() + kRunNs),
        fabric_(Take(world.OpenFabric(host, {.secret = "secret"}))) {
    for (int i = 0; i < threads; ++i) {
      threads_.push_back(fabric_->StartThread(
          absl::StrCat("reader-", i), [=, this, &server] { Stream(server, window, block_ns, opcode); }));
    }
  }
  double MillionPerSecond() {
    threads_.clear();
    return static_cast<double>(blocks_) * 1e3 / static_cast<double>(kRunNs);
  }

 private:
  static constexpr int64_t kRunNs = 2'000'000;
  void Stream(const MemoryServer& server, uint32_t window, int64_t block_ns, Opcode opcode) {
    const auto local = Take(fabric_->Allocate(size_t{window} * kBlockBytes, {}));
    const auto queue = Take(fabric_->CreateCompletionQueue(256));
    const auto pair = Take(fabric_->Connect(server.listener->address(), *queue,
                                            {.send_depth = 128, .receive_depth = 0}, Deadline::Never()));
    const auto post = [&](uint64_t slot) {
      const LocalBuffer buffer = local->Slice(slot * kBlockBytes, kBlockBytes);
      const RemoteAddress at{server.region->rkey(), slot * kBlockBytes};
      const WorkRequest request = opcode == Opcode::kRead ? WorkRequest::Read(slot, buffer, at)
                                                          : WorkRequest::Write(slot, buffer, at);
      EXPECT_TRUE(pair->Post({&request, 1}).ok());
    };
    for (uint64_t slot = 0; slot < window; ++slot) post(slot);
    Completion completion;
    while (world_.NowNs() < end_ns_ && queue->Wait({&completion, 1}, Deadline::Never()) == 1) {
      EXPECT_TRUE(completion.ok());
      world_.clock().Charge(block_ns);
      ++blocks_;
      post(completion.id);
    }
  }

  World& world_;
  const int64_t end_ns_;
  uint64_t blocks_ = 0;
  const std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

double LineRate(const NicModel& model, Opcode opcode) {
  World world({.nic = model});
  MemoryServer server(world, "m0");
  Readers readers(world, server, "c0", 16, 16, 0, opcode);
  const double bytes_per_us = readers.MillionPerSecond() * kBlockBytes;
  return bytes_per_us / (static_cast<double>(model.port_bytes_per_us) * model.ports);
}

TEST(SimModel, TwoKibReachLineRate) {
  const NicModel fdr = Take(NicModel::Named("fdr"));
  EXPECT_GE(LineRate(fdr, Opcode::kRead), 0.95);
  EXPECT_GE(LineRate(fdr, Opcode::kWrite), 0.95);
  EXPECT_LE(LineRate(fdr, Opcode::kRead), 1.0);
  NicModel one_port = fdr;
  one_port.ports = 1;
  EXPECT_GE(LineRate(one_port, Opcode::kRead), 0.95);
}

/// A scan that costs a core 850 ns a block beside posting and polling: about 2.4 GB/s of summing 8-byte
/// tuples. Five of them, one memory server.
constexpr int64_t kScanNs = 850;
constexpr int kScans = 5;

double Window(uint32_t window) {
  World world({});
  MemoryServer server(world, "m0");
  return Readers(world, server, "c0", kScans, window, kScanNs).MillionPerSecond();
}

TEST(SimModel, PrefetchingHasThePapersShape) {
  const double one = Window(1), five = Window(5), ten = Window(10);
  std::cout << "window 1: " << one << ", 5: " << five << ", 10: " << ten << " M blocks/s\n";
  EXPECT_GE(ten / one, 2.5);
  EXPECT_LE(ten / one, 3.7);
  EXPECT_GE(five / ten, 0.9);
  EXPECT_NEAR(ten, 5.0, 0.5);
}

double ReadsTo(int receivers) {
  World world({});
  MemoryServer server(world, "m0");
  std::vector<std::unique_ptr<Readers>> all;
  for (int i = 0; i < receivers; ++i) {
    all.push_back(std::make_unique<Readers>(world, server, absl::StrCat("c", i), kScans, 10, kScanNs));
  }
  double sum = 0;
  for (const auto& one : all) sum += one->MillionPerSecond();
  return sum / receivers;
}

/// One sender of 2 KiB datagrams at full speed; returns the members' average rate.
double MulticastTo(int receivers) {
  constexpr int64_t kRunNs = 2'000'000;
  constexpr uint32_t kSlots = 512, kSlotBytes = 4096;
  World world({});
  const auto fabric = Take(world.OpenFabric("m0", {.secret = "secret"}));
  const auto blocks = Take(fabric->Allocate(kBlockBytes, {}));
  const auto queue = Take(fabric->CreateCompletionQueue(64));
  const auto sender = Take(fabric->CreateDatagramQueuePair(*queue, {.send_depth = 64, .receive_depth = 0}));
  const DatagramTarget group = Take(sender->OpenGroup(1));
  const std::string address = Take(sender->GroupAddress(group));
  const int64_t end_ns = world.NowNs() + kRunNs;
  uint64_t received = 0;
  std::vector<std::unique_ptr<Fabric>> fabrics;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < receivers; ++i) {
    fabrics.push_back(Take(world.OpenFabric(absl::StrCat("c", i), {.secret = "secret"})));
    threads.push_back(fabrics.back()->StartThread("member", [&, &mine = *fabrics.back()] {
      const auto memory = Take(mine.Allocate(size_t{kSlots} * kSlotBytes, {}));
      const auto completions = Take(mine.CreateCompletionQueue(kSlots + 1));
      const auto pair =
          Take(mine.CreateDatagramQueuePair(*completions, {.send_depth = 1, .receive_depth = kSlots}));
      const auto post = [&](uint64_t slot) {
        const ReceiveRequest receive{.id = slot, .into = memory->Slice(slot * kSlotBytes, kSlotBytes)};
        EXPECT_TRUE(pair->PostReceive({&receive, 1}).ok());
      };
      for (uint64_t slot = 0; slot < kSlots; ++slot) post(slot);
      EXPECT_TRUE(pair->Join(address).ok());
      std::array<Completion, 16> some;
      while (world.NowNs() < end_ns) {
        const size_t count = completions->Wait(some, {end_ns});
        for (size_t j = 0; j < count; ++j) post(some[j].id);
        received += count;
      }
    }));
  }
  Completion completion;
  uint64_t in_flight = 0;
  while (world.NowNs() < end_ns) {
    const DatagramRequest request{.local = blocks->Slice(0, kBlockBytes), .to = group};
    EXPECT_TRUE(sender->Post({&request, 1}).ok());
    if (++in_flight == 32) in_flight -= queue->Wait({&completion, 1}, Deadline::Never());
  }
  threads.clear();
  return static_cast<double>(received) * 1e3 / kRunNs / receivers;
}

TEST(SimModel, ReadsAreSharedAndMulticastIsNot) {
  for (const int receivers : {1, 2, 4, 8}) {
    const double reads = ReadsTo(receivers), multicast = MulticastTo(receivers);
    std::cout << receivers << " receivers: READ " << reads << ", multicast " << multicast
              << " M blocks/s each\n";
    const double expected = std::min(5.0, 6.4 / receivers);
    EXPECT_NEAR(reads, expected, 0.1 * expected) << receivers;
    EXPECT_NEAR(multicast, 4.0, 0.4) << receivers;
    if (receivers > 1) {
      EXPECT_GT(multicast, reads);
    }
  }
}

TEST(SimModel, ManySmallReadsReachTheMessageRate) {
  NicModel model;
  model.messages_per_us = 10;
  World world({.nic = model});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  std::vector<WorkRequest> batch(
      200, WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0), Signal::kUnsignaled));
  batch.back().signal = Signal::kSignaled;
  const int64_t begin_ns = world.NowNs();
  ASSERT_TRUE(client.pair->Post(batch).ok());
  Completion completion;
  ASSERT_EQ(client.completions->Wait({&completion, 1}, Deadline::Never()), 1u);
  EXPECT_EQ(world.NowNs() - begin_ns, 199 * 100 + 1'000) << "10 messages a µs, and the last one's latency";
}

TEST(SimModel, AtomicsOnOneWordTakeTurnsAndOthersDoNot) {
  constexpr size_t kClients = 8, kAdds = 50;
  const auto rate_per_us = [](bool same_word) {
    World world({});
    MemoryServer server(world, "m0");
    std::vector<std::unique_ptr<Client>> clients;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<Client>(world, absl::StrCat("c", i), server));
    }
    const int64_t begin_ns = world.NowNs();
    std::vector<std::unique_ptr<Thread>> threads;
    for (size_t i = 0; i < kClients; ++i) {
      threads.push_back(clients[i]->fabric->StartThread("adds", [&client = *clients[i], same_word, i] {
        for (size_t add = 0; add < kAdds; ++add) EXPECT_TRUE(client.Add(same_word ? 0 : 8 * i).ok());
      }));
    }
    threads.clear();
    EXPECT_EQ(server.Word(0), same_word ? kClients * kAdds : kAdds);
    return static_cast<double>(kClients * kAdds) * 1e3 / static_cast<double>(world.NowNs() - begin_ns);
  };
  EXPECT_NEAR(rate_per_us(true), 1e3 / NicModel().atomic_ns, 0.1);
  EXPECT_NEAR(rate_per_us(false), kClients / 2.0, 0.1) << "each waits for its own latency alone";
}

TEST(SimModel, ReadsInFlightAreBounded) {
  NicModel model;
  model.reads_in_flight_max = 1;
  model.post_ns = 0;
  World world({.nic = model});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const std::vector<WorkRequest> batch(10, WorkRequest::Read(1, client.local->Slice(0, 8), client.At(0)));
  const int64_t begin_ns = world.NowNs();
  ASSERT_TRUE(client.pair->Post(batch).ok());
  Completion completion;
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(client.completions->Wait({&completion, 1}, Deadline::Never()), 1u);
  }
  EXPECT_GE(world.NowNs() - begin_ns, 10 * 1'900) << "one after the other";
}

TEST(SimModel, GenerationsGetFaster) {
  int64_t bandwidth = 0, latency_ns = 1 << 30;
  for (const char* name : {"fdr", "edr", "hdr", "ndr"}) {
    const NicModel model = Take(NicModel::Named(name));
    EXPECT_TRUE(model.Validate().ok());
    EXPECT_GT(model.port_bytes_per_us, bandwidth);
    EXPECT_LT(model.read_ns, latency_ns);
    bandwidth = model.port_bytes_per_us;
    latency_ns = model.read_ns;
  }
  EXPECT_TRUE(absl::IsNotFound(NicModel::Named("qdr").status()));
}

TEST(SimModel, AModelCanComeFromAFile) {
  const std::string path = testing::TempDir() + "/card.toml";
  const auto parse = [&](const std::string& text) {
    std::ofstream(path) << text;
    return NicModel::Parse(path);
  };
  const NicModel model = Take(parse("base = \"edr\"\nname = \"mine\"\nports = 4\nread_ns = 5000\n"));
  EXPECT_EQ(model.name, "mine");
  EXPECT_EQ(model.ports, 4u);
  EXPECT_EQ(model.read_ns, 5'000);
  EXPECT_EQ(model.port_bytes_per_us, Take(NicModel::Named("edr")).port_bytes_per_us);
  for (const char* wrong :
       {"ports = 0", "ports = \"two\"", "portz = 1", "base = \"qdr\"", "read_ns = 10", "= 3"}) {
    const absl::Status refused = parse(wrong).status();
    EXPECT_FALSE(refused.ok()) << wrong;
    EXPECT_GT(refused.message().size(), 20u);
  }
  EXPECT_FALSE(NicModel::Parse("/nowhere/card.toml").ok());
}

TEST(SimModel, AccessesCostByTheCacheThatTheirWorkingSetFits) {
  const CacheModel whole = CacheModel::XeonE5(8, 1), small = CacheModel::XeonE5(8, 8);
  EXPECT_EQ(whole.l2_bytes, 256u << 10);
  EXPECT_EQ(whole.l3_bytes, (50u << 20) / 8);
  EXPECT_EQ(small.l2_bytes, whole.l2_bytes / 8);
  EXPECT_EQ(small.l3_bytes, whole.l3_bytes / 8);
  EXPECT_EQ(small.AccessPs(0), 0);
  EXPECT_EQ(small.AccessPs(small.l1_bytes), 0);
  int64_t before_ps = 0;
  for (uint64_t bytes = 2 * small.l1_bytes; bytes <= uint64_t{1} << 40; bytes *= 2) {
    const int64_t ps = small.AccessPs(bytes);
    EXPECT_GE(ps, before_ps) << bytes;
    EXPECT_GE(ps, whole.AccessPs(bytes)) << bytes;
    before_ps = ps;
  }
  EXPECT_LT(small.AccessPs(small.l2_bytes), small.l2_ps);
  EXPECT_LT(small.AccessPs(small.l3_bytes), small.l3_ps);
  EXPECT_NEAR(static_cast<double>(before_ps), static_cast<double>(small.memory_ps), 1);
}

TEST(SimModel, AWorldsClockHasItsCaches) {
  const auto caches_of = [](World& world) { return dynamic_cast<const CacheCosts*>(&world.clock()); };
  {
    World without({});
    EXPECT_EQ(caches_of(without), nullptr);
  }
  WorldOptions options;
  options.caches = CacheModel::XeonE5(8, 8);
  World with(options);
  ASSERT_NE(caches_of(with), nullptr);
  EXPECT_EQ(caches_of(with)->AccessPs(1 << 20), options.caches->AccessPs(1 << 20));
}

}  // namespace
}  // namespace nam::fabric::sim
