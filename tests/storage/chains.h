#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "fabric/sim/world.h"
#include "storage/block_sink.h"
#include "storage/block_stream.h"
#include "storage/channel.h"

namespace nam::storage {

/// A process of its own; the simulated ones are in one world, whose driver is the test's thread.
inline fabric::sim::World& SimulatedWorld() {
  static fabric::sim::World world({});
  return world;
}
inline std::unique_ptr<fabric::Fabric> OpenFabric(fabric::Kind kind) {
  if (kind != fabric::Kind::kSim) return *fabric::Open({.kind = kind, .secret = "s"});
  static int hosts = 0;
  return *SimulatedWorld().OpenFabric("host-" + std::to_string(++hosts), {.secret = "s"});
}
inline std::string ListenAddress(fabric::Kind kind) {
  if (kind == fabric::Kind::kShm) return "@";
  return kind == fabric::Kind::kSim ? ":0" : "127.0.0.1:0";
}

/// Memory servers made of one passive listener and one region each, in this process.
class TwoServers final : public fabric::RegionDirectory {
 public:
  static constexpr size_t kBytes = 16 << 20;
  explicit TwoServers(fabric::Kind kind) {
    for (uint16_t id = 1; id <= 2; ++id) {
      Server& server = servers_[id - 1];
      server.fabric = OpenFabric(kind);
      server.region = *server.fabric->Allocate(kBytes, {.access = fabric::Access::kAll, .huge_pages = false});
      server.listener = *server.fabric->Listen({.address = ListenAddress(kind)});
      auto regions = std::make_shared<fabric::ServerRegions>();
      regions->member = MemoryServerId(static_cast<uint16_t>(id));
      regions->fabric_address = server.listener->address();
      regions->name = "memory server " + std::to_string(id);
      regions->regions.push_back({4096, kBytes, server.region->rkey()});
      server.regions = regions;
    }
  }
  absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server, bool) override {
    return servers_[server.value() - 1u].regions;
  }
  /// The grant of all memory.
  const std::shared_ptr<fabric::Grant>& grant() const { return grant_; }
  /// From now on the catalog reports the burial; the memory answers as before.
  void Bury(uint16_t id) {
    buried_ = MemoryServerId(id);
    CountBurial();
  }
  bool Buried(MemoryServerId server, bool) override { return server == buried_; }
  std::byte* at(RemotePtr<void> p) {
    return servers_[p.server().value() - 1u].region->data() + p.offset() - 4096;
  }
  fabric::MemoryRegion& region(uint16_t id) { return *servers_[id - 1].region; }
  fabric::Fabric& fabric(uint16_t id) { return *servers_[id - 1].fabric; }
  void Kill(uint16_t id) {
    servers_[id - 1].listener.reset(), servers_[id - 1].region.reset(), servers_[id - 1].fabric.reset();
  }

 private:
  struct Server {
    std::unique_ptr<fabric::Fabric> fabric;
    std::unique_ptr<fabric::MemoryRegion> region;
    std::unique_ptr<fabric::Listener> listener;
    std::shared_ptr<const fabric::ServerRegions> regions;
  };
  Server servers_[2];
  MemoryServerId buried_;
  const std::shared_ptr<fabric::Grant> grant_ =
      std::make_shared<fabric::Grant>(AllocationId(9), /*attempt=*/0);
};

class Chains {
 protected:
  static constexpr uint32_t kRows = 20;
  const std::vector<uint8_t> widths_{4, 1, 8, 2};

  /// Writes a chain over both servers in turn, from `offset` on; its column 0 numbers the rows.
  ChainStart WriteChain(Channel& channel, const TwoServers& servers, uint32_t blocks, uint32_t group,
                        uint32_t rows = kRows, uint32_t partition = 0, uint64_t offset = 4096) {
    const BlockLayout layout(widths_, rows, PointerSlots(blocks, group));
    const uint64_t step = (layout.bytes() + 2047) / 2048 * 2048;
    std::vector<uint64_t> pointers;
    for (uint32_t i = 0; i < blocks; ++i) {
      pointers.push_back(
          RemotePtr<void>(MemoryServerId(static_cast<uint16_t>(1 + i % 2)), offset + i / 2 * step).raw());
    }
    BlockSink sink(channel, *UseOf(servers.grant()), layout.bytes());
    for (uint32_t i = 0; i < blocks; ++i) {
      std::byte* block = *sink.Acquire();
      std::fill_n(block, layout.bytes(), std::byte{0});
      BlockWriter writer(layout, block);
      for (uint32_t r = 0; r < rows; ++r) {
        const uint32_t value = i * rows + r;
        std::memcpy(writer.page(0) + r * 4, &value, 4);
        const uint16_t half = static_cast<uint16_t>(value * 3);
        std::memcpy(writer.page(3) + r * 2, &half, 2);
      }
      std::vector<uint64_t> next;
      for (uint32_t g = i + group; i % group == 0 && g < std::min(blocks, i + 2 * group); ++g)
        next.push_back(pointers[g]);
      writer.Seal(9, partition, i, rows, next);
      EXPECT_TRUE(sink.Write(RemotePtr<void>::FromRaw(pointers[i]), layout.bytes()).ok());
    }
    EXPECT_TRUE(sink.Flush().ok());
    pointers.resize(std::min(blocks, group));
    return {
        .partition = partition, .number = partition, .blocks = blocks, .block_rows = rows, .head = pointers};
  }
};

}  // namespace nam::storage
