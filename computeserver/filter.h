#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "computeserver/batch.h"
#include "computeserver/vector_expression.h"
#include "plan/expression.h"
#include "storage/block.h"

namespace nam::computeserver {

/// One condition that tuples must meet, compiled for one thread. Most conditions are about one column
/// and become a range or a set of its codes, so that nothing is decoded.
class Filter {
 public:
  /// `space` outlives the filter.
  Filter(const plan::Expr& condition, const ColumnSpace& space);

  /// Drops the tuples for which the condition is not true.
  absl::Status Apply(Batch& batch);

  /// Whether it is about the codes of one column only.
  bool on_codes() const { return kind_ != Kind::kGeneral; }
  plan::ColumnRef column() const { return column_; }
  /// On codes: those from low() to high(), none if low() > high(); or else those whose set() is 1.
  bool is_range() const { return kind_ == Kind::kRange; }
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }
  const std::vector<uint8_t>& set() const { return set_; }
  /// False if no row of a mini-page with this zone can pass. Only on codes.
  bool MayPass(const storage::ColumnZone& zone) const;

 private:
  enum class Kind : uint8_t { kRange, kSet, kGeneral };
  void FromTruth(const std::vector<uint8_t>& truth);
  bool FromComparison(const plan::Expr& condition, const ColumnSpace& space);

  Kind kind_ = Kind::kGeneral;
  plan::ColumnRef column_;
  const ColumnSpace::Column* source_ = nullptr;
  uint64_t low_ = 1;  // range: low_ <= code <= high_; empty if low_ > high_
  uint64_t high_ = 0;
  std::vector<uint8_t> set_;  // by code
  std::unique_ptr<VectorExpression> general_;
  std::vector<uint32_t> keep_;
};

}  // namespace nam::computeserver
