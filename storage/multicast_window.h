#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/multicast_layout.h"

namespace nam::storage {

/// What a receiver knows of one sender's stream: which blocks it has, up to where datagrams have come, what
/// is lost, and how much more may be sent. Numbers only. One thread.
///
///     block     0   │ 1 │   2   │ 3 …
///     datagram  0 1 │ 2 │ 3 4 5 │ 6 …      first(block): where a block begins
///                         ▲ lost_ (judged up to here)   ▲ next_ (all later ones still to come)
class MulticastWindow {
 public:
  /// `block_bytes` of each block in the sender's order; at most `datagrams_max` datagrams, and `blocks_max`
  /// blocks, may be on their way or wait here to be taken.
  MulticastWindow(std::span<const uint32_t> block_bytes, uint32_t fragment_bytes, uint32_t datagrams_max,
                  uint32_t blocks_max);

  uint32_t blocks() const { return static_cast<uint32_t>(have_.size()); }
  uint32_t datagrams() const { return first_.back(); }
  uint32_t fragments(uint32_t block) const { return first_[block + 1] - first_[block]; }
  /// The header is one that the sender of these blocks makes.
  bool Matches(const FragmentHeader& header) const;

  bool Has(uint32_t block) const { return have_[block]; }
  void SetHas(uint32_t block) { have_[block] = true; }
  /// All datagrams before `datagram` were sent earlier than one that has come.
  void Passed(uint64_t datagram);
  /// The next block that is given up: not here, though `reorder` datagrams after its last one were sent.
  /// Each is named once.
  std::optional<uint32_t> NextLost(uint32_t reorder);
  /// Every block is here or was named as lost.
  bool judged() const { return lost_ == blocks(); }
  /// A block was taken by the consumer.
  void Taken() { ++taken_; }
  uint64_t next() const { return next_; }
  /// How many datagrams may be sent in all. Never falls.
  uint64_t Credit() const;
  /// So much more credit is worth telling.
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
