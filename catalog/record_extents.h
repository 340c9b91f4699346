#pragma once

#include <algorithm>
#include <cstdint>

#include "proto/table.pb.h"

namespace nam::catalog {

/// Size of extents for transaction clients' logs.
inline constexpr uint64_t kLogExtentBytes = uint64_t{1} << 20;

/// The size of each extent of a part, a power of two. A hash index gets smaller extents than rows, because
/// every key look-up visits it and it should spread over several memory servers.
inline uint64_t ExtentBytesOf(const proto::RecordStorage& record, proto::RecordPartKind kind) {
  constexpr uint64_t kIndexShare = 8;
  constexpr uint64_t kIndexBytesMin = uint64_t{256} << 10;
  constexpr uint64_t kNumbersBytes = uint64_t{16} << 10;  // for the maximum number of columns
  if (kind == proto::COLUMN_NUMBERS) return kNumbersBytes;
  if (kind == proto::TRANSACTION_LOGS) return kLogExtentBytes;
  const uint64_t bytes = record.extent_bytes();
  return kind == proto::HASH_INDEX ? std::max(bytes / kIndexShare, std::min(bytes, kIndexBytesMin)) : bytes;
}

/// The memory of one extent: the first ones of a part may be shorter than the others.
inline uint64_t BytesOf(const proto::RecordStorage& record, proto::RecordPartKind kind,
                        const proto::RecordExtent& extent) {
  return extent.bytes() == 0 ? ExtentBytesOf(record, kind) : extent.bytes();
}

}  // namespace nam::catalog
