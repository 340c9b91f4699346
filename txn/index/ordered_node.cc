#include "txn/index/ordered_node.h"

namespace nam::txn {

bool OrderedNode::Valid() const {
  return used_bytes() <= shape_->payload_bytes && (!bounded() || right() != 0);
}

uint32_t OrderedNode::LowerBound(const OrderedEntry& wanted) const {
  uint32_t begin = 0;
  for (uint32_t left = count(); left > 0;) {
    const uint32_t half = left / 2;
    if (shape_->Compare(entry(begin + half), wanted.data()) < 0) {
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

void OrderedNode::CopyFrom(const OrderedNode& other) {
  std::memcpy(data_, other.data_, other.used_bytes());
}

void OrderedNode::SetRight(uint64_t number, const std::byte* high) {
  Store(8, number);
  Store(3, static_cast<uint8_t>(high != nullptr));
  if (high != nullptr) std::memcpy(data_ + kFixedBytes, high, shape_->entry_bytes());
}

void OrderedNode::Insert(uint32_t i, const OrderedEntry& inserted, uint64_t child) {
  NAM_CHECK(i <= count() && HasRoom());
  std::byte* const at = data_ + entries_at() + i * stride();
  std::memmove(at + stride(), at, (count() - i) * stride());
  std::memcpy(at, inserted.data(), shape_->entry_bytes());
  if (level() > 0) std::memcpy(at + shape_->entry_bytes(), &child, sizeof(child));
  Store(0, static_cast<uint16_t>(count() + 1));
}

void OrderedNode::Erase(uint32_t i) {
  NAM_CHECK(i < count());
  std::byte* const at = data_ + entries_at() + i * stride();
  std::memmove(at, at + stride(), (count() - i - 1) * stride());
  Store(0, static_cast<uint16_t>(count() - 1));
}

void OrderedNode::Append(const OrderedNode& from, uint32_t begin, uint32_t end) {
  std::memcpy(data_ + used_bytes(), from.entry(begin), (end - begin) * stride());
  Store(0, static_cast<uint16_t>(count() + end - begin));
}

OrderedEntry OrderedNode::Split(uint32_t i, const OrderedEntry& inserted, uint64_t child, OrderedNode lower,
                                OrderedNode upper) const {
  const bool last_of_all = i == count() && !bounded();
  const uint32_t middle = last_of_all ? count() : count() / 2;
  lower.Clear(level());
  upper.Clear(level());
  lower.Append(*this, 0, middle);
  upper.Append(*this, middle, count());
  if (i <= middle && !last_of_all) {
    lower.Insert(i, inserted, child);
  } else {
    upper.Insert(i - middle, inserted, child);
  }
  OrderedEntry separator{};
  const std::byte* const last = lower.entry(lower.count() - 1);
  const bool keys_differ = std::memcmp(last, upper.entry(0), shape_->key_bytes) != 0;
  std::memcpy(separator.data(), upper.entry(0),
              level() == 0 && keys_differ ? shape_->key_bytes : shape_->entry_bytes());
  return separator;
}

}  // namespace nam::txn
