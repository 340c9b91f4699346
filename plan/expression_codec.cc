#include "plan/expression_codec.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "plan/function.h"
#include "plan/plan_error.h"
#include "plan/post_order.h"
#include "types/wire.h"

namespace nam::plan {
namespace {

bool HasLiteral(Op op) {
  return op == Op::kLiteral || op == Op::kLike;
}

proto::ExpressionNode NodeOf(const Expr& e) {
  proto::ExpressionNode node;
  node.set_op(static_cast<uint32_t>(e.op));
  *node.mutable_type() = nam::ToProto(e.type);
  if (e.op == Op::kColumn) node.set_slot(static_cast<uint32_t>(e.column.column));
  if (e.op == Op::kCast && e.index > 0) node.set_bytes(static_cast<uint32_t>(e.index));
  if (e.op == Op::kFunction) node.set_function(static_cast<uint32_t>(e.index));
  if (HasLiteral(e.op)) *node.mutable_literal() = nam::ToProto(e.literal);
  node.set_children(static_cast<uint32_t>(e.children.size()));
  return node;
}

/// Without its children.
absl::StatusOr<Expr> ExprOf(const proto::ExpressionNode& node) {
  if (node.op() > static_cast<uint32_t>(Op::kFunction)) return BadPlan("an unknown operator");
  Expr e;
  e.op = static_cast<Op>(node.op());
  NAM_ASSIGN_OR_RETURN(e.type, TypeOf(node.type()));
  if (e.op == Op::kColumn) {
    if (node.slot() > INT32_MAX) return BadPlan("a slot that is not there");
    e.column = {0, static_cast<int>(node.slot())};
  }
  if (e.op == Op::kCast && node.bytes() > 0) {
    if (node.bytes() > kMaxDecimalDigits) return BadPlan("a cast to a number of no known width");
    e.index = static_cast<int>(node.bytes());
  }
  if (e.op == Op::kFunction) {
    if (node.function() > static_cast<uint32_t>(kLastFunction)) return BadPlan("an unknown function");
    e.index = static_cast<int>(node.function());
  }
  if (HasLiteral(e.op)) {
    NAM_ASSIGN_OR_RETURN(e.literal, ValueOf(node.literal()));
  }
  return e;
}

}  // namespace

proto::Int128 ToProto(__int128 n) {
  proto::Int128 out;
  out.set_high(static_cast<int64_t>(n >> 64));
  out.set_low(static_cast<uint64_t>(n));
  return out;
}

__int128 NumberOf(const proto::Int128& n) {
  return static_cast<__int128>(n.high()) << 64 | n.low();
}

proto::Expression ToProto(const Expr& expr) {
  proto::Expression out;
  const absl::Status walked = ForPostOrder(expr, [&](const Expr& e) {
    *out.add_nodes() = NodeOf(e);
    return absl::OkStatus();
  });
  NAM_CHECK(walked.ok(), "an expression of a plan that did not pass Check");
  return out;
}

absl::StatusOr<Expr> FromProto(const proto::Expression& expression) {
  struct Tree {
    Expr expr;
    size_t levels;
  };
  std::vector<Tree> done;  // subtrees without a parent yet
  for (const proto::ExpressionNode& node : expression.nodes()) {
    if (node.children() > done.size()) return BadPlan("an operator without its operands");
    NAM_ASSIGN_OR_RETURN(Expr e, ExprOf(node));
    const auto first = done.end() - static_cast<ptrdiff_t>(node.children());
    size_t levels = 0;
    e.children.reserve(node.children());
    for (auto child = first; child != done.end(); ++child) {
      levels = std::max(levels, child->levels);
      e.children.push_back(std::move(child->expr));
    }
    if (levels == kDeepestExpression) return ExpressionTooDeep(/*position=*/-1);
    done.erase(first, done.end());
    done.push_back({std::move(e), levels + 1});
  }
  if (done.size() != 1) return BadPlan("an expression that is no tree");
  return std::move(done[0].expr);
}

proto::Schema ToProto(const Schema& schema) {
  proto::Schema out;
  for (const Slot& slot : schema) {
    proto::Slot& to = *out.add_slots();
    *to.mutable_type() = nam::ToProto(slot.type);
    to.set_nullable(slot.nullable);
    if (!slot.bounds.known) continue;
    *to.mutable_bounds()->mutable_low() = ToProto(slot.bounds.low);
    *to.mutable_bounds()->mutable_high() = ToProto(slot.bounds.high);
  }
  return out;
}

absl::StatusOr<Schema> FromProto(const proto::Schema& schema) {
  Schema out;
  for (const proto::Slot& from : schema.slots()) {
    Slot& slot = out.emplace_back();
    NAM_ASSIGN_OR_RETURN(slot.type, TypeOf(from.type()));
    slot.nullable = from.nullable();
    if (from.has_bounds())
      slot.bounds = {NumberOf(from.bounds().low()), NumberOf(from.bounds().high()), true};
  }
  return out;
}

}  // namespace nam::plan
