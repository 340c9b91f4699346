#include <optional>
#include <utility>

#include "base/check.h"
#include "execution/expression/node.h"
#include "plan/function.h"
#include "plan/time_field.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Function;
using plan::Op;
using plan::TimeField;

bool IsConstant(const Expr& e) {
  return e.op == Op::kLiteral && !e.literal.null;
}

/// The field that a call names by a constant.
std::optional<TimeField> ConstantField(const Expr& call) {
  return IsConstant(call.children[0]) ? plan::TimeFieldOf(call.children[0].literal.text) : std::nullopt;
}

bool HasVariableTime(const Expr& call) {
  return call.children[1].op != Op::kLiteral;
}

/// EXTRACT of a whole number. A date has no hours, which the reference says.
bool ExtractsWhole(const Expr& call) {
  const std::optional<TimeField> field = ConstantField(call);
  const TypeKind of = call.children[1].type.kind;
  if (!field || call.type.kind != TypeKind::kInteger || of == TypeKind::kInterval || !HasVariableTime(call))
    return false;
  return *field != TimeField::kEpoch && *field != TimeField::kMicrosecond &&
         (of == TypeKind::kTimestamp || *field > TimeField::kHour);
}

}  // namespace

bool HasVectorForm(const Expr& call) {
  switch (plan::FunctionOf(call)) {
    case Function::kExtract:
      return ExtractsWhole(call);
    case Function::kTruncateTime: {
      const std::optional<TimeField> field = ConstantField(call);
      return field && plan::Truncates(*field) && call.type.kind == TypeKind::kTimestamp &&
             HasVariableTime(call);
    }
    case Function::kMoveForward:
    case Function::kMoveBack:
      return IsConstant(call.children[1]) && call.children[0].op != Op::kLiteral;
    default:
      return false;
  }
}

NodePtr MakeFunction(const Expr& call, std::vector<NodePtr> operands) {
  switch (plan::FunctionOf(call)) {
    case Function::kExtract:
      return MakeTimeField(*ConstantField(call), call.children[1].type.kind == TypeKind::kDate,
                           std::move(operands[1]));
    case Function::kTruncateTime:
      return MakeTruncateTimestamp(*ConstantField(call), call.position, std::move(operands[1]));
    case Function::kMoveForward:
    case Function::kMoveBack:
      return MakeMoveTimestamp(call.children[1].literal.interval(),
                               plan::FunctionOf(call) == Function::kMoveForward ? 1 : -1, call.position,
                               std::move(operands[0]));
    default:
      break;
  }
  NAM_CHECK(false, "a function without a form over vectors");
  return nullptr;
}

}  // namespace nam::execution
