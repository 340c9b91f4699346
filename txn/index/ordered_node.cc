#include "txn/index/ordered_node.h"

namespace nam::txn {

bool OrderedNode::Valid() const {
  return used_bytes() <= shape_->payload_bytes && (!bounded() || right() != 0);
}

uint32_t OrderedNode::LowerBound(const std::byte* wanted) const {
  uint32_t begin = 0;
  for (uint32_t left = count(); left > 0;) {
    const uint32_t half = left / 2;
    if (shape_->Compare(entry(begin + half), wanted) < 0) {
      begin += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return begin;
}

void OrderedNode::Clear(uint32_t level) {
  std::memset(data_, 0, entries_at());
  Store(2, static_cast<uint8_t>(level));
}

void OrderedNode::SetRight(uint64_t number, const std::byte* high) {
  Store(8, number);
  Store(3, high != nullptr ? kBounded : uint8_t{0});
  if (high != nullptr) std::memcpy(data_ + kFixedBytes, high, shape_->entry_bytes());
}

void OrderedNode::Append(const std::byte* entry) {
  NAM_CHECK(used_bytes() + stride() <= shape_->payload_bytes, "an entry that fits");
  std::memcpy(data_ + used_bytes(), entry, stride());
  Store(0, static_cast<uint16_t>(count() + 1));
}

void OrderedNode::Separate(const OrderedShape& shape, const OrderedNode& lower, const OrderedNode& upper,
                           std::byte* separator) {
  const std::byte* const last = lower.entry(lower.count() - 1);
  const std::byte* const first = upper.entry(0);
  const bool keys_differ = std::memcmp(last, first, shape.key_bytes) != 0;
  std::memset(separator, 0, shape.entry_bytes());
  std::memcpy(separator, first, upper.level() == 0 && keys_differ ? shape.key_bytes : shape.entry_bytes());
}

}  // namespace nam::txn
