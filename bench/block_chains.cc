#include "bench/block_chains.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "storage/block.h"
#include "storage/block_sink.h"
#include "storage/remote_ptr.h"

namespace nam::bench {
namespace {

constexpr uint64_t kAllocation = 1;
constexpr uint32_t kPointerGroup = 4;
constexpr uint64_t kFirstOffset = 4096;  // as on a memory server: the first page is never used
const std::vector<uint8_t> kWidths = {8};

storage::RemotePtr<void> PlaceOf(uint32_t chain, uint32_t index, uint32_t chains, uint32_t block_bytes) {
  return {kBenchServer, kFirstOffset + (uint64_t{index} * chains + chain) * block_bytes};
}

storage::BlockLayout LayoutOf(uint32_t block_bytes) {
  const uint32_t slots = storage::PointerSlots(kBlocksPerChain, kPointerGroup);
  return {kWidths, storage::BlockLayout::RowsThatFit(kWidths, block_bytes, slots), slots};
}

/// Where `chains` chains lie in the server's memory.
ChainSet ChainsOf(uint32_t block_bytes, uint32_t chains) {
  const storage::BlockLayout layout = LayoutOf(block_bytes);
  const uint64_t values = uint64_t{kBlocksPerChain} * layout.block_rows();
  ChainSet set{.table = {kAllocation, kPointerGroup, kWidths, {0}},
               .sum_per_chain = values * (values - 1) / 2,
               .block_bytes = layout.bytes()};
  for (uint32_t chain = 0; chain < chains; ++chain) {
    std::vector<uint64_t>& pointers = set.pointers.emplace_back();
    for (uint32_t index = 0; index < kBlocksPerChain; ++index)
      pointers.push_back(PlaceOf(chain, index, chains, block_bytes).raw());
    set.chains.push_back({.partition = chain,
                          .number = chain,
                          .blocks = kBlocksPerChain,
                          .block_rows = layout.block_rows(),
                          .head = {pointers.begin(), pointers.begin() + kPointerGroup}});
  }
  return set;
}

/// Chain c holds 0, 1, 2 … across all its blocks.
void Fill(storage::BlockWriter& writer, const storage::BlockLayout& layout, uint32_t chain, uint32_t index,
          const std::vector<uint64_t>& pointers) {
  auto* values = reinterpret_cast<uint64_t*>(writer.page(0));
  for (uint32_t row = 0; row < layout.block_rows(); ++row)
    values[row] = uint64_t{index} * layout.block_rows() + row;
  std::span<const uint64_t> group;
  if (index % kPointerGroup == 0 && index + kPointerGroup < kBlocksPerChain) {
    group = std::span(pointers).subspan(index + kPointerGroup);
    group = group.first(std::min<size_t>(kPointerGroup, group.size()));
  }
  writer.Seal(kAllocation, chain, index, layout.block_rows(), group);
}

}  // namespace

OneServer::OneServer(const ServerAddress& server)
    : regions_(std::make_shared<fabric::ServerRegions>(
          fabric::ServerRegions{.member = kBenchServer,
                                .fabric_address = server.one_sided,
                                .name = "the benchmark's server",
                                .regions = {{0, server.region_bytes, server.rkey}}})) {}

absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> OneServer::Lookup(MemoryServerId server, bool) {
  if (server != kBenchServer) return absl::NotFoundError("the benchmark has one memory server");
  return regions_;
}

storage::MulticastTable PartOf(const ChainSet& set, uint32_t part, uint32_t parts) {
  storage::MulticastTable table{.table = set.table};
  for (size_t chain = part; chain < set.chains.size(); chain += parts)
    table.chains.push_back({static_cast<uint32_t>(chain), set.chains[chain].block_rows, set.pointers[chain]});
  return table;
}

absl::StatusOr<ChainSet> WriteChains(storage::Channel& channel, const ServerAddress& server,
                                     uint32_t block_bytes, uint32_t chains) {
  if (kFirstOffset + uint64_t{chains} * kBlocksPerChain * block_bytes > server.region_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%d blocks of %d bytes do not fit into %d bytes",
                                                      uint64_t{chains} * kBlocksPerChain, block_bytes,
                                                      server.region_bytes));
  }
  const storage::BlockLayout layout = LayoutOf(block_bytes);
  ChainSet set = ChainsOf(block_bytes, chains);
  const auto grant = std::make_shared<fabric::Grant>(AllocationId(kAllocation), /*attempt=*/0);
  NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, storage::UseOf(grant));
  storage::BlockSink sink(channel, std::move(use), block_bytes);
  for (uint32_t chain = 0; chain < chains; ++chain) {
    const std::vector<uint64_t>& pointers = set.pointers[chain];
    for (uint32_t index = 0; index < kBlocksPerChain; ++index) {
      NAM_ASSIGN_OR_RETURN(std::byte* const block, sink.Acquire());
      storage::BlockWriter writer(layout, block);
      Fill(writer, layout, chain, index, pointers);
      NAM_RETURN_IF_ERROR(sink.Write(storage::RemotePtr<void>::FromRaw(pointers[index]), layout.bytes()));
    }
  }
  NAM_RETURN_IF_ERROR(sink.Flush());
  return set;
}

uint64_t SumOf(const storage::BlockView& block) {
  const auto* values = reinterpret_cast<const uint64_t*>(block.page(0));
  uint64_t sum = 0;
  for (uint32_t row = 0; row < block.rows(); ++row) sum += values[row];
  return sum;
}

}  // namespace nam::bench
