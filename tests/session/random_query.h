#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/cluster/oracle.h"

namespace nam::testing {

/// A sequence of choices that stands for data and queries. Past its end every choice is 0, the simplest, so a
/// shorter or smaller sequence is a simpler case: that is how failures shrink.
class Choices {
 public:
  explicit Choices(std::vector<uint32_t> choices) : choices_(std::move(choices)) {}
  /// 0 … n - 1
  uint32_t Next(uint32_t n) { return at_ < choices_.size() ? choices_[at_++] % n : 0; }
  bool Chance(uint32_t percent) { return Next(100) >= 100 - percent; }
  const std::string& Of(const std::vector<std::string>& options) {
    return options[Next(static_cast<uint32_t>(options.size()))];
  }

 private:
  const std::vector<uint32_t> choices_;
  size_t at_ = 0;
};

/// Tables f (joins x and y), x and y, with NULLs, duplicates and keys without partner.
std::vector<SmallTable> RandomTables(Choices& choices);

/// A query of the SPJA class over them that means the same in SQLite. Without ORDER BY: compare sorted.
std::string RandomQuery(Choices& choices);

}  // namespace nam::testing
