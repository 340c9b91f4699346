#include <algorithm>
#include <utility>

#include "base/check.h"
#include "execution/expression/operands.h"

namespace nam::execution {
namespace {

/// AND and OR. Each side is evaluated only where those before have not decided, so that
/// `x <> 0 AND y / x > 1` does not divide by zero.
class Junction final : public Node {
 public:
  Junction(bool conjunction, std::vector<NodePtr> children)
      : Node(Physical::kTruth, {}, std::move(children)), decisive_(conjunction ? kFalse : kTrue) {}
  Needs needs() const override { return {.value_bytes = 1, .positions = 1, .while_children_run = true}; }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    Register& at = At(frame);
    uint8_t* const truth = Out(at).truth;
    const auto neutral = static_cast<uint8_t>(1 - decisive_);
    ForEach(rows, [=](uint32_t p) { truth[p] = neutral; });
    Selection open = rows;
    for (const NodePtr& side : children()) {
      const Vector* vector = side->Evaluate(frame, chunk, open);
      if (vector == nullptr) return nullptr;
      const uint8_t* const of = vector->truth;
      uint32_t* const left = at.positions[0];
      uint32_t n = 0;
      ForEach(open, [&](uint32_t p) {
        const bool decided = of[p] == decisive_;
        truth[p] = decided ? decisive_ : of[p] == kUnknown ? kUnknown : truth[p];
        left[n] = p;
        n += !decided;
      });
      if (n == 0) break;
      if (n < open.count) open = {left, n};
    }
    return &at.vector;
  }

 private:
  const uint8_t decisive_;
};

class Not final : public UnaryNode {
 public:
  explicit Not(NodePtr a) : UnaryNode(Physical::kTruth, {}, std::move(a)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    ForEach(rows, [truth = out.truth, of = a.truth](uint32_t p) {
      truth[p] = of[p] == kUnknown ? kUnknown : static_cast<uint8_t>(1 - of[p]);
    });
    return absl::OkStatus();
  }
};

class IsNull final : public UnaryNode {
 public:
  explicit IsNull(NodePtr a) : UnaryNode(Physical::kTruth, {}, std::move(a)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    uint8_t* const truth = out.truth;
    if (a.physical == Physical::kTruth) {
      ForEach(rows, [truth, of = a.truth](uint32_t p) { truth[p] = of[p] == kUnknown; });
    } else if (a.nulls == nullptr) {
      ForEach(rows, [truth](uint32_t p) { truth[p] = kFalse; });
    } else {
      ForEach(rows, [truth, nulls = a.nulls](uint32_t p) { truth[p] = nulls[p] != 0; });
    }
    return absl::OkStatus();
  }
};

/// Children of one branch of a CASE.
struct Branch {
  int when = -1;  // -1: otherwise
  int then = -1;  // -1: NULL
};

/// Evaluates each branch only where its condition is the first that is true.
class Case final : public Node {
 public:
  Case(Physical physical, const plan::Bounds& bounds, std::vector<NodePtr> children,
       std::vector<Branch> branches)
      : Node(physical, bounds, std::move(children)), branches_(std::move(branches)) {}
  Needs needs() const override {
    return {.value_bytes = WidthOf(physical()),
            .nulls = physical() != Physical::kTruth,
            .positions = 2,
            .while_children_run = true};
  }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    Register& at = At(frame);
    Vector& out = Out(at);
    if (physical() != Physical::kTruth) out.nulls = at.nulls;
    Selection open = rows;
    for (const Branch& branch : branches_) {
      Selection here = open;
      if (branch.when >= 0) {
        const Vector* when = child(static_cast<size_t>(branch.when)).Evaluate(frame, chunk, open);
        if (when == nullptr) return nullptr;
        here = Split(when->truth, at, open);
      }
      if (here.count > 0 && !Take(branch, frame, chunk, here, out)) return nullptr;
      if (open.count == 0) break;
    }
    return &out;
  }

 private:
  /// Returns the open positions that are true; `open` becomes the others.
  static Selection Split(const uint8_t* truth, Register& at, Selection& open) {
    uint32_t *const left = at.positions[0], *const hit = at.positions[1];
    uint32_t lefts = 0, hits = 0;
    ForEach(open, [&](uint32_t p) {
      const bool is_hit = truth[p] == kTrue;
      hit[hits] = p;
      hits += is_hit;
      left[lefts] = p;
      lefts += !is_hit;
    });
    open = {left, lefts};
    return {hit, hits};
  }

  bool Take(const Branch& branch, Frame& frame, const Chunk& chunk, Selection rows, Vector& out) const {
    if (branch.then < 0) {
      if (physical() == Physical::kTruth) {
        ForEach(rows, [truth = out.truth](uint32_t p) { truth[p] = kUnknown; });
      } else {
        ForEach(rows, [nulls = out.nulls](uint32_t p) { nulls[p] = 1; });
      }
      return true;
    }
    const Vector* then = child(static_cast<size_t>(branch.then)).Evaluate(frame, chunk, rows);
    if (then == nullptr) return false;
    switch (physical()) {
      case Physical::kTruth:
        ForEach(rows, [to = out.truth, from = then->truth](uint32_t p) { to[p] = from[p]; });
        return true;
      case Physical::kInt64:
        ForEach(rows, [to = out.narrow, from = then->narrow](uint32_t p) { to[p] = from[p]; });
        break;
      case Physical::kText:
        ForEach(rows, [to = out.text, from = then->text](uint32_t p) { to[p] = from[p]; });
        break;
      default:
        WithWide(*then,
                 [&](auto from) { ForEach(rows, [to = out.wide, from](uint32_t p) { to[p] = from[p]; }); });
    }
    if (then->nulls != nullptr) {
      ForEach(rows, [to = out.nulls, from = then->nulls](uint32_t p) { to[p] = from[p]; });
    } else {
      ForEach(rows, [to = out.nulls](uint32_t p) { to[p] = 0; });
    }
    return true;
  }

  const std::vector<Branch> branches_;
};

}  // namespace

NodePtr MakeJunction(bool conjunction, std::vector<NodePtr> children) {
  return std::make_unique<Junction>(conjunction, std::move(children));
}

NodePtr MakeNot(NodePtr a) {
  return std::make_unique<Not>(std::move(a));
}

NodePtr MakeIsNull(NodePtr a) {
  return std::make_unique<IsNull>(std::move(a));
}

NodePtr MakeCase(std::vector<std::pair<NodePtr, NodePtr>> branches, Physical physical) {
  const bool number = physical == Physical::kInt64 || physical == Physical::kInt128;
  bool narrow = true, first = true;
  plan::Bounds bounds{0, 0, number};
  std::vector<NodePtr> children;
  std::vector<Branch> numbered;
  for (auto& [when, then] : branches) {
    Branch& branch = numbered.emplace_back();
    if (when != nullptr) {
      branch.when = static_cast<int>(children.size());
      children.push_back(std::move(when));
    }
    if (then == nullptr) continue;
    const plan::Bounds& of = then->bounds();
    bounds.known = bounds.known && of.known;
    bounds.low = first ? of.low : std::min(bounds.low, of.low);
    bounds.high = first ? of.high : std::max(bounds.high, of.high);
    first = false;
    narrow = narrow && then->physical() == Physical::kInt64;
    branch.then = static_cast<int>(children.size());
    children.push_back(std::move(then));
  }
  if (!bounds.known) bounds = {};
  if (number) physical = narrow ? Physical::kInt64 : Physical::kInt128;
  return std::make_unique<Case>(physical, bounds, std::move(children), std::move(numbered));
}

}  // namespace nam::execution
