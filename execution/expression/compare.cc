#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "execution/expression/operands.h"
#include "types/decimal.h"

namespace nam::execution {
namespace {

using plan::Op;

bool Holds(Op op, int order) {
  switch (op) {
    case Op::kEqual:
      return order == 0;
    case Op::kNotEqual:
      return order != 0;
    case Op::kLess:
      return order < 0;
    case Op::kLessEqual:
      return order <= 0;
    case Op::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

/// truth[p] = a[p] op b[p], of numbers.
template <typename A, typename B>
void CompareNumbers(Op op, Selection rows, A a, B b, uint8_t* __restrict truth) {
  switch (op) {
    case Op::kEqual:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] == b[p]; });
    case Op::kNotEqual:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] != b[p]; });
    case Op::kLess:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] < b[p]; });
    case Op::kLessEqual:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] <= b[p]; });
    case Op::kGreater:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] > b[p]; });
    default:
      return ForEach(rows, [=](uint32_t p) { truth[p] = a[p] >= b[p]; });
  }
}

/// kUnknown where `vector` is NULL.
void MarkUnknown(const Vector& vector, Selection rows, uint8_t* truth) {
  if (vector.physical == Physical::kTruth) {
    ForEach(rows,
            [=, other = vector.truth](uint32_t p) { truth[p] = other[p] == kUnknown ? kUnknown : truth[p]; });
  } else if (vector.nulls != nullptr) {
    ForEach(rows, [=, nulls = vector.nulls](uint32_t p) { truth[p] = nulls[p] != 0 ? kUnknown : truth[p]; });
  }
}

/// A boolean of two operands, unknown where either is NULL.
class Comparison : public BinaryNode {
 public:
  Comparison(Op op, NodePtr a, NodePtr b)
      : BinaryNode(Physical::kTruth, {}, std::move(a), std::move(b)), op_(op) {}

 protected:
  virtual void Compare(const Vector& a, const Vector& b, Selection rows, uint8_t* truth) const = 0;
  Op op() const { return op_; }

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const final {
    Compare(a, b, rows, out.truth);
    MarkUnknown(a, rows, out.truth);
    MarkUnknown(b, rows, out.truth);
    return absl::OkStatus();
  }

  const Op op_;
};

class NumberComparison final : public Comparison {
 public:
  using Comparison::Comparison;

 private:
  void Compare(const Vector& a, const Vector& b, Selection rows, uint8_t* truth) const override {
    if (a.physical == Physical::kTruth) {
      return CompareNumbers(op(), rows, static_cast<const uint8_t*>(a.truth),
                            static_cast<const uint8_t*>(b.truth), truth);
    }
    if (a.physical == Physical::kInt64 && b.physical == Physical::kInt64) {
      const int64_t* const x = a.narrow;
      const Value* constant = child(1).constant();
      if (constant != nullptr && !constant->null)
        return CompareNumbers(op(), rows, x, Same<int64_t>{static_cast<int64_t>(constant->number)}, truth);
      return CompareNumbers(op(), rows, x, static_cast<const int64_t*>(b.narrow), truth);
    }
    WithWide(a, [&](auto x) { WithWide(b, [&](auto y) { CompareNumbers(op(), rows, x, y, truth); }); });
  }
};

/// Compares numbers of different scales, of which the larger may take more than 38 digits.
class ScaledComparison final : public Comparison {
 public:
  ScaledComparison(Op op, uint8_t scale_a, uint8_t scale_b, NodePtr a, NodePtr b)
      : Comparison(op, std::move(a), std::move(b)), scale_a_(scale_a), scale_b_(scale_b) {}

 private:
  void Compare(const Vector& a, const Vector& b, Selection rows, uint8_t* truth) const override {
    ForEach(rows, [&](uint32_t p) {
      if (a.null(p) || b.null(p)) {
        truth[p] = kFalse;
      } else {
        truth[p] = Holds(
            op(), nam::Compare(Value::Decimal(a.number(p), scale_a_), Value::Decimal(b.number(p), scale_b_)));
      }
    });
  }
  const uint8_t scale_a_, scale_b_;
};

/// Compares texts by bytes. Two columns of one dictionary compare by the numbers of their entries.
class TextComparison final : public Comparison {
 public:
  /// `ignores_blanks`: blanks at the ends are ignored. `by_entry`: different entries are still different
  /// texts.
  TextComparison(Op op, bool ignores_blanks, bool by_entry, NodePtr a, NodePtr b)
      : Comparison(op, std::move(a), std::move(b)), ignores_blanks_(ignores_blanks) {
    if (!by_entry) return;
    slot_a_ = TextSlotOf(child(0));
    slot_b_ = TextSlotOf(child(1));
  }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    if (slot_a_ != nullptr && slot_b_ != nullptr) {
      const Column &a = chunk.column(*slot_a_), &b = chunk.column(*slot_b_);
      const CodeMeaning *of_a = MeaningOf(a), *of_b = MeaningOf(b);
      if (of_a != nullptr && of_b != nullptr && of_a->dictionary_id != 0 &&
          of_a->dictionary_id == of_b->dictionary_id) {
        return ByEntry(frame, a, b, rows);
      }
    }
    return Comparison::Evaluate(frame, chunk, rows);
  }

 private:
  const Vector* ByEntry(Frame& frame, const Column& a, const Column& b, Selection rows) const {
    // The loads' registers have more room than this needs.
    Register &at_a = FrameAccess::at(frame, child(0).number()),
             &at_b = FrameAccess::at(frame, child(1).number());
    auto* const x = reinterpret_cast<int64_t*>(at_a.values);
    auto* const y = reinterpret_cast<int64_t*>(at_b.values);
    const bool null_a = LoadEntries(a, rows, x, at_a.nulls), null_b = LoadEntries(b, rows, y, at_b.nulls);
    uint8_t* const truth = Out(At(frame)).truth;
    CompareNumbers(op(), rows, static_cast<const int64_t*>(x), static_cast<const int64_t*>(y), truth);
    for (const auto& [has_nulls, nulls] : {std::pair(null_a, at_a.nulls), std::pair(null_b, at_b.nulls)}) {
      Vector other;
      other.nulls = has_nulls ? nulls : nullptr;
      MarkUnknown(other, rows, truth);
    }
    return &At(frame).vector;
  }

  void Compare(const Vector& a, const Vector& b, Selection rows, uint8_t* truth) const override {
    const std::string_view *x = a.text, *y = b.text;
    // At NULLs lie stale texts, which must not be read.
    const auto null = [&](uint32_t p) { return a.null(p) || b.null(p); };
    if (ignores_blanks_) {
      ForEach(rows, [&](uint32_t p) {
        truth[p] = !null(p) && Holds(op(), plan::WithoutBlanks(x[p]).compare(plan::WithoutBlanks(y[p])));
      });
    } else if (op() == Op::kEqual || op() == Op::kNotEqual) {
      ForEach(rows, [&, equal = op() == Op::kEqual](uint32_t p) {
        truth[p] = !null(p) && (x[p] == y[p]) == equal;
      });
    } else {
      ForEach(rows, [&](uint32_t p) { truth[p] = !null(p) && Holds(op(), x[p].compare(y[p])); });
    }
  }

  const bool ignores_blanks_;
  const uint32_t* slot_a_ = nullptr;
  const uint32_t* slot_b_ = nullptr;
};

/// Up to this many items a loop over all of them is the fastest.
constexpr size_t kFewItems = 8;

/// Whether a value is among constants.
template <typename T>
class Membership final : public UnaryNode {
 public:
  /// `items` ascend.
  Membership(NodePtr a, std::vector<T> items, bool has_null)
      : UnaryNode(Physical::kTruth, {}, std::move(a)),
        items_(std::move(items)),
        otherwise_(has_null ? kUnknown : kFalse) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    uint8_t* const truth = out.truth;
    const auto loop = [&](auto values) {
      if (items_.size() <= kFewItems) {
        ForEach(rows, [&](uint32_t p) {
          bool found = false;
          for (const T& item : items_) found |= values[p] == item;
          truth[p] = found ? kTrue : otherwise_;
        });
      } else {
        ForEach(rows, [&](uint32_t p) {
          truth[p] = std::binary_search(items_.begin(), items_.end(), values[p]) ? kTrue : otherwise_;
        });
      }
    };
    if constexpr (std::is_same_v<T, std::string>) {
      ForEach(rows, [&](uint32_t p) {
        const bool found = !a.null(p) && std::binary_search(items_.begin(), items_.end(), a.text[p]);
        truth[p] = found ? kTrue : otherwise_;
      });
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      loop(static_cast<const uint8_t*>(a.truth));
    } else if constexpr (std::is_same_v<T, int64_t>) {
      loop(static_cast<const int64_t*>(a.narrow));
    } else {
      WithWide(a, loop);
    }
    MarkUnknown(a, rows, truth);
    return absl::OkStatus();
  }

  const std::vector<T> items_;
  const uint8_t otherwise_;
};

template <typename T>
NodePtr MakeMembership(NodePtr a, std::vector<T> items, bool has_null) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return std::make_unique<Membership<T>>(std::move(a), std::move(items), has_null);
}

bool FitsScaled(const Node& a, int digits) {
  const plan::Bounds& bounds = a.bounds();
  if (!bounds.known) return false;
  return Rescale(bounds.low, 0, digits).has_value() && Rescale(bounds.high, 0, digits).has_value();
}

}  // namespace

NodePtr MakeComparison(const plan::Expr& e, NodePtr a, NodePtr b) {
  const Type &x = e.children[0].type, &y = e.children[1].type;
  if (PhysicalOf(x) == Physical::kText) {
    const bool ignores = plan::IgnoresBlanks(x, y);
    // Values of char(n) do not end in blanks, so different entries are different values.
    const bool by_entry = !ignores || (plan::IsChar(x) && plan::IsChar(y));
    return std::make_unique<TextComparison>(e.op, ignores, by_entry, std::move(a), std::move(b));
  }
  if (x.scale == y.scale) return std::make_unique<NumberComparison>(e.op, std::move(a), std::move(b));
  const int scale = std::max(x.scale, y.scale);
  if (!FitsScaled(x.scale < scale ? *a : *b, std::abs(x.scale - y.scale)))
    return std::make_unique<ScaledComparison>(e.op, x.scale, y.scale, std::move(a), std::move(b));
  return std::make_unique<NumberComparison>(e.op, MakeRescale(std::move(a), x.scale, scale, e.position),
                                            MakeRescale(std::move(b), y.scale, scale, e.position));
}

NodePtr MakeIn(NodePtr a, const Type& type, std::span<const plan::Expr> list) {
  const bool has_null = std::any_of(list.begin(), list.end(), [](const auto& e) { return e.literal.null; });
  if (PhysicalOf(type) == Physical::kText) {
    std::vector<std::string> texts;
    for (const plan::Expr& item : list) {
      if (!item.literal.null) texts.push_back(item.literal.text);
    }
    return MakeMembership(std::move(a), std::move(texts), has_null);
  }
  std::vector<__int128> numbers;
  for (const plan::Expr& item : list) {
    if (item.literal.null) continue;
    // A literal without an equal at the scale of `a` matches no value of it.
    const int scale = item.literal.type.scale;
    if (scale == type.scale) {  // also with more digits than numbers have, as in a uuid
      numbers.push_back(item.literal.number);
      continue;
    }
    const std::optional<__int128> number = Rescale(item.literal.number, scale, type.scale);
    if (number && Rescale(*number, type.scale, scale) == item.literal.number) numbers.push_back(*number);
  }
  if (a->physical() == Physical::kInt128) return MakeMembership(std::move(a), std::move(numbers), has_null);
  if (a->physical() == Physical::kTruth)
    return MakeMembership(std::move(a), std::vector<uint8_t>(numbers.begin(), numbers.end()), has_null);
  std::erase_if(numbers, [](__int128 n) { return n < INT64_MIN || n > INT64_MAX; });
  return MakeMembership(std::move(a), std::vector<int64_t>(numbers.begin(), numbers.end()), has_null);
}

}  // namespace nam::execution
