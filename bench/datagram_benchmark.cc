// Datagrams of 2 KiB to a group of 1 to 8 members on this host, and tcp's tag of each. One thread sends, then
// receives for every member in turn, so the time of an iteration is the CPU time that a datagram costs its
// sender and all members together.

#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "fabric/fabric.h"
#include "fabric/tcp/datagram_key.h"

namespace nam::fabric {
namespace {

constexpr uint32_t kBytes = 2048;
constexpr uint32_t kBurst = 32;
constexpr uint32_t kSlotBytes = kBytes + kDatagramHeadroomBytes;

struct Member {
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<MemoryRegion> memory;
  std::unique_ptr<DatagramQueuePair> pair;
  uint64_t received = 0;

  Member(Fabric& fabric, const std::string& group)
      : completions(fabric.CreateCompletionQueue(2 * kBurst + 1).value()),
        memory(fabric.Allocate(2 * kBurst * kSlotBytes, {.huge_pages = false}).value()),
        pair(fabric.CreateDatagramQueuePair(*completions, {.send_depth = 1, .receive_depth = 2 * kBurst})
                 .value()) {
    NAM_CHECK(pair->Join(group).ok());
    for (uint32_t i = 0; i < 2 * kBurst; ++i) PostReceive(i);
  }
  void PostReceive(uint64_t id) {
    const ReceiveRequest receive{.id = id, .into = memory->Slice(id * kSlotBytes, kSlotBytes)};
    NAM_CHECK(pair->PostReceive({&receive, 1}).ok());
  }
  void Drain() {
    std::array<Completion, 2 * kBurst> some;
    while (const size_t count = completions->Poll(some)) {
      for (size_t i = 0; i < count; ++i) PostReceive(some[i].id);
      received += count;
    }
  }
};

// Arguments: fabric, members.
void BM_Multicast(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  const auto fabric = Open({.kind = kind, .secret = "benchmark"}).value();
  const auto completions = fabric->CreateCompletionQueue(kBurst).value();
  const auto memory = fabric->Allocate(kBurst * kBytes, {.huge_pages = false}).value();
  const auto sender =
      fabric->CreateDatagramQueuePair(*completions, {.send_depth = kBurst, .receive_depth = 0}).value();
  const DatagramTarget group = sender->OpenGroup(1).value();
  std::vector<std::unique_ptr<Member>> members;
  for (int64_t i = 0; i < state.range(1); ++i) {
    members.push_back(std::make_unique<Member>(*fabric, sender->GroupAddress(group).value()));
  }
  std::vector<DatagramRequest> burst(kBurst, {.signal = Signal::kUnsignaled, .to = group});
  for (uint32_t i = 0; i < kBurst; ++i) burst[i].local = memory->Slice(i * kBytes, kBytes);
  burst.back().signal = Signal::kSignaled;
  Completion completion;
  while (state.KeepRunningBatch(kBurst)) {
    NAM_CHECK(sender->Post(burst).ok());
    NAM_CHECK(completions->Wait({&completion, 1}, fabric->clock().After(5'000'000)) == 1);
    for (const auto& member : members) member->Drain();
  }
  uint64_t received = 0;
  for (const auto& member : members) received += member->received;
  state.SetLabel(std::string(KindName(kind)));
  state.counters["delivered"] =
      static_cast<double>(received) / static_cast<double>(state.iterations() * state.range(1));
}
BENCHMARK(BM_Multicast)
    ->ArgsProduct({{static_cast<int64_t>(Kind::kShm), static_cast<int64_t>(Kind::kTcp)}, {1, 2, 4, 8}})
    ->MeasureProcessCPUTime();

void BM_Tag(benchmark::State& state) {
  tcp::DatagramKey key("benchmark", 1);
  const std::vector<std::byte> payload(static_cast<size_t>(state.range(0)));
  tcp::DatagramHeader header;
  for (auto _ : state) {
    ++header.sequence;
    benchmark::DoNotOptimize(key.Sign(header, payload));
  }
}
BENCHMARK(BM_Tag)->Arg(64)->Arg(2048)->Arg(4096);

}  // namespace
}  // namespace nam::fabric
