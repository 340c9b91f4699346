#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/block_stream.h"
#include "storage/channel.h"

namespace nam::storage {

/// The pointers of all blocks of a chain. READs the blocks that lead pointer groups.
absl::StatusOr<std::vector<uint64_t>> PointersOf(Channel& channel, const StreamTable& table,
                                                 const ChainStart& chain);

}  // namespace nam::storage
