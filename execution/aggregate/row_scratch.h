#pragma once

#include <cstdint>
#include <vector>

#include "execution/aggregate/groups.h"
#include "execution/chunk.h"

namespace nam::execution {

/// Scratch memory of Groups for looking up the rows of one chunk.
struct Groups::RowScratch {
  uint64_t wide[kChunkRows];    // by position: hashes
  uint32_t hashes[kChunkRows];  // by selected tuple: their lowest bits
  uint64_t slots[kChunkRows];   // by selected tuple: the current slot of the search
  uint32_t open[kChunkRows];    // tuples without a group yet
  uint32_t found[kChunkRows];   // tuples whose slot has their hash
  uint8_t same[kChunkRows];     // whether found[k] has the keys of its group
  uint32_t fresh[kChunkRows];   // positions of new groups, ascending
  uint32_t found_count = 0;
  uint32_t fresh_count = 0;
  std::vector<const Vector*> keys;
};

}  // namespace nam::execution
