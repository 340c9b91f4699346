#pragma once

#include <cstdint>

namespace nam::execution {

/// A column that flows out of a scan: one of those that it reads, or what an absorbed probe's build side says
/// of the row's partner.
struct ScanOutput {
  static constexpr int32_t kScanned = -1;
  int32_t probe = kScanned;  // the number of the absorbed probe
  uint32_t column = 0;       // slot of the scan's columns; of a probe: place among the build's payload

  bool operator==(const ScanOutput&) const = default;
};

}  // namespace nam::execution
