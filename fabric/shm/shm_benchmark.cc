#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "fabric/shm/shm_fabric.h"

/// READ through the fabric against memcpy of the same bytes between the same two mappings.
namespace nam::fabric {
namespace {

constexpr size_t kRegionBytes = size_t{64} << 20;

struct Setup {
  std::unique_ptr<Fabric> server = OpenShm({}).value();
  std::unique_ptr<Fabric> client = OpenShm({}).value();
  std::unique_ptr<MemoryRegion> region = server->Allocate(kRegionBytes, {.huge_pages = false}).value();
  std::unique_ptr<MemoryRegion> local =
      client->Allocate(2 << 20, {.access = Access::kNone, .huge_pages = false}).value();
  std::unique_ptr<Listener> listener = server->Listen({.address = "@"}).value();
  std::unique_ptr<CompletionQueue> completions = client->CreateCompletionQueue(256).value();
  std::unique_ptr<QueuePair> pair =
      client->Connect(listener->address(), *completions, {}, Deadline::Never()).value();
  const std::byte* view = nullptr;

  Setup() {
    std::memset(region->data(), 1, kRegionBytes);
    std::memset(local->data(), 1, local->bytes());
    view = pair->View({region->rkey(), 0}, kRegionBytes).value().data();
    for (size_t i = 0; i < kRegionBytes; i += 4096)
      static_cast<void>(*const_cast<const volatile std::byte*>(view + i));
  }
};

/// Blocks in a scattered order over `span`, a power of two.
size_t NextOffset(size_t& state, size_t bytes, size_t span) {
  state += size_t{0x9e3779b97f4a7c15};
  return (state >> 20) * bytes & (span - 1);
}

void Memcpy(benchmark::State& state) {
  Setup s;
  const auto bytes = static_cast<size_t>(state.range(0));
  size_t position = 0;
  for (auto _ : state) {
    std::memcpy(s.local->data(), s.view + NextOffset(position, bytes, static_cast<size_t>(state.range(1))),
                bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// Batches of 16, the last one signaled, as a block stream posts them.
void Read(benchmark::State& state) {
  Setup s;
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto batch_size = state.range(2);
  size_t position = 0;
  std::vector<WorkRequest> batch(static_cast<size_t>(batch_size));
  Completion completion;
  while (state.KeepRunningBatch(batch_size)) {
    for (auto& request : batch) {
      request = WorkRequest::Read(
          1, s.local->Slice(0, bytes),
          {s.region->rkey(), NextOffset(position, bytes, static_cast<size_t>(state.range(1)))},
          Signal::kUnsignaled);
    }
    batch.back().signal = Signal::kSignaled;
    NAM_CHECK(s.pair->Post(batch).ok());
    NAM_CHECK(s.completions->Poll({&completion, 1}) == 1);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void FetchAdd(benchmark::State& state) {
  Setup s;
  const auto request = WorkRequest::FetchAdd(1, s.local->Slice(0, 8), {s.region->rkey(), 0}, 1);
  Completion completion;
  for (auto _ : state) {
    NAM_CHECK(s.pair->Post({&request, 1}).ok());
    NAM_CHECK(s.completions->Poll({&completion, 1}) == 1);
  }
}

constexpr int64_t kCached = 256 << 10;
constexpr int64_t kUncached = 64 << 20;
BENCHMARK(Memcpy)->ArgsProduct({{64, 2048, 64 << 10}, {kCached, kUncached}});
BENCHMARK(Read)->ArgsProduct({{64, 2048, 64 << 10}, {kCached, kUncached}, {1, 16}});
BENCHMARK(FetchAdd);

}  // namespace
}  // namespace nam::fabric
