#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "tests/fabric/take.h"

/// A memory server and a client in a simulated world, for the simulator's own tests.
namespace nam::fabric::sim {

inline constexpr size_t kRegionBytes = size_t{1} << 20;
inline constexpr int64_t kMs = 1'000'000;  // in nanoseconds

inline void Sleep(World& world, int64_t ns) {
  world.clock().SleepUntil({world.NowNs() + ns});
}

/// A process with a region that allows everything, served passively.
struct MemoryServer {
  MemoryServer(World& world, const std::string& host, FabricOptions options = {.secret = "secret"})
      : fabric(Take(world.OpenFabric(host, std::move(options)))),
        region(Take(fabric->Allocate(kRegionBytes, {}))),
        listener(Take(fabric->Listen({.address = ":0", .passive = true}))) {}

  uint64_t Word(size_t offset) const {
    uint64_t word;
    std::memcpy(&word, region->data() + offset, sizeof(word));
    return word;
  }

  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<Listener> listener;
};

/// A process with a queue pair to a server.
struct Client {
  Client(World& world, const std::string& host, const MemoryServer& server,
         FabricOptions options = {.secret = "secret"})
      : fabric(Take(world.OpenFabric(host, std::move(options)))),
        local(Take(fabric->Allocate(kRegionBytes, {.access = Access::kNone}))),
        completions(Take(fabric->CreateCompletionQueue(4096))),
        rkey(server.region->rkey()),
        address(server.listener->address()),
        pair(Connect()) {}

  std::unique_ptr<QueuePair> Connect() {
    return Take(fabric->Connect(address, *completions, {.send_depth = 256, .receive_depth = 0},
                                fabric->clock().After(10'000'000)));
  }
  RemoteAddress At(uint64_t offset) const { return {rkey, offset}; }
  /// Posts and waits.
  Completion Run(const WorkRequest& request) {
    EXPECT_TRUE(pair->Post({&request, 1}).ok());
    Completion completion;
    EXPECT_EQ(completions->Wait({&completion, 1}, fabric->clock().After(60'000'000)), 1u);
    return completion;
  }
  Completion Add(uint64_t offset) { return Run(WorkRequest::FetchAdd(1, local->Slice(0, 8), At(offset), 1)); }
  uint64_t LocalWord(size_t offset) const {
    uint64_t word;
    std::memcpy(&word, local->data() + offset, sizeof(word));
    return word;
  }

  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<MemoryRegion> local;
  std::unique_ptr<CompletionQueue> completions;
  RemoteKey rkey;
  std::string address;
  std::unique_ptr<QueuePair> pair;
};

}  // namespace nam::fabric::sim
