#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"

namespace nam::txn {

/// One node of an ordered index, in remote memory: two copies of its payload. The header's version tells the
/// current one. So a writer never touches what readers use, and a writer that dies leaves a whole node.
///
///     header    unlocked   0 │ – (31)                     │ version (32)   64 bytes, of which the first word
///               locked     1 │ client (15) │ session (16) │ version (32)   counts
///     copy 0    current while the version is even
///     copy 1    current while it is odd
///
///     payload   count (16) │ level (8) │ bounded (1) │ gone (1) │ – (6) │ back (32)
///               right: number of the next node of the level; 0: none
///               high: entries here are smaller (if bounded)
///               back: number of the node that has got its range (if gone)
///               entries, sorted: level 0: key, value; above: key, value, number of the child
///
/// A lock names its session, too (the low bits of its number), so that the next user of the client's slot is
/// not taken for the owner. All zeroes are an empty leaf without a bound. A lock of a dead owner is taken
/// back by raising the version by two: the same copy stays current, and any late CAS fails.
namespace ordered_header {

inline constexpr uint64_t kBytes = 64;
inline constexpr uint64_t kLocked = uint64_t{1} << 63;
inline constexpr int kVersionBits = 32;
inline constexpr int kSessionBits = 16;
inline constexpr uint64_t kVersionMask = (uint64_t{1} << kVersionBits) - 1;

inline bool IsLocked(uint64_t header) {
  return (header & kLocked) != 0;
}
/// The 31 bits that name a lock's owner.
inline uint32_t OwnerOf(uint32_t client, uint32_t session) {
  return client << kSessionBits | (session & ((1u << kSessionBits) - 1));
}
inline uint32_t ClientOf(uint32_t owner) {
  return owner >> kSessionBits;
}
inline uint32_t Owner(uint64_t header) {
  return static_cast<uint32_t>((header & ~kLocked) >> kVersionBits);
}
inline uint64_t Version(uint64_t header) {
  return header & kVersionMask;
}
inline uint64_t Locked(uint32_t owner, uint64_t version) {
  return kLocked | uint64_t{owner} << kVersionBits | version;
}
inline uint64_t Unlocked(uint64_t version) {
  return version & kVersionMask;
}

}  // namespace ordered_header

inline constexpr size_t kOrderedKeyBytesMax = 1056;  // 1024 of values, and a NULL byte for each of 32 columns

/// The size of one copy of a node with keys of this length. Long keys get larger nodes, so that several fit.
inline constexpr uint32_t OrderedPayloadBytes(uint32_t key_bytes) {
  constexpr uint32_t kShortKeyBytesMax = 288;
  return key_bytes <= kShortKeyBytesMax ? 2048 : 8192;
}

/// A key and its value, most significant byte first, so that memcmp orders entries. Only the node shape's
/// first entry_bytes count.
using OrderedEntry = std::array<std::byte, kOrderedKeyBytesMax + sizeof(uint64_t)>;

/// The layout of an index's nodes; kept in the catalog.
struct OrderedShape {
  uint32_t key_bytes = 8;
  uint32_t payload_bytes = 2048;  // one copy; a multiple of 64

  size_t entry_bytes() const { return key_bytes + sizeof(uint64_t); }
  uint64_t node_bytes() const { return ordered_header::kBytes + 2 * uint64_t{payload_bytes}; }
  OrderedEntry Compose(std::span<const std::byte> key, uint64_t value) const {
    NAM_CHECK(key.size() == key_bytes, "keys are of the index's length");
    OrderedEntry entry;  // bytes past entry_bytes do not count
    std::memcpy(entry.data(), key.data(), key.size());
    SetValue(entry.data(), value);
    return entry;
  }
  void SetValue(std::byte* entry, uint64_t value) const {
    const uint64_t ordered = std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
    std::memcpy(entry + key_bytes, &ordered, sizeof(ordered));
  }
  std::span<const std::byte> KeyOf(const std::byte* entry) const { return {entry, key_bytes}; }
  /// The number of the child behind an entry of an inner node.
  void SetChild(std::byte* entry, uint64_t child) const {
    std::memcpy(entry + entry_bytes(), &child, sizeof(child));
  }
  uint64_t ValueOf(const std::byte* entry) const {
    uint64_t ordered;
    std::memcpy(&ordered, entry + key_bytes, sizeof(ordered));
    return std::endian::native == std::endian::little ? __builtin_bswap64(ordered) : ordered;
  }
  int Compare(const std::byte* a, const std::byte* b) const { return std::memcmp(a, b, entry_bytes()); }
};

/// A payload in local memory; owns nothing.
class OrderedNode {
 public:
  OrderedNode(const OrderedShape& shape, std::byte* data) : shape_(&shape), data_(data) {}

  /// Whether the bytes can be a node at all. No other call is valid if they cannot.
  bool Valid() const;
  std::byte* data() const { return data_; }
  uint32_t count() const { return Load<uint16_t>(0); }
  uint32_t level() const { return Load<uint8_t>(2); }
  bool bounded() const { return (Load<uint8_t>(3) & kBounded) != 0; }
  /// An empty leaf that was unlinked; it gets no entries any more.
  bool gone() const { return (Load<uint8_t>(3) & kGone) != 0; }
  uint64_t back() const { return Load<uint32_t>(4); }
  uint64_t right() const { return Load<uint64_t>(8); }
  const std::byte* high() const { return data_ + kFixedBytes; }
  const std::byte* entry(uint32_t i) const { return data_ + entries_at() + i * stride(); }
  uint64_t child(uint32_t i) const {
    uint64_t number;
    std::memcpy(&number, entry(i) + shape_->entry_bytes(), sizeof(number));
    return number;
  }
  size_t used_bytes() const { return entries_at() + count() * stride(); }
  /// The number of entries that fit.
  uint32_t capacity() const {
    return static_cast<uint32_t>((shape_->payload_bytes - entries_at()) / stride());
  }

  /// The index of the first entry that is not smaller.
  uint32_t LowerBound(const std::byte* wanted) const;
  bool Holds(uint32_t i, const std::byte* wanted) const {
    return i < count() && shape_->Compare(entry(i), wanted) == 0;
  }
  /// Whether `wanted` belongs to a node to the right.
  bool Beyond(const std::byte* wanted) const { return bounded() && shape_->Compare(wanted, high()) >= 0; }

  void Clear(uint32_t level);
  void SetRight(uint64_t number, const std::byte* high);  // high null: no bound
  /// After SetRight. Numbers of blocks have 32 bits.
  void SetGone(uint64_t back) {
    Store(3, static_cast<uint8_t>(Load<uint8_t>(3) | kGone));
    Store(4, static_cast<uint32_t>(back));
  }
  /// Adds an entry behind all others; above leaves the child's number follows it.
  void Append(const std::byte* entry);
  /// Writes the separator of two neighbours, entry_bytes: at most upper's first entry. In leaves it has no
  /// value if the keys differ, so that a key with one value lies in one leaf.
  static void Separate(const OrderedShape& shape, const OrderedNode& lower, const OrderedNode& upper,
                       std::byte* separator);

 private:
  static constexpr size_t kFixedBytes = 16;
  static constexpr uint8_t kBounded = 1, kGone = 2;
  template <typename T>
  T Load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }
  template <typename T>
  void Store(size_t at, T value) {
    std::memcpy(data_ + at, &value, sizeof(value));
  }
  size_t entries_at() const { return kFixedBytes + (shape_->entry_bytes() + 7) / 8 * 8; }
  size_t stride() const { return shape_->entry_bytes() + (level() > 0 ? sizeof(uint64_t) : 0); }

  const OrderedShape* shape_;
  std::byte* data_;
};

}  // namespace nam::txn
