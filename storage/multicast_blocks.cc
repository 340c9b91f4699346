#include "storage/multicast_blocks.h"

#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace nam::storage {

absl::StatusOr<MulticastBlocks> MulticastBlocks::Number(const std::vector<MulticastTable>& tables,
                                                        const std::vector<MemoryServerId>& senders) {
  std::map<MemoryServerId, size_t> sender_of;
  for (size_t s = 0; s < senders.size(); ++s) {
    if (!sender_of.try_emplace(senders[s], s).second)
      return absl::InvalidArgumentError("two multicast streams of one sender");
  }
  MulticastBlocks blocks;
  blocks.places_.resize(senders.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const StreamTable& table = tables[t].table;
    for (const MulticastTable::Chain& from : tables[t].chains) {
      const auto count = static_cast<uint32_t>(from.pointers.size());
      BlockLayout layout(table.widths, from.block_rows, PointerSlots(count, table.pointer_group),
                         from.text_bytes);
      std::vector<ByteRange> runs;
      FindRuns(layout, table.columns, runs);
      const uint32_t bytes = TotalBytes(runs);
      const auto chain = static_cast<uint32_t>(blocks.chains_.size());
      blocks.chains_.push_back({t, from.partition, std::move(layout), std::move(runs), bytes});
      for (uint32_t index = 0; index < count; ++index) {
        const auto home = RemotePtr<void>::FromRaw(from.pointers[index]);
        const auto sender = sender_of.find(home.server());
        if (sender == sender_of.end()) {
          return absl::InvalidArgumentError(absl::StrFormat(
              "memory server %d has blocks to multicast, but no stream", home.server().value()));
        }
        blocks.places_[sender->second].push_back({chain, index, home});
      }
    }
  }
  return blocks;
}

std::vector<MulticastExtent> MulticastBlocks::ExtentsOf(size_t sender) const {
  std::vector<MulticastExtent> extents;
  uint32_t chain = 0;
  for (const Place& place : places_[sender]) {
    if (extents.empty() || place.chain != chain) extents.push_back({chains_[place.chain].runs, {}});
    chain = place.chain;
    extents.back().blocks.push_back(place.home);
  }
  return extents;
}

}  // namespace nam::storage
