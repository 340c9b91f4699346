#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "fabric/fabric.h"
#include "txn/two_phase/cluster.h"

/// Two-phase commit with everything on this host: 3 participants, 1 coordinator, and clients that run
/// successive checkout transactions (read 3 products of 1 KB, update them, insert an order and 3 lines).
///
///     two_phase_benchmark [CLIENTS=2] [SECONDS=3] [PRODUCTS=50000]
///
/// The bottleneck, by perf on two cores: the kernel takes two thirds of all samples, waking and switching
/// threads for every message; over shm also the 20 µs for which each idle thread spins in AwaitRing.
namespace nam::txn::two_phase {
namespace {

constexpr uint32_t kProductBytes = 1024;
constexpr uint32_t kOrderBytes = 256;
constexpr uint32_t kLineBytes = 128;
constexpr uint32_t kProducts = 0, kOrders = 1, kLines = 2;  // table numbers

struct Load {
  int clients = 2;
  int seconds = 3;
  uint64_t products = 50'000;
};

template <size_t bytes>
struct Row {
  uint64_t key = 0;
  uint64_t stock = 0;
  std::byte rest[bytes - 16] = {};
};

template <typename T>
std::span<const std::byte> Bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void LoadProducts(Session& session, uint64_t products) {
  constexpr uint64_t kBatch = 1000;
  Row<kProductBytes> row;
  for (uint64_t key = 0; key < products;) {
    NAM_CHECK(session.Begin().ok());
    for (uint64_t i = 0; i < kBatch && key < products; ++i) {
      row.key = key++;
      NAM_CHECK(session.Insert({kProducts}, Bytes(row)).ok());
    }
    NAM_CHECK(session.Commit().ok());
  }
}

bool CheckOut(Session& session, std::mt19937_64& random, uint64_t products, uint64_t order) {
  NAM_CHECK(session.Begin().ok());
  uint64_t keys[3];
  Row<kProductBytes> rows[3];
  std::vector<Lookup> lookups;
  for (int i = 0; i < 3; ++i) {
    keys[i] = (random() % (products / 3)) * 3 + static_cast<uint64_t>(i);
    lookups.push_back({{kProducts}, Bytes(keys[i]), std::as_writable_bytes(std::span(&rows[i], 1))});
  }
  if (!session.Read(lookups).ok()) return false;
  for (Row<kProductBytes>& row : rows) {
    --row.stock;
    if (!session.Update({kProducts}, Bytes(row)).ok()) return false;
  }
  Row<kOrderBytes> head;
  head.key = order;
  NAM_CHECK(session.Insert({kOrders}, Bytes(head)).ok());
  for (uint64_t i = 0; i < 3; ++i) {
    Row<kLineBytes> line;
    line.key = order * 3 + i;
    NAM_CHECK(session.Insert({kLines}, Bytes(line)).ok());
  }
  return session.Commit().ok();
}

void Run(const char* name, fabric::Kind kind, const TransportOptions& transport,
         SessionOptions::Snapshots snapshots, const Load& load) {
  const auto open = [&] { return *fabric::Open({.kind = kind, .secret = "bench", .host = "127.0.0.1"}); };
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  for (int i = 0; i < 5; ++i) fabrics.push_back(open());
  fabric::Fabric& client = *fabrics[4];
  Cluster::Options options{
      .transport = transport,
      .participants = {fabrics[0].get(), fabrics[1].get(), fabrics[2].get()},
      .coordinators = {fabrics[3].get()},
      .tables = {
          {"products", kProductBytes, 8, 1}, {"orders", kOrderBytes, 8, 1}, {"lines", kLineBytes, 8, 1}}};
  options.transport.host = "127.0.0.1";
  const std::unique_ptr<Cluster> cluster = *Cluster::Start(options);
  LoadProducts(**cluster->OpenSession(client), load.products);
  std::atomic<uint64_t> committed = 0, aborted = 0;
  const uint64_t frames_before = cluster->frames_received();
  const Deadline until = client.clock().After(load.seconds * 1'000'000);
  const auto work = [&](uint64_t number) {
    const std::unique_ptr<Session> session = *cluster->OpenSession(client, {.snapshots = snapshots});
    std::mt19937_64 random(number);
    for (uint64_t order = number << 40; !client.clock().Passed(until); ++order) {
      ++(CheckOut(*session, random, load.products, order) ? committed : aborted);
    }
  };
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (int i = 0; i < load.clients; ++i) {
    threads.push_back(client.StartThread("client", [&work, i] { work(static_cast<uint64_t>(i)); }));
  }
  threads.clear();
  // Messages to servers only; every request also gets one answer.
  const uint64_t frames = cluster->frames_received() - frames_before;
  std::printf("%-24s %8.0f checkouts/s  %9.0f messages/s to servers  %5.1f each  %llu aborted\n", name,
              static_cast<double>(committed) / load.seconds, static_cast<double>(frames) / load.seconds,
              static_cast<double>(frames) / static_cast<double>(committed + aborted),
              static_cast<unsigned long long>(aborted));
  std::fflush(stdout);
}

}  // namespace
}  // namespace nam::txn::two_phase

int main(int count, char** values) {
  using namespace nam::txn::two_phase;  // of this file
  Load load;
  if (count > 1) load.clients = std::atoi(values[1]);
  if (count > 2) load.seconds = std::atoi(values[2]);
  if (count > 3) load.products = std::strtoull(values[3], nullptr, 10);
  const TransportOptions socket{.kind = TransportOptions::Kind::kSocket};
  const TransportOptions send{.kind = TransportOptions::Kind::kSend};
  constexpr auto kFresh = SessionOptions::Snapshots::kFresh;
  constexpr auto kLastAnswer = SessionOptions::Snapshots::kLastAnswer;
  using nam::fabric::Kind;
  Run("sockets", Kind::kShm, socket, kFresh, load);
  Run("sockets, last answer", Kind::kShm, socket, kLastAnswer, load);
  Run("send shm", Kind::kShm, send, kFresh, load);
  Run("send shm, last answer", Kind::kShm, send, kLastAnswer, load);
  Run("send tcp, last answer", Kind::kTcp, send, kLastAnswer, load);
  return 0;
}
