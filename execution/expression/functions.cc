#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "execution/expression/node.h"
#include "plan/function.h"
#include "plan/time_field.h"
#include "types/numeric.h"
#include "types/time_zone.h"

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

/// EXTRACT of a whole number. A date has no hours; the reference reports that.
bool ExtractsWhole(const Expr& call) {
  const std::optional<TimeField> field = ConstantField(call);
  const TypeKind of = call.children[1].type.kind;
  const bool dated = of == TypeKind::kDate || of == TypeKind::kTimestamp;
  if (!field || call.type.kind != TypeKind::kInteger || !dated || !HasVariableTime(call)) return false;
  return *field != TimeField::kEpoch && *field != TimeField::kMicrosecond &&
         (of == TypeKind::kTimestamp || *field > TimeField::kHour);
}

/// Whether an operand is the zone UTC: then timestamps with and without time zone compute alike.
bool IsUtc(const Expr& zone) {
  return IsConstant(zone) && zone.literal.text == kUtc;
}

/// Whether the call moves or truncates timestamps.
bool OfTimestamps(const Expr& call) {
  return call.type.kind == TypeKind::kTimestamp ||
         (call.type.kind == TypeKind::kTimestampTz && IsUtc(call.children[2]));
}

/// A substring whose place does not depend on the row. The reference reports errors.
bool CutsByConstants(const Expr& call) {
  if (call.type.kind != TypeKind::kString || call.children[0].op == Op::kLiteral) return false;
  if (!std::all_of(call.children.begin() + 1, call.children.end(), IsConstant)) return false;
  const bool counted = plan::FunctionOf(call) == Function::kLeft || call.children.size() > 2;
  return !counted || call.children.back().literal.number >= 0;
}

/// One limb by a constant that is valid. The reference reports others.
bool NamesLimb(const Expr& call, int limbs) {
  const Expr& which = call.children[1];
  return call.children[0].op != Op::kLiteral && IsConstant(which) && which.literal.number >= 0 &&
         which.literal.number < limbs;
}

NodePtr MakeCut(const Expr& call, NodePtr text) {
  constexpr __int128 kToTheEnd = static_cast<__int128>(1) << 80;
  const bool left = plan::FunctionOf(call) == Function::kLeft;
  const __int128 from = left ? 1 : call.children[1].literal.number;
  const bool counted = left || call.children.size() > 2;
  return MakeSubstring(from, counted ? call.children.back().literal.number : kToTheEnd, std::move(text));
}

}  // namespace

bool HasVectorForm(const Expr& call) {
  switch (plan::FunctionOf(call)) {
    case Function::kExtract:
      return ExtractsWhole(call);
    case Function::kTruncateTime: {
      const std::optional<TimeField> field = ConstantField(call);
      return field && plan::Truncates(*field) && OfTimestamps(call) && HasVariableTime(call);
    }
    case Function::kMoveForward:
    case Function::kMoveBack:
      return OfTimestamps(call) && IsConstant(call.children[1]) && call.children[0].op != Op::kLiteral;
    case Function::kAtZone:
      return IsUtc(call.children[0]) && HasVariableTime(call);
    case Function::kSubstring:
    case Function::kLeft:
      return CutsByConstants(call);
    case Function::kLength:
      return call.children[0].type.kind == TypeKind::kString && call.children[0].op != Op::kLiteral;
    case Function::kNumericKey:
    case Function::kNumericScale:
      return call.children[0].op != Op::kLiteral;
    case Function::kNumericLimb:
      return NamesLimb(call, kNumericLimbs);
    case Function::kNumericSquareLimb:
      return NamesLimb(call, kNumericSquareLimbs);
    case Function::kDecimalLimb:
      return NamesLimb(call, kDecimalLimbs);
    default:
      return false;
  }
}

NodePtr MakeFunction(const Expr& call, std::vector<NodePtr> operands) {
  switch (plan::FunctionOf(call)) {
    case Function::kAtZone:
      return std::move(operands[1]);
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
    case Function::kSubstring:
    case Function::kLeft:
      return MakeCut(call, std::move(operands[0]));
    case Function::kLength:
      return MakeCharacterCount(std::move(operands[0]));
    case Function::kNumericKey:
    case Function::kNumericScale:
    case Function::kNumericLimb:
    case Function::kNumericSquareLimb:
      return MakeNumericPart(call, std::move(operands[0]));
    case Function::kDecimalLimb:
      return MakeDecimalLimb(call, std::move(operands[0]));
    default:
      break;
  }
  NAM_CHECK(false, "a function without a form over vectors");
  return nullptr;
}

}  // namespace nam::execution
