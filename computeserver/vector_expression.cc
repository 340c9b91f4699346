#include "computeserver/vector_expression.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "base/date.h"
#include "base/status_macros.h"
#include "sql/errors.h"
#include "sql/expression_tree.h"

namespace nam::computeserver {

Value ColumnMeaning::Decode(uint64_t code) const {
  if (IsNull(code)) return Value::Null(type);
  Value value;
  value.type = type;
  value.null = false;
  if (type.kind == TypeKind::kString) {
    value.text = std::string(Text(code));
  } else {
    value.number = Number(code);
  }
  return value;
}

Value ValueAt(const Vector& vector, uint32_t i, const Type& type) {
  if (vector.null(i)) return Value::Null(type);
  Value value;
  value.type = type;
  value.null = false;
  if (vector.kind == Vector::Kind::kText) {
    value.text = std::string(vector.text[i]);
  } else {
    value.number = vector.number(i);
  }
  return value;
}

namespace {

using sql::Expr;
using sql::Op;
using Node = VectorExpression;
using NodePtr = std::unique_ptr<VectorExpression>;

Bounds Combine(Op op, const Bounds& a, const Bounds& b) {
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
  NumberColumn(const ColumnSpace& space, sql::ColumnRef ref) : column_(space.at(ref)), table_(ref.table) {
    result_.narrow.resize(kBatchRows);
    result_.nulls.resize(kBatchRows);
    result_.has_nulls = column_.meaning.nullable;
    bounds_ = {column_.meaning.min, column_.meaning.max, true};
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
  TextColumn(const ColumnSpace& space, sql::ColumnRef ref) : column_(space.at(ref)), table_(ref.table) {
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
void UniteNulls(const Vector& a, const Vector& b, uint32_t n, Vector& out) {
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
    narrow_ = bounds_.narrow() && a_->bounds().narrow() && b_->bounds().narrow();
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
      if (overflow || result_.wide[i] > kMost || result_.wide[i] < -kMost)
        return sql::NumberOutOfRange(/*position=*/-1);
    }
    return &result_;
  }

 private:
  static inline const __int128 kMost = PowerOfTen(kMaxDecimalDigits) - 1;
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
      const bool null = result_.nulls[i] = a->null(i);
      const __int128 number = null ? low_ : a->number(i);
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

/// Multiplies by a power of ten: brings a number to a larger scale.
NodePtr ScaleUp(NodePtr a, int from, int to) {
  if (from == to) return a;
  Expr factor;
  factor.type = Type::Integer();
  factor.literal = Value::Integer(PowerOfTen(to - from));
  return std::make_unique<Arithmetic>(Op::kMultiply, std::move(a), std::make_unique<Literal>(factor));
}

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
        return sql::WithoutBlanks(a->text[i]).compare(sql::WithoutBlanks(b->text[i]));
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
  CodeLookup(const ColumnSpace& space, sql::ColumnRef ref, std::vector<uint8_t> truth)
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
      auto value = sql::Evaluate(expr_, [&](const Expr& column) {
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

/// A look-up by code pays off below this many codes (numbers: each costs an evaluation).
constexpr uint64_t kMostNumberCodes = 4096;
constexpr uint64_t kMostTextCodes = 1 << 22;

bool IsComparison(Op op) {
  return op == Op::kEqual || op == Op::kNotEqual || op == Op::kLess || op == Op::kLessEqual ||
         op == Op::kGreater || op == Op::kGreaterEqual;
}

class Compiler {
 public:
  explicit Compiler(const ColumnSpace& space) : space_(space) {}

  NodePtr Build(const Expr& e) {
    if (e.type.kind == TypeKind::kBool && e.op != Op::kLiteral && e.op != Op::kColumn) {
      if (NodePtr lookup = Lookup(e)) return lookup;
    }
    switch (e.op) {
      case Op::kColumn:
        return Column(e);
      case Op::kLiteral:
        return std::make_unique<Literal>(e);
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
        return Arith(e);
      case Op::kNegate:
        return Negate(e);
      case Op::kAnd:
      case Op::kOr:
        return Junct(e);
      case Op::kNot:
        return std::make_unique<Not>(Build(e.children[0]));
      case Op::kIsNull:
        return std::make_unique<IsNull>(Build(e.children[0]));
      case Op::kCast:
        return Cast(e);
      default:
        break;
    }
    if (IsComparison(e.op)) return Compare(e);
    return std::make_unique<RowByRow>(e, space_);
  }

 private:
  NodePtr Column(const Expr& e) {
    if (e.type.kind == TypeKind::kString) return std::make_unique<TextColumn>(space_, e.column);
    if (e.type.kind == TypeKind::kBool) return std::make_unique<RowByRow>(e, space_);
    return std::make_unique<NumberColumn>(space_, e.column);
  }

  NodePtr Arith(const Expr& e) {
    NodePtr a = Build(e.children[0]), b = Build(e.children[1]);
    if (e.op != Op::kMultiply && e.type.numeric()) {
      a = ScaleUp(std::move(a), e.children[0].type.scale, e.type.scale);
      b = ScaleUp(std::move(b), e.children[1].type.scale, e.type.scale);
    }
    NodePtr result = std::make_unique<Arithmetic>(e.op, std::move(a), std::move(b));
    if (e.type.kind != TypeKind::kDate || !WithinRange::Needed(result->bounds(), kLeastDay, kGreatestDay))
      return result;
    return std::make_unique<WithinRange>(std::move(result), kLeastDay, kGreatestDay,
                                         sql::DateOutOfRange(e.position));
  }

  NodePtr Negate(const Expr& e) {
    Expr zero;
    zero.type = e.type;
    zero.literal = Value::Integer(0);
    return std::make_unique<Arithmetic>(Op::kSubtract, std::make_unique<Literal>(zero), Build(e.children[0]));
  }

  NodePtr Junct(const Expr& e) {
    std::vector<NodePtr> children;
    for (const Expr& child : e.children) children.push_back(Build(child));
    return std::make_unique<Junction>(e.op == Op::kAnd, std::move(children));
  }

  NodePtr Cast(const Expr& e) {
    const Type& from = e.children[0].type;
    if (from.kind == TypeKind::kInteger && e.type.kind == TypeKind::kInteger) {
      NodePtr a = Build(e.children[0]);
      const int bytes = sql::IntegerBytes(e);
      const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * bytes), low = -high - 1;
      if (!WithinRange::Needed(a->bounds(), low, high)) return a;
      return std::make_unique<WithinRange>(std::move(a), low, high,
                                           sql::IntegerOutOfRange(bytes, e.position));
    }
    if (from.numeric() && e.type.kind == TypeKind::kDecimal && e.type.scale >= from.scale) {
      return ScaleUp(Build(e.children[0]), from.scale, e.type.scale);
    }
    if (from.kind == TypeKind::kString && e.type.kind == TypeKind::kString) return Build(e.children[0]);
    return std::make_unique<RowByRow>(e, space_);
  }

  NodePtr Compare(const Expr& e) {
    const Type &x = e.children[0].type, &y = e.children[1].type;
    if (x.kind == TypeKind::kBool) return std::make_unique<RowByRow>(e, space_);
    NodePtr a = Build(e.children[0]), b = Build(e.children[1]);
    if (x.numeric() && y.numeric()) {
      const uint8_t scale = std::max(x.scale, y.scale);
      a = ScaleUp(std::move(a), x.scale, scale);
      b = ScaleUp(std::move(b), y.scale, scale);
    }
    return std::make_unique<Comparison>(e.op, std::move(a), std::move(b), sql::IgnoresBlanks(x, y));
  }

  NodePtr Lookup(const Expr& e) {
    auto truth = TruthByCode(e, space_);
    if (!truth) return nullptr;
    return std::make_unique<CodeLookup>(space_, sql::ColumnsOf(e)[0], *std::move(truth));
  }

  const ColumnSpace& space_;
};

}  // namespace

std::optional<std::vector<uint8_t>> TruthByCode(const sql::Expr& expr, const ColumnSpace& space) {
  const std::vector<sql::ColumnRef> columns = sql::ColumnsOf(expr);
  if (columns.size() != 1) return std::nullopt;
  const ColumnMeaning& meaning = space.at(columns[0]).meaning;
  const bool text = meaning.type.kind == TypeKind::kString;
  if (meaning.codes == 0 || meaning.codes > (text ? kMostTextCodes : kMostNumberCodes)) return std::nullopt;
  const bool plain_like = text && expr.op == Op::kLike && expr.children[0].op == Op::kColumn &&
                          !sql::IsChar(expr.children[0].type);
  std::vector<uint8_t> truth(meaning.codes);
  for (uint64_t code = 0; code < meaning.codes; ++code) {
    // No row has the one code of a table without rows.
    if (text && !meaning.IsNull(code) && meaning.dictionary->size() <= code - meaning.nullable) continue;
    if (plain_like && !meaning.IsNull(code)) {
      truth[code] = sql::MatchesLike(meaning.Text(code), expr.literal.text);
      continue;
    }
    const auto value = sql::Evaluate(expr, [&](const Expr&) { return meaning.Decode(code); });
    if (!value.ok()) return std::nullopt;
    truth[code] = value->null ? Vector::kUnknown : value->number != 0;
  }
  return truth;
}

std::unique_ptr<VectorExpression> Compile(const sql::Expr& expr, const ColumnSpace& space) {
  return Compiler(space).Build(expr);
}

}  // namespace nam::computeserver
