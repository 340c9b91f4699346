#pragma once

#include <algorithm>
#include <cstdint>

#include "proto/table.pb.h"

namespace nam::catalog {

/// Of extents for logs of transactions' clients.
inline constexpr uint64_t kLogExtentBytes = uint64_t{1} << 20;

/// How long each extent of a part is, a power of two. A hash index gets its memory in smaller pieces than the
/// rows: everybody who looks for a key comes by it, so it is to lie on several memory servers.
inline uint64_t ExtentBytesOf(const proto::RecordStorage& record, proto::RecordPartKind kind) {
  constexpr uint64_t kIndexShare = 8;
  constexpr uint64_t kIndexBytesMin = uint64_t{256} << 10;
  constexpr uint64_t kNumbersBytes = uint64_t{16} << 10;  // of as many columns as a table may have
  if (kind == proto::COLUMN_NUMBERS) return kNumbersBytes;
  if (kind == proto::TRANSACTION_LOGS) return kLogExtentBytes;
  const uint64_t bytes = record.extent_bytes();
  return kind == proto::HASH_INDEX ? std::max(bytes / kIndexShare, std::min(bytes, kIndexBytesMin)) : bytes;
}

}  // namespace nam::catalog
