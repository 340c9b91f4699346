#include "txn/index/table_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

// Bounds are no longer than keys.
int ComparePrefix(const std::byte* key, std::span<const std::byte> bound) {
  if (bound.empty()) return 0;  // its pointer may be null
  return std::memcmp(key, bound.data(), bound.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableIndex>> TableIndex::Open(const IndexDescription& description,
                                                             storage::Channel& channel,
                                                             storage::VerbBatch& batch, uint32_t owner,
                                                             ConfirmGone confirm_gone) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace space,
                       ExtentSpace::Open(channel, description.extents, description.extent_bytes));
  OrderedIndexOptions options;
  options.shape.key_bytes = description.key_bytes;
  options.shape.payload_bytes = OrderedPayloadBytes(description.key_bytes);
  options.owner = owner;
  options.confirm_gone = std::move(confirm_gone);
  return std::unique_ptr<TableIndex>(
      new TableIndex(description, batch, std::move(space), std::move(options)));
}

IndexKey TableIndex::KeyOf(const std::byte* row) const {
  IndexKey key;
  key.size = description_.key_bytes;
  key.any_null = WriteKey(row, key.bytes.data());
  return key;
}

bool TableIndex::WriteKey(const std::byte* row, std::byte* key) const {
  bool any_null = false;
  for (const IndexDescription::KeyField& field : description_.fields) {
    if (field.nullable) {
      const bool null = (static_cast<uint8_t>(row[field.null_bit / 8]) >> (field.null_bit % 8) & 1) != 0;
      *key++ = std::byte{null};
      any_null = any_null || null;
    }
    std::memcpy(key, row + field.offset, field.bytes);
    key += field.bytes;
  }
  return any_null;
}

OrderedIndex::Cursor TableIndex::Range(std::span<const std::byte> low,
                                       std::span<const std::byte> high) const {
  std::array<std::byte, kOrderedKeyBytesMax> from{}, to{};
  const size_t bytes = description_.key_bytes;
  NAM_CHECK(low.size() <= bytes && high.size() <= bytes, "bounds are no longer than keys");
  std::copy(low.begin(), low.end(), from.begin());
  std::copy(high.begin(), high.end(), to.begin());
  // The key before `high`, padded with zeroes; the last key if there is no bound.
  size_t i = bytes;
  while (i-- > 0) {
    const bool borrow = to[i] == std::byte{0};
    to[i] = static_cast<std::byte>(static_cast<uint8_t>(to[i]) - 1);
    if (!borrow) break;
  }
  return entries_.Range({from.data(), bytes}, {to.data(), bytes});
}

bool TableIndex::Before(const std::byte* key, std::span<const std::byte> low) {
  return ComparePrefix(key, low) < 0;
}

bool TableIndex::Below(const std::byte* key, std::span<const std::byte> high) {
  return high.empty() || ComparePrefix(key, high) < 0;
}

}  // namespace nam::txn
