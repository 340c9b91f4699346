#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "computeserver/batch.h"
#include "plan/expression.h"

namespace nam::computeserver {

/// The values of an expression for each tuple of a batch.
struct Vector {
  enum class Kind : uint8_t {
    kNarrow,  // numbers, dates: 64 bits
    kWide,    // numbers that may need 128 bits
    kTruth,   // booleans: kFalse, kTrue, kUnknown
    kText,
  };
  static constexpr uint8_t kFalse = 0, kTrue = 1, kUnknown = 2;

  Kind kind = Kind::kNarrow;
  std::vector<int64_t> narrow;
  std::vector<__int128> wide;
  std::vector<uint8_t> truth;
  std::vector<std::string_view> text;  // valid until the node that made it is evaluated again
  std::vector<uint8_t> nulls;          // 1 where NULL; not for kTruth; only meaningful if has_nulls
  bool has_nulls = false;

  bool null(uint32_t i) const {
    return kind == Kind::kTruth ? truth[i] == kUnknown : has_nulls && nulls[i] != 0;
  }
  __int128 number(uint32_t i) const {
    return kind == Kind::kNarrow ? narrow[i] : kind == Kind::kWide ? wide[i] : truth[i];
  }
};

/// The numbers that a node can yield, from column statistics; what fits 64 bits is computed in 64 bits
/// without checks, the rest in 128 with checks, so that no result ever wraps.
struct Bounds {
  __int128 low = 0;
  __int128 high = 0;
  bool known = false;
  bool narrow() const { return known && low >= INT64_MIN && high <= INT64_MAX; }
};

/// An expression compiled for one thread and one query: a tree of nodes, each with its own scratch.
class VectorExpression {
 public:
  virtual ~VectorExpression() = default;
  /// One value per tuple; the result belongs to the node and is overwritten by the next call.
  virtual absl::StatusOr<const Vector*> Evaluate(const Batch& batch) = 0;
  const Bounds& bounds() const { return bounds_; }
  Vector::Kind kind() const { return result_.kind; }

 protected:
  Vector result_;
  Bounds bounds_;
};

/// `space` outlives the expression. What has no vectorized form is evaluated row by row by plan::Evaluate.
std::unique_ptr<VectorExpression> Compile(const plan::Expr& expr, const ColumnSpace& space);

/// A boolean over a single column of few codes, decided for each code; nothing where that does not pay, or
/// where a code's evaluation fails (it may not occur in the data: then the rows decide).
std::optional<std::vector<uint8_t>> TruthByCode(const plan::Expr& expr, const ColumnSpace& space);

/// The value of tuple `i` of a vector as a SQL value of `type`.
Value ValueAt(const Vector& vector, uint32_t i, const Type& type);

}  // namespace nam::computeserver
