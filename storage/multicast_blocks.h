#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "storage/block.h"
#include "storage/block_runs.h"
#include "storage/block_stream.h"
#include "storage/multicast_layout.h"

namespace nam::storage {

/// A table with the chains that are multicast as a whole.
struct MulticastTable {
  struct Chain {
    uint32_t partition = 0;
    uint32_t block_rows = 0;
    std::vector<uint64_t> pointers;         // of all its blocks
    std::vector<uint32_t> text_bytes = {};  // as in BlockLayout
  };
  StreamTable table;
  std::vector<Chain> chains;
};

/// The blocks of a stream, numbered the same by all participants: per sender, in the order of tables, chains
/// and blocks, skipping blocks of other servers.
class MulticastBlocks {
 public:
  struct Chain {
    size_t table = 0;  // index
    uint32_t partition = 0;
    BlockLayout layout;
    std::vector<ByteRange> runs;  // of each block
    uint32_t run_bytes = 0;       // total of all runs
  };
  struct Place {
    uint32_t chain = 0;
    uint32_t index = 0;  // in the chain
    RemotePtr<void> home;
  };
  /// INVALID_ARGUMENT: a duplicate sender, or a block whose home is not among the senders.
  static absl::StatusOr<MulticastBlocks> Number(const std::vector<MulticastTable>& tables,
                                                const std::vector<MemoryServerId>& senders);

  const std::vector<Chain>& chains() const { return chains_; }
  const std::vector<Place>& of_sender(size_t sender) const { return places_[sender]; }
  /// The sender's view of its blocks.
  std::vector<MulticastExtent> ExtentsOf(size_t sender) const;

 private:
  std::vector<Chain> chains_;
  std::vector<std::vector<Place>> places_;
};

}  // namespace nam::storage
