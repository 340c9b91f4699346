#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "computeserver/vector_expression.h"
#include "plan/expression_tree.h"
#include "types/date.h"
#include "types/sql_error.h"

/// The nodes that vector_expression.cc makes expressions of.
namespace nam::computeserver::vector_nodes {

using plan::Expr;
using plan::Op;
using Node = VectorExpression;
using NodePtr = std::unique_ptr<VectorExpression>;

/// Whether a number has at most 38 digits.
inline bool FitsDigits(__int128 n) {
  static const __int128 kMost = PowerOfTen(kMaxDecimalDigits) - 1;
  return n <= kMost && n >= -kMost;
}

inline Bounds Combine(Op op, const Bounds& a, const Bounds& b) {
  Bounds out;
  if (!a.known || !b.known) return out;
  __int128 x[4];
  switch (op) {
    case Op::kAdd:
      out.known = !__builtin_add_overflow(a.low, b.low, &out.low) &&
                  !__builtin_add_overflow(a.high, b.high, &out.high);
      return out;
    case Op::kSubtract:
      out.known = !__builtin_sub_overflow(a.low, b.high, &out.low) &&
                  !__builtin_sub_overflow(a.high, b.low, &out.high);
      return out;
    default:
      if (__builtin_mul_overflow(a.low, b.low, &x[0]) || __builtin_mul_overflow(a.low, b.high, &x[1]) ||
          __builtin_mul_overflow(a.high, b.low, &x[2]) || __builtin_mul_overflow(a.high, b.high, &x[3])) {
        return out;
      }
      return {*std::min_element(x, x + 4), *std::max_element(x, x + 4), true};
  }
}

/// A column of numbers or dates.
class NumberColumn final : public Node {
 public:
  NumberColumn(const ColumnSpace& space, plan::ColumnRef ref) : column_(space.at(ref)), table_(ref.table) {
    result_.narrow.resize(kBatchRows);
    result_.nulls.resize(kBatchRows);
    result_.has_nulls = column_.meaning.nullable;
    bounds_ = {column_.meaning.min, column_.meaning.max, true};
    if (column_.meaning.nullable) {  // a NULL is computed with as 0
      bounds_.low = std::min<__int128>(bounds_.low, 0);
      bounds_.high = std::max<__int128>(bounds_.high, 0);
    }
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    const uint32_t* rows = batch.of(table_);
    const auto base = static_cast<uint64_t>(column_.meaning.base);
    int64_t* out = result_.narrow.data();
    WithCodes(column_.source, [&](const auto* codes) {
      for (uint32_t i = 0; i < batch.size; ++i) out[i] = static_cast<int64_t>(base + codes[rows[i]]);
      if (result_.has_nulls) {
        for (uint32_t i = 0; i < batch.size; ++i) {
          result_.nulls[i] = codes[rows[i]] == 0;
          if (result_.nulls[i]) out[i] = 0;
        }
      }
    });
    return &result_;
  }

 private:
  const ColumnSpace::Column& column_;
  const int table_;
};

class TextColumn final : public Node {
 public:
  TextColumn(const ColumnSpace& space, plan::ColumnRef ref) : column_(space.at(ref)), table_(ref.table) {
    result_.kind = Vector::Kind::kText;
    result_.text.resize(kBatchRows);
    result_.nulls.resize(kBatchRows);
    result_.has_nulls = column_.meaning.nullable;
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    const uint32_t* rows = batch.of(table_);
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint64_t code = column_.source.at(rows[i]);
      const bool null = column_.meaning.IsNull(code);
      result_.nulls[i] = null;
      result_.text[i] = null ? std::string_view() : column_.meaning.Text(code);
    }
    return &result_;
  }

 private:
  const ColumnSpace::Column& column_;
  const int table_;
};

class Literal final : public Node {
 public:
  explicit Literal(const Expr& expr) : text_(expr.literal.text) {
    const Value& value = expr.literal;
    result_.has_nulls = value.null;
    result_.nulls.assign(kBatchRows, value.null);
    if (expr.type.kind == TypeKind::kBool) {
      result_.kind = Vector::Kind::kTruth;
      result_.truth.assign(kBatchRows, value.null ? Vector::kUnknown : value.number != 0);
    } else if (expr.type.kind == TypeKind::kString) {
      result_.kind = Vector::Kind::kText;
      result_.text.assign(kBatchRows, text_);
    } else {
      bounds_ = {value.null ? 0 : value.number, value.null ? 0 : value.number, true};
      if (bounds_.narrow()) {
        result_.narrow.assign(kBatchRows, static_cast<int64_t>(bounds_.low));
      } else {
        result_.kind = Vector::Kind::kWide;
        result_.wide.assign(kBatchRows, bounds_.low);
      }
    }
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch&) override { return &result_; }

 private:
  const std::string text_;
};

/// Nulls of an operation that is NULL when either side is.
inline void UniteNulls(const Vector& a, const Vector& b, uint32_t n, Vector& out) {
  out.has_nulls = a.has_nulls || b.has_nulls;
  if (!out.has_nulls) return;
  out.nulls.resize(kBatchRows);
  for (uint32_t i = 0; i < n; ++i) out.nulls[i] = a.null(i) || b.null(i);
}

/// + - * over numbers of one scale (or any, for *), and date arithmetic.
class Arithmetic final : public Node {
 public:
  Arithmetic(Op op, NodePtr a, NodePtr b) : op_(op), a_(std::move(a)), b_(std::move(b)) {
    bounds_ = Combine(op, a_->bounds(), b_->bounds());
    // Few numbers may be made of many: 0 * x.
    narrow_ = bounds_.narrow() && a_->kind() == Vector::Kind::kNarrow && b_->kind() == Vector::Kind::kNarrow;
    result_.kind = narrow_ ? Vector::Kind::kNarrow : Vector::Kind::kWide;
    narrow_ ? result_.narrow.resize(kBatchRows) : result_.wide.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    NAM_ASSIGN_OR_RETURN(const Vector* a, a_->Evaluate(batch));
    NAM_ASSIGN_OR_RETURN(const Vector* b, b_->Evaluate(batch));
    UniteNulls(*a, *b, batch.size, result_);
    if (narrow_) {
      Narrow(a->narrow.data(), b->narrow.data(), batch.size);
      return &result_;
    }
    for (uint32_t i = 0; i < batch.size; ++i) {
      if (result_.null(i)) continue;
      const __int128 x = a->number(i), y = b->number(i);
      const bool overflow = op_ == Op::kAdd        ? __builtin_add_overflow(x, y, &result_.wide[i])
                            : op_ == Op::kSubtract ? __builtin_sub_overflow(x, y, &result_.wide[i])
                                                   : __builtin_mul_overflow(x, y, &result_.wide[i]);
      if (overflow || !FitsDigits(result_.wide[i])) return NumberOutOfRange(/*position=*/-1);
    }
    return &result_;
  }

 private:
  void Narrow(const int64_t* x, const int64_t* y, uint32_t n) {
    int64_t* out = result_.narrow.data();
    switch (op_) {
      case Op::kAdd:
        for (uint32_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
        return;
      case Op::kSubtract:
        for (uint32_t i = 0; i < n; ++i) out[i] = x[i] - y[i];
        return;
      default:
        for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * y[i];
    }
  }
  const Op op_;
  NodePtr a_, b_;
  bool narrow_;
};

/// What is known to be within 64 bits, or an error.
class WithinRange final : public Node {
 public:
  WithinRange(NodePtr a, int64_t low, int64_t high, absl::Status error)
      : a_(std::move(a)), low_(low), high_(high), error_(std::move(error)) {
    const Bounds& of = a_->bounds();
    bounds_ = {low, high, true};
    if (of.known)
      bounds_ = {std::clamp<__int128>(of.low, low, high), std::clamp<__int128>(of.high, low, high), true};
    result_.narrow.resize(kBatchRows);
    result_.nulls.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    NAM_ASSIGN_OR_RETURN(const Vector* a, a_->Evaluate(batch));
    result_.has_nulls = a->has_nulls;
    for (uint32_t i = 0; i < batch.size; ++i) {
      const bool null = a->null(i);
      result_.nulls[i] = null;
      const __int128 number = null ? bounds_.low : a->number(i);
      if (number < low_ || number > high_) return error_;
      result_.narrow[i] = static_cast<int64_t>(number);
    }
    return &result_;
  }
  static bool Needed(const Bounds& bounds, int64_t low, int64_t high) {
    return !bounds.known || bounds.low < low || bounds.high > high;
  }

 private:
  NodePtr a_;
  const int64_t low_, high_;
  const absl::Status error_;
};

class Comparison final : public Node {
 public:
  Comparison(Op op, NodePtr a, NodePtr b, bool ignores_blanks)
      : op_(op), ignores_blanks_(ignores_blanks), a_(std::move(a)), b_(std::move(b)) {
    result_.kind = Vector::Kind::kTruth;
    result_.truth.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    NAM_ASSIGN_OR_RETURN(const Vector* a, a_->Evaluate(batch));
    NAM_ASSIGN_OR_RETURN(const Vector* b, b_->Evaluate(batch));
    const uint32_t n = batch.size;
    if (a->kind == Vector::Kind::kText && ignores_blanks_) {
      Compare(n, [&](uint32_t i) {
        return plan::WithoutBlanks(a->text[i]).compare(plan::WithoutBlanks(b->text[i]));
      });
    } else if (a->kind == Vector::Kind::kText) {
      Compare(n, [&](uint32_t i) { return a->text[i].compare(b->text[i]); });
    } else if (a->kind == Vector::Kind::kNarrow && b->kind == Vector::Kind::kNarrow) {
      const int64_t *x = a->narrow.data(), *y = b->narrow.data();
      Compare(n, [&](uint32_t i) { return (x[i] > y[i]) - (x[i] < y[i]); });
    } else {
      Compare(n, [&](uint32_t i) {
        const __int128 x = a->number(i), y = b->number(i);
        return (x > y) - (x < y);
      });
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (a->null(i) || b->null(i)) result_.truth[i] = Vector::kUnknown;
    }
    return &result_;
  }

 private:
  template <typename Order>
  void Compare(uint32_t n, Order&& order) {
    uint8_t* out = result_.truth.data();
    switch (op_) {
      case Op::kEqual:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) == 0;
        return;
      case Op::kNotEqual:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) != 0;
        return;
      case Op::kLess:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) < 0;
        return;
      case Op::kLessEqual:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) <= 0;
        return;
      case Op::kGreater:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) > 0;
        return;
      default:
        for (uint32_t i = 0; i < n; ++i) out[i] = order(i) >= 0;
        return;
    }
  }
  const Op op_;
  const bool ignores_blanks_;  // of texts
  NodePtr a_, b_;
};

/// The tuples of a batch at some positions, as a batch of its own.
class Subset {
 public:
  const Batch& Of(const Batch& batch, const std::vector<uint32_t>& positions) {
    if (!batch_) {
      batch_ = std::make_unique<Batch>(batch.rows.size());
      for (size_t t = 0; t < batch.rows.size(); ++t) {
        if (!batch.rows[t].empty()) batch_->Include(static_cast<int>(t));
      }
    }
    batch_->Select(batch, positions.data(), static_cast<uint32_t>(positions.size()));
    return *batch_;
  }

 private:
  std::unique_ptr<Batch> batch_;
};

/// AND and OR: each side is evaluated only where those before have not decided, so that
/// `x <> 0 AND y / x > 1` does not divide by zero.
class Junction final : public Node {
 public:
  Junction(bool conjunction, std::vector<NodePtr> children)
      : decisive_(conjunction ? Vector::kFalse : Vector::kTrue), children_(std::move(children)) {
    result_.kind = Vector::Kind::kTruth;
    result_.truth.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    uint8_t* out = result_.truth.data();
    std::fill_n(out, batch.size, static_cast<uint8_t>(1 - decisive_));
    open_.resize(batch.size);
    for (uint32_t i = 0; i < batch.size; ++i) open_[i] = i;
    for (const NodePtr& child : children_) {
      if (open_.empty()) break;
      const Batch& part = open_.size() == batch.size ? batch : subset_.Of(batch, open_);
      NAM_ASSIGN_OR_RETURN(const Vector* truth, child->Evaluate(part));
      size_t left = 0;
      for (size_t k = 0; k < open_.size(); ++k) {
        const uint32_t i = open_[k];
        if (truth->truth[k] == decisive_) {
          out[i] = decisive_;
          continue;
        }
        if (truth->truth[k] == Vector::kUnknown) out[i] = Vector::kUnknown;
        open_[left++] = i;
      }
      open_.resize(left);
    }
    return &result_;
  }

 private:
  const uint8_t decisive_;
  std::vector<NodePtr> children_;
  std::vector<uint32_t> open_;
  Subset subset_;
};

class Not final : public Node {
 public:
  explicit Not(NodePtr a) : a_(std::move(a)) {
    result_.kind = Vector::Kind::kTruth;
    result_.truth.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    NAM_ASSIGN_OR_RETURN(const Vector* a, a_->Evaluate(batch));
    for (uint32_t i = 0; i < batch.size; ++i) {
      result_.truth[i] =
          a->truth[i] == Vector::kUnknown ? Vector::kUnknown : static_cast<uint8_t>(1 - a->truth[i]);
    }
    return &result_;
  }

 private:
  NodePtr a_;
};

class IsNull final : public Node {
 public:
  explicit IsNull(NodePtr a) : a_(std::move(a)) {
    result_.kind = Vector::Kind::kTruth;
    result_.truth.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    NAM_ASSIGN_OR_RETURN(const Vector* a, a_->Evaluate(batch));
    for (uint32_t i = 0; i < batch.size; ++i) result_.truth[i] = a->null(i);
    return &result_;
  }

 private:
  NodePtr a_;
};

/// A boolean expression over one column, as a look-up by code.
class CodeLookup final : public Node {
 public:
  CodeLookup(const ColumnSpace& space, plan::ColumnRef ref, std::vector<uint8_t> truth)
      : column_(space.at(ref)), table_(ref.table), truth_(std::move(truth)) {
    result_.kind = Vector::Kind::kTruth;
    result_.truth.resize(kBatchRows);
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    const uint32_t* rows = batch.of(table_);
    WithCodes(column_.source, [&](const auto* codes) {
      for (uint32_t i = 0; i < batch.size; ++i) result_.truth[i] = truth_[codes[rows[i]]];
    });
    return &result_;
  }

 private:
  const ColumnSpace::Column& column_;
  const int table_;
  const std::vector<uint8_t> truth_;
};

/// Anything else, row by row.
class RowByRow final : public Node {
 public:
  RowByRow(const Expr& expr, const ColumnSpace& space) : expr_(expr), space_(space) {
    switch (expr.type.kind) {
      case TypeKind::kBool:
        result_.kind = Vector::Kind::kTruth;
        result_.truth.resize(kBatchRows);
        break;
      case TypeKind::kString:
        result_.kind = Vector::Kind::kText;
        result_.text.resize(kBatchRows);
        break;
      default:
        result_.kind = Vector::Kind::kWide;
        result_.wide.resize(kBatchRows);
    }
    result_.nulls.resize(kBatchRows);
    result_.has_nulls = true;
  }
  absl::StatusOr<const Vector*> Evaluate(const Batch& batch) override {
    texts_.clear();
    for (uint32_t i = 0; i < batch.size; ++i) {
      auto value = plan::Evaluate(expr_, [&](const Expr& column) {
        const ColumnSpace::Column& c = space_.at(column.column);
        return c.meaning.Decode(c.source.at(batch.of(column.column.table)[i]));
      });
      if (!value.ok()) return value.status();
      result_.nulls[i] = value->null;
      if (result_.kind == Vector::Kind::kTruth) {
        result_.truth[i] = value->null ? Vector::kUnknown : value->number != 0;
      } else if (result_.kind == Vector::Kind::kText) {
        result_.text[i] = texts_.emplace_back(std::move(value->text));
      } else {
        result_.wide[i] = value->null ? 0 : value->number;
      }
    }
    return &result_;
  }

 private:
  const Expr expr_;
  const ColumnSpace& space_;
  std::deque<std::string> texts_;
};

}  // namespace nam::computeserver::vector_nodes
