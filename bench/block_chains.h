#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/bench_server.h"
#include "fabric/region_directory.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/multicast_blocks.h"

/// A table to stream, as in I-Store's microbenchmarks: one column of 8-byte integers, in chains whose blocks
/// are scattered over one server's memory.
namespace nam::bench {

inline constexpr uint32_t kBlocksPerChain = 32;

/// A directory with the benchmark's server as the only memory server.
class OneServer final : public fabric::RegionDirectory {
 public:
  explicit OneServer(const ServerAddress& server);
  absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server,
                                                                      bool refresh) override;

 private:
  std::shared_ptr<const fabric::ServerRegions> regions_;
};

struct ChainSet {
  storage::StreamTable table;
  std::vector<storage::ChainStart> chains;
  std::vector<std::vector<uint64_t>> pointers;  // by chain, of all blocks
  uint64_t sum_per_chain = 0;                   // of all integers of a chain
  uint32_t block_bytes = 0;
};

/// Every parts-th chain, from number `part` on.
storage::MulticastTable PartOf(const ChainSet& set, uint32_t part, uint32_t parts);
/// Writes `chains` chains through the channel. INVALID_ARGUMENT if they do not fit the server's region.
absl::StatusOr<ChainSet> WriteChains(storage::Channel& channel, const ServerAddress& server,
                                     uint32_t block_bytes, uint32_t chains);

/// The work on top of a stream: the sum of a block's integers.
uint64_t SumOf(const storage::BlockView& block);

}  // namespace nam::bench
