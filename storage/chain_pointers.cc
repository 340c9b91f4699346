#include "storage/chain_pointers.h"

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "storage/block.h"

namespace nam::storage {

absl::StatusOr<std::vector<uint64_t>> PointersOf(Channel& channel, const StreamTable& table,
                                                 const ChainStart& chain) {
  std::vector<uint64_t> pointers = chain.head;
  const BlockLayout layout(table.WidthsOf(chain), chain.block_rows,
                           PointerSlots(chain.blocks, table.pointer_group), chain.text_bytes);
  std::vector<std::byte> prefix(layout.prefix_bytes());
  for (uint32_t leader = 0; pointers.size() < chain.blocks; leader += table.pointer_group) {
    if (leader >= pointers.size()) return absl::DataLossError("a pointer group ends before its chain");
    NAM_RETURN_IF_ERROR(channel.Read(RemotePtr<void>::FromRaw(pointers[leader]), prefix));
    const BlockView view(layout, prefix.data());
    NAM_RETURN_IF_ERROR(
        view.CheckPrefix(table.AllocationOf(chain), chain.partition, leader, /*verify=*/true));
    for (uint64_t pointer : view.pointers()) {
      if (pointers.size() == chain.blocks) break;
      if (pointer == 0) return absl::DataLossError("a pointer group ends before its chain");
      pointers.push_back(pointer);
    }
  }
  return pointers;
}

}  // namespace nam::storage
