#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "txn/session.h"

namespace nam::txn {

/// A row with the columns that indexes are over.
struct Item {
  uint64_t key = 0;
  uint8_t group = 0;
  uint8_t name[2] = {};  // zero if it is NULL
  uint8_t nulls = 0;     // bit 0: name
  uint32_t count = 0;
  uint64_t filling[6] = {};
  auto operator<=>(const Item&) const = default;
};
static_assert(sizeof(Item) == 64);

inline std::span<const std::byte> BytesOf(const Item& item) {
  return std::as_bytes(std::span(&item, 1));
}
inline std::span<const std::byte> BytesOf(const uint64_t& key) {
  return std::as_bytes(std::span(&key, 1));
}

inline IndexDescription ByGroup() {
  return {.name = "by_group", .fields = {{.offset = 8, .bytes = 1}}, .key_bytes = 1};
}
inline IndexDescription ByName() {
  return {.name = "by_name",
          .fields = {{.offset = 9, .bytes = 2, .nullable = true, .null_bit = 8 * 11}},
          .key_bytes = 3,
          .unique = true};
}
/// The key of a row in an index, of one of the two above.
inline std::vector<std::byte> KeyIn(const IndexDescription& index, const Item& item) {
  if (index.key_bytes == 1) return {std::byte{item.group}};
  return {std::byte{item.nulls}, std::byte{item.name[0]}, std::byte{item.name[1]}};
}

inline absl::StatusOr<std::vector<Item>> AllItems(Session& session, TableHandle table) {
  std::vector<Item> items;
  const absl::Status status = session.Scan(table, [&](std::span<const std::byte> row) {
    items.push_back(*reinterpret_cast<const Item*>(row.data()));
    return true;
  });
  if (!status.ok()) return status;
  return items;
}

inline absl::StatusOr<std::vector<Item>> ItemsBy(Session& session, TableHandle table, AllocationId index,
                                                 std::span<const std::byte> low = {},
                                                 std::span<const std::byte> high = {}) {
  std::vector<Item> items;
  const absl::Status status = session.ScanIndex(table, index, low, high, [&](std::span<const std::byte> row) {
    Item item;
    std::copy(row.begin(), row.end(), std::as_writable_bytes(std::span(&item, 1)).begin());
    items.push_back(item);
    return true;
  });
  if (!status.ok()) return status;
  return items;
}

}  // namespace nam::txn
