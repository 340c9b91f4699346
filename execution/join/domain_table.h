#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "execution/join/mapped_array.h"
#include "execution/memory_budget.h"
#include "execution/rows/permute_keys.h"
#include "plan/key_domain.h"

namespace nam::execution {

/// The build side of a join by the keys of a domain. It holds only keys whose permutations share their first
/// bits: those of one part, or of a slice of it. The other bits are a key's position:
///
///     heads[position] → row + 1 ─ next[row] → row + 1 ─ … → 0      rows are those of a RowTable
///
/// A chain has the rows of one key, so probes compare nothing. One thread.
class DomainTable {
 public:
  struct Options {
    plan::KeyDomain domain;
    uint32_t shared_bits = 0;  // leading bits that all keys' permutations share; fewer than the domain has
  };
  /// The bytes of the heads.
  static uint64_t BytesNeeded(const Options& options);
  /// RESOURCE_EXHAUSTED if the budget, which outlives the table, does not allow it.
  static absl::StatusOr<DomainTable> Make(const Options& options, MemoryBudget& budget);
  const plan::KeyDomain& domain() const { return domain_; }
  /// The positions of the keys of `rows` consecutive rows (PermuteKeys). The keys are in the domain and
  /// belong here.
  void PositionsOf(const RowField& key, const std::byte* row, uint32_t rows, uint32_t* positions) const {
    PermuteKeys(domain_, key, {.mask = mask_}, row, rows, positions);
  }
  /// The position of the key with this number (KeyDomain::NumberOf), which belongs here or is outside of the
  /// domain.
  uint32_t PositionOf(uint64_t number) const {
    return number < domain_.size() ? domain_.Permute(number) & mask_ : nowhere();
  }
  /// The position without rows.
  uint32_t nowhere() const { return mask_ + 1; }

  /// `position` is not nowhere. False: the position has a row already, and there is no room for chains.
  bool Insert(uint32_t position, uint32_t row) {
    uint32_t& head = heads_[position];
    if (head != 0) [[unlikely]] {
      if (!chained()) return false;
      next_[row] = head;
    }
    head = row + 1;
    return true;
  }
  /// Makes room for chains of rows with numbers below `row_numbers`. Most tables have unique keys and need
  /// none.
  absl::Status MakeChains(uint64_t row_numbers, MemoryBudget& budget);
  /// Whether a key may have more than one row.
  bool chained() const { return next_.size() > 0; }
  /// The first row + 1 at a position; 0: none.
  uint32_t Head(uint32_t position) const { return heads_[position]; }
  /// The next row + 1 with the same key; 0: none.
  uint32_t Next(uint32_t row) const { return next_[row]; }

 private:
  DomainTable(const plan::KeyDomain& domain, MappedArray<uint32_t> heads)
      : domain_(domain), mask_(static_cast<uint32_t>(heads.size() - 2)), heads_(std::move(heads)) {}

  plan::KeyDomain domain_;
  uint32_t mask_;
  MappedArray<uint32_t> heads_;  // the last one stays 0
  MappedArray<uint32_t> next_;
};

}  // namespace nam::execution
