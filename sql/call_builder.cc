#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "sql/declared_type.h"
#include "sql/expression_builder.h"
#include "types/sql_error.h"

/// Calls of functions: chooses among those of a name, and converts their operands.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::Function;
using plan::IsChar;
using plan::IsLiteral;
using plan::MakeLiteral;
using plan::MakeNode;
using plan::Op;
using plan::Signature;

char LetterOf(const Expr& operand) {
  return IsWholeNumeric(operand) ? 'n' : plan::LetterOf(operand.type);
}

/// The cost of an operand for this letter of a signature: 0 unchanged, 1 converted. nullopt: impossible.
std::optional<int> CostOf(const Expr& operand, char letter) {
  if (letter == 'a') return 0;
  // An untyped operand is a string where one is taken.
  if (ExpressionBuilder::IsUntyped(operand)) return letter == 't' ? 0 : 1;
  const char own = LetterOf(operand);
  if (own == letter || (own == 'n' && letter == 'N')) return 0;
  const Type& type = operand.type;
  const bool converts =
      (letter == 'f' && (type.exact() || type.real())) || (letter == 'n' && own == 'i') ||
      (letter == 'N' && own == 'i') || ((letter == 'T' || letter == 'Z') && type.kind == TypeKind::kDate) ||
      (letter == 'Z' && type.kind == TypeKind::kTimestamp) || (letter == 'I' && type.kind == TypeKind::kTime);
  return converts ? std::optional(1) : std::nullopt;
}

char LetterAt(std::string_view letters, size_t i) {
  if (letters.ends_with('*')) letters.remove_suffix(1);
  return letters[std::min(i, letters.size() - 1)];
}

std::optional<int> CostOf(const Signature& signature, std::span<const Expr> operands) {
  std::string_view letters = signature.arguments;
  const bool repeats = letters.ends_with('*');
  if (repeats) letters.remove_suffix(1);
  if (repeats ? operands.size() < letters.size() : operands.size() != letters.size()) return std::nullopt;
  int cost = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::optional<int> of = CostOf(operands[i], LetterAt(signature.arguments, i));
    if (!of) return std::nullopt;
    cost += *of;
  }
  return cost;
}

/// Numbers are one category, dates and timestamps another, each with a preferred type.
char CategoryOf(char letter) {
  if (letter == 'i' || letter == 'n' || letter == 'N' || letter == 'f') return 'n';
  return letter == 'D' || letter == 'Z' ? 'T' : letter;
}

/// Whether an operand without a type fits the other signature as well.
bool Ambiguous(const Signature& a, const Signature& b, std::span<const Expr> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!ExpressionBuilder::IsUntyped(operands[i])) continue;
    if (CategoryOf(LetterAt(a.arguments, i)) != CategoryOf(LetterAt(b.arguments, i))) return true;
  }
  return false;
}

/// Functions that see the blanks at the end of a char(n).
bool SeesBlanks(Function function) {
  switch (function) {
    case Function::kConcatAll:
    case Function::kConcatWith:
    case Function::kOctetLength:
    case Function::kBitLength:
    case Function::kLike:
    case Function::kLikeIgnoreCase:
    case Function::kMatches:
    case Function::kMatchesIgnoreCase:
      return true;
    default:
      return false;
  }
}

std::string ShownOperand(const Expr& operand) {
  if (ExpressionBuilder::IsUntyped(operand)) return "unknown";
  return operand.type.kind == TypeKind::kString ? "text" : ShownType(operand);
}

std::string ShownCall(std::string_view name, std::span<const Expr> operands) {
  std::string types;
  for (const Expr& operand : operands)
    absl::StrAppend(&types, types.empty() ? "" : ", ", ShownOperand(operand));
  return absl::StrCat(std::string(name), "(", types, ")");
}

}  // namespace

absl::Status ExpressionBuilder::NoSuchFunction(std::string_view name, std::span<const Expr> operands,
                                               int position, const std::string& similar) {
  return UserError(
      sqlstate::kNoSuchOperator, absl::StrCat("function ", ShownCall(name, operands), " does not exist"),
      position,
      absl::StrCat("No function matches the given name and argument types. You might need to add "
                   "explicit type casts.",
                   similar.empty() ? "" : " ", similar));
}

bool ExpressionBuilder::IsFunction(std::string_view name) {
  const auto signatures = plan::Signatures();
  return std::any_of(signatures.begin(), signatures.end(),
                     [&](const Signature& signature) { return signature.name == name; });
}

absl::StatusOr<Expr> ExpressionBuilder::PaddedText(Expr text, int position) const {
  if (!IsChar(text.type)) return text;
  const uint32_t length = text.type.length;
  if (length == 0) {
    return Refusal(
        "char(n) together with strings of other types is not supported here", position,
        "this function sees the blanks at the end of a char(n); CAST each part to text, which has none");
  }
  std::vector<Expr> operands;
  operands.push_back(std::move(text));
  operands.push_back(MakeLiteral(Value::Integer(length), position));
  return FunctionNode(Function::kPadRight, std::move(operands), position);
}

absl::StatusOr<Expr> ExpressionBuilder::FunctionNode(Function function, std::vector<Expr> operands,
                                                     int position) const {
  const std::optional<Type> type = plan::ResultType(function, operands);
  if (!type) return NoSuchFunction(plan::NameOf(function), operands, position);
  Expr call = MakeNode(Op::kFunction, *type, position, std::move(operands));
  call.index = static_cast<int>(function);
  call.declared = DeclaredResult(function, call.children);
  return Fold(std::move(call));
}

absl::StatusOr<Expr> ExpressionBuilder::Call(std::string_view name, std::vector<Expr> operands,
                                             int position) const {
  const auto integer = [](const Expr& e) { return e.type.kind == TypeKind::kInteger && !IsWholeNumeric(e); };
  if (name == "mod" && operands.size() == 2 && std::all_of(operands.begin(), operands.end(), integer))
    return Arithmetic(Op::kModulo, std::move(operands[0]), std::move(operands[1]), position);
  NAM_RETURN_IF_ERROR(GiveZone(name, operands, position));
  const Signature* best = nullptr;
  int least = 0;
  bool ambiguous = false;
  for (const Signature& signature : plan::Signatures()) {
    if (signature.name != name) continue;
    const std::optional<int> cost = CostOf(signature, operands);
    if (!cost || (best != nullptr && *cost > least)) continue;
    if (best != nullptr && *cost == least) {
      ambiguous = ambiguous || Ambiguous(*best, signature, operands);
      continue;
    }
    best = &signature;
    least = *cost;
    ambiguous = false;
  }
  if (best == nullptr) return NoSuchFunction(name, operands, position);
  if (ambiguous) {
    return UserError(sqlstate::kAmbiguousFunction,
                     absl::StrCat("function ", ShownCall(name, operands), " is not unique"), position,
                     "give the arguments a type: TIMESTAMP '…', INTERVAL '…'");
  }
  // Rounded to a number of decimals that only a row knows.
  const bool rounds = best->function == Function::kRound || best->function == Function::kTruncate;
  if (rounds && operands.size() == 2 && operands[0].type.numeric() && !IsLiteral(operands[1])) {
    NAM_ASSIGN_OR_RETURN(operands[0], Cast(std::move(operands[0]), Type::Numeric(), position));
    return FunctionNode(best->function, std::move(operands), position);
  }
  const bool sees_blanks = SeesBlanks(best->function);
  const bool of_real = best->function == Function::kAbs && operands[0].type.kind == TypeKind::kReal;
  for (size_t i = 0; i < operands.size(); ++i) {
    const char letter = LetterAt(best->arguments, i);
    Expr& operand = operands[i];
    if (letter == 'a') {
      ResolveAsString(operand);
    } else {
      NAM_RETURN_IF_ERROR(ResolveType(operand, plan::TypeOfLetter(letter)));
      if (IsWholeNumeric(operand)) NAM_RETURN_IF_ERROR(AsDecimal(operand));
      if (plan::LetterOf(operand.type) != letter) {
        NAM_ASSIGN_OR_RETURN(operand, Cast(std::move(operand), plan::TypeOfLetter(letter), position));
      }
    }
    if (sees_blanks) {
      NAM_ASSIGN_OR_RETURN(operand, PaddedText(std::move(operand), position));
    }
  }
  NAM_ASSIGN_OR_RETURN(Expr call, FunctionNode(best->function, std::move(operands), position));
  return of_real ? Cast(std::move(call), Type::Real(), position) : std::move(call);
}

absl::StatusOr<Expr> ExpressionBuilder::Extreme(bool greatest, std::vector<Expr> operands,
                                                int position) const {
  std::vector<Expr*> all;
  for (Expr& operand : operands) all.push_back(&operand);
  NAM_RETURN_IF_ERROR(Unify(all, greatest ? "GREATEST" : "LEAST"));
  return FunctionNode(greatest ? Function::kGreatest : Function::kLeast, std::move(operands), position);
}

absl::StatusOr<Expr> ExpressionBuilder::Concatenate(Expr a, Expr b, int position) const {
  const bool both_bytes = a.type.kind == TypeKind::kBytes && b.type.kind == TypeKind::kBytes;
  if (a.type.kind != TypeKind::kString && b.type.kind != TypeKind::kString && !IsUntyped(a) &&
      !IsUntyped(b) && !both_bytes) {
    return UserError(sqlstate::kNoSuchOperator,
                     absl::StrCat("operator does not exist: ", ShownOperand(a), " || ", ShownOperand(b)),
                     position, "CAST(x AS text) makes text of anything");
  }
  const bool bytes = a.type.kind == TypeKind::kBytes || b.type.kind == TypeKind::kBytes;
  const auto joins = [](const Expr& e) { return IsUntyped(e) || e.type.kind == TypeKind::kBytes; };
  std::vector<Expr> operands;
  if (bytes && joins(a) && joins(b)) {
    for (Expr* side : {&a, &b}) {
      NAM_RETURN_IF_ERROR(ResolveType(*side, Type::Bytes()));
      operands.push_back(std::move(*side));
    }
    return FunctionNode(Function::kConcat, std::move(operands), position);
  }
  // A chain is one call.
  const bool chain = !bytes && a.op == Op::kFunction && plan::FunctionOf(a) == Function::kConcat;
  if (chain) operands = std::exchange(a.children, {});
  for (Expr* side : {&a, &b}) {
    if (chain && side == &a) continue;
    NAM_RETURN_IF_ERROR(ResolveType(*side, Type::String()));
    if (side->type.kind != TypeKind::kString) {
      NAM_ASSIGN_OR_RETURN(*side, Cast(std::move(*side), Type::String(), position));
    }
    operands.push_back(std::move(*side));
  }
  return FunctionNode(Function::kConcat, std::move(operands), position);
}

absl::StatusOr<Expr> ExpressionBuilder::TimeArithmetic(Op op, Expr a, Expr b, int position) const {
  const auto is = [](const Expr& e, TypeKind kind) { return e.type.kind == kind; };
  const auto number = [](const Expr& e) { return e.type.exact() || e.type.real(); };
  const auto call = [&](Function function) {
    std::vector<Expr> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return FunctionNode(function, std::move(operands), position);
  };
  const auto to_double = [&](Expr& e) -> absl::Status {
    NAM_ASSIGN_OR_RETURN(e, Cast(std::move(e), Type::Double(), position));
    return absl::OkStatus();
  };
  const auto to_timestamp = [&](Expr& e) -> absl::Status {
    if (!is(e, TypeKind::kDate)) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(e, Cast(std::move(e), Type::Timestamp(), position));
    return absl::OkStatus();
  };
  const auto timed = [&](const Expr& e) {
    return is(e, TypeKind::kDate) || is(e, TypeKind::kTimestamp) || is(e, TypeKind::kTimestampTz);
  };
  const auto to_interval = [&](Expr& e) -> absl::Status {
    NAM_ASSIGN_OR_RETURN(e, Cast(std::move(e), Type::Interval(), position));
    return absl::OkStatus();
  };
  // Beside other types a time is the span since midnight, unless it is the moved operand.
  const bool time_first = is(a, TypeKind::kTime), time_second = is(b, TypeKind::kTime);
  if (time_first && timed(b) && op == Op::kAdd) NAM_RETURN_IF_ERROR(to_interval(a));
  if (time_second && (timed(a) || (is(a, TypeKind::kInterval) && op == Op::kSubtract)))
    NAM_RETURN_IF_ERROR(to_interval(b));
  // The interval goes to the right, and so does a factor.
  const bool swaps = (op == Op::kAdd && is(a, TypeKind::kInterval) && (timed(b) || is(b, TypeKind::kTime))) ||
                     (op == Op::kMultiply && is(b, TypeKind::kInterval));
  if (swaps) std::swap(a, b);
  const bool adds = op == Op::kAdd || op == Op::kSubtract;
  if (is(a, TypeKind::kInterval) && is(b, TypeKind::kInterval) && adds)
    return call(op == Op::kAdd ? Function::kIntervalSum : Function::kIntervalDifference);
  if (is(a, TypeKind::kInterval) && number(b) && (op == Op::kMultiply || op == Op::kDivide)) {
    NAM_RETURN_IF_ERROR(to_double(b));
    return call(op == Op::kMultiply ? Function::kIntervalProduct : Function::kIntervalQuotient);
  }
  const Function moves = op == Op::kAdd ? Function::kMoveForward : Function::kMoveBack;
  if (is(a, TypeKind::kTimestampTz) && is(b, TypeKind::kInterval) && adds) {
    std::vector<Expr> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    operands.push_back(MakeLiteral(Value::String(zone_), position));
    return FunctionNode(moves, std::move(operands), position);
  }
  if (is(a, TypeKind::kTime) && is(b, TypeKind::kInterval) && adds) return call(moves);
  if (is(a, TypeKind::kTime) && is(b, TypeKind::kTime) && op == Op::kSubtract)
    return call(Function::kTimeBetween);
  if (timed(a) && is(b, TypeKind::kInterval) && adds) {
    NAM_RETURN_IF_ERROR(to_timestamp(a));
    return call(moves);
  }
  if (timed(a) && timed(b) && op == Op::kSubtract) {
    NAM_RETURN_IF_ERROR(Meet(a, b));
    NAM_RETURN_IF_ERROR(Meet(b, a));
    if (is(a, TypeKind::kTimestampTz)) return call(Function::kTimeBetween);
    NAM_RETURN_IF_ERROR(to_timestamp(a));
    NAM_RETURN_IF_ERROR(to_timestamp(b));
    return call(Function::kTimeBetween);
  }
  return UserError(
      sqlstate::kNoSuchOperator,
      absl::StrCat("operator does not exist: ", ShownOperand(a), " ", plan::Symbol(op), " ", ShownOperand(b)),
      position, "intervals are added to dates, times, timestamps and intervals, and multiplied by numbers");
}

}  // namespace nam::sql
