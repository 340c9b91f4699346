#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/multicast_layout.h"

namespace nam::storage {

/// A receiver's state of one sender's stream: the blocks that have arrived, the progress of the datagrams,
/// the lost blocks, and the credit. Numbers only. One thread.
///
///     block     0   │ 1 │   2   │ 3 …
///     datagram  0 1 │ 2 │ 3 4 5 │ 6 …      first(block): where a block begins
///                         ▲ lost_ (judged up to here)   ▲ next_ (all later ones still to come)
class MulticastWindow {
 public:
  /// `block_bytes` per block, in the sender's order. At most `datagrams_max` datagrams and `blocks_max`
  /// blocks may be in flight or wait to be taken.
  MulticastWindow(std::span<const uint32_t> block_bytes, uint32_t fragment_bytes, uint32_t datagrams_max,
                  uint32_t blocks_max);

  uint32_t blocks() const { return static_cast<uint32_t>(have_.size()); }
  uint32_t datagrams() const { return first_.back(); }
  uint32_t fragments(uint32_t block) const { return first_[block + 1] - first_[block]; }
  /// True if the header is consistent with these blocks.
  bool Matches(const FragmentHeader& header) const;

  bool Has(uint32_t block) const { return have_[block]; }
  void SetHas(uint32_t block) { have_[block] = true; }
  /// All datagrams before `datagram` were sent before one that has arrived.
  void Passed(uint64_t datagram);
  /// The next lost block: it is missing although `reorder` datagrams after its last one were sent. Names each
  /// block once.
  std::optional<uint32_t> NextLost(uint32_t reorder);
  /// True if every block has arrived or was named as lost.
  bool judged() const { return lost_ == blocks(); }
  /// The consumer has taken a block.
  void Taken() { ++taken_; }
  uint64_t next() const { return next_; }
  /// The total number of datagrams that may be sent. Never decreases.
  uint64_t Credit() const;
  /// The least increase of credit worth telling.
  uint64_t credit_step() const { return credit_step_; }

 private:
  const uint32_t fragment_bytes_;
  const uint32_t datagrams_max_;
  const uint32_t blocks_max_;
  uint64_t credit_step_ = 1;
  std::vector<uint32_t> first_;  // one more than there are blocks
  std::vector<uint32_t> block_bytes_;
  std::vector<bool> have_;
  uint64_t next_ = 0;
  uint32_t lost_ = 0;
  uint32_t taken_ = 0;
};

}  // namespace nam::storage
