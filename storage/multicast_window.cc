#include "storage/multicast_window.h"

#include <algorithm>

#include "base/check.h"

namespace nam::storage {

MulticastWindow::MulticastWindow(std::span<const uint32_t> block_bytes, uint32_t fragment_bytes,
                                 uint32_t datagrams_max, uint32_t blocks_max)
    : fragment_bytes_(fragment_bytes),
      datagrams_max_(datagrams_max),
      blocks_max_(blocks_max),
      block_bytes_(block_bytes.begin(), block_bytes.end()),
      have_(block_bytes.size()) {
  NAM_CHECK(datagrams_max > 0 && blocks_max > 0 && fragment_bytes > 0);
  first_.reserve(block_bytes.size() + 1);
  first_.push_back(0);
  for (uint32_t bytes : block_bytes) first_.push_back(first_.back() + FragmentsOf(bytes, fragment_bytes));
  // A quarter of the capacity at first: so the next credit arrives long before the last is used up.
  const uint64_t at_first = std::min<uint64_t>(datagrams_max_, first_[std::min(blocks_max_, blocks())]);
  credit_step_ = std::max<uint64_t>(1, at_first / 4);
}

bool MulticastWindow::Matches(const FragmentHeader& h) const {
  return h.block < blocks() && h.block_bytes == block_bytes_[h.block] && h.fragments == fragments(h.block) &&
         h.offset == uint64_t{h.fragment} * fragment_bytes_ &&
         h.bytes == std::min(fragment_bytes_, h.block_bytes - h.offset) &&
         h.datagram == first_[h.block] + h.fragment;
}

void MulticastWindow::Passed(uint64_t datagram) {
  next_ = std::max(next_, std::min<uint64_t>(datagram, datagrams()));
}

std::optional<uint32_t> MulticastWindow::NextLost(uint32_t reorder) {
  while (lost_ < blocks() && uint64_t{first_[lost_ + 1]} + reorder <= next_) {
    const uint32_t block = lost_++;
    if (!have_[block]) return block;
  }
  return std::nullopt;
}

uint64_t MulticastWindow::Credit() const {
  // Blocks beyond would find no slot: earlier blocks, not taken yet, use all of them.
  const uint64_t by_slots = first_[std::min<uint64_t>(uint64_t{taken_} + blocks_max_, blocks())];
  return std::max<uint64_t>(1, std::min(next_ + datagrams_max_, by_slots));
}

}  // namespace nam::storage
