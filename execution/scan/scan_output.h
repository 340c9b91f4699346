#pragma once

#include <cstdint>

namespace nam::execution {

/// A column that a scan emits: one that it reads, or a payload column of an absorbed probe's partner.
struct ScanOutput {
  static constexpr int32_t kScanned = -1;
  int32_t probe = kScanned;  // the number of the absorbed probe
  uint32_t column = 0;       // slot of the scan's columns; for a probe: place in the build's payload

  bool operator==(const ScanOutput&) const = default;
};

}  // namespace nam::execution
