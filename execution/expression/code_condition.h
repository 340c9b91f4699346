#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "execution/column.h"
#include "plan/expression.h"

namespace nam::execution {

/// A condition on one column as codes of one dictionary or one base: the codes of the rows for which it is
/// true. Serves tests of codes, zones and the sort column's cut without decoding.
///
///     range   low ≤ code ≤ high; none if low > high
///     set     of those the codes whose bit is 1: bit c % 32 of bits[c / 32]
struct CodeCondition {
  uint64_t low = 1;
  uint64_t high = 0;
  /// Empty: a range. Else it has the word of every code up to `high`, and `low` and `high` have their bits
  /// set.
  std::vector<uint32_t> bits;

  bool range() const { return bits.empty(); }
  /// No code passes.
  bool empty() const { return low > high; }
  bool Passes(uint64_t code) const {
    if (code < low || code > high) return false;
    return range() || (bits[code / 32] >> code % 32 & 1) != 0;
  }
  /// False if no code from `min` to `max` passes: a zone's bounds.
  bool MayPass(uint64_t min, uint64_t max) const;
  /// The number of codes that pass; UINT64_MAX if all 2^64 do.
  uint64_t Passing() const;

  bool operator==(const CodeCondition&) const = default;
};

/// Returns the codes that meet `condition`, a boolean about exactly one column, whose codes have `meaning`.
/// Computed once for an attempt and meaning, before the first block.
///
/// Comparisons with literals, BETWEEN, IN, IS NULL, LIKE 'x%' and their junctions and negations take a binary
/// search in the dictionary each, however many entries it has. Other conditions are evaluated for each code,
/// if these are few (kEagerTexts, kEagerNumbers). nullopt if the codes are too many for that or for a set, or
/// if the evaluation of a code fails: no row may have it, so the rows must decide.
std::optional<CodeCondition> CodesOf(const plan::Expr& condition, const CodeMeaning& meaning);

inline constexpr uint64_t kEagerTexts = 1 << 16;
inline constexpr uint64_t kEagerNumbers = 1 << 12;
/// A set takes a bit for each code below it: 512 KiB at most.
inline constexpr uint64_t kSetCodes = 1 << 22;

}  // namespace nam::execution
