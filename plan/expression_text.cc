#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plan/expression.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "types/time_zone.h"

namespace nam::plan {
namespace {

/// The precedence of an operator, as in PostgreSQL's grammar.
int Binding(const Expr& expr) {
  switch (expr.op) {
    case Op::kOr:
      return 1;
    case Op::kAnd:
      return 2;
    case Op::kNot:
      return 3;
    case Op::kIsNull:
      return 4;
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kGreater:
    case Op::kGreaterEqual:
      return 5;
    case Op::kIn:
    case Op::kLike:
      return 6;
    case Op::kAdd:
    case Op::kSubtract:
      return 7;
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
      return 8;
    case Op::kNegate:
      return 9;
    case Op::kLiteral:
      return expr.literal.number < 0 ? 9 : 10;
    default:
      return 10;
  }
}

std::string QuoteString(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted.push_back('\'');
    quoted.push_back(c);
  }
  quoted.push_back('\'');
  return quoted;
}

std::string LiteralText(const Value& value) {
  if (value.null) return "NULL";
  switch (value.type.kind) {
    case TypeKind::kBool:
      return value.number != 0 ? "true" : "false";
    case TypeKind::kDate:
      return absl::StrCat("date '", value.ToString(), "'");
    case TypeKind::kTimestamp:
      return absl::StrCat("timestamp '", value.ToString(), "'");
    case TypeKind::kDouble:
    case TypeKind::kReal:
    case TypeKind::kInterval:
    case TypeKind::kUuid:
    case TypeKind::kBytes:
    case TypeKind::kTime:
    case TypeKind::kTimestampTz:
    case TypeKind::kNumeric:
      return absl::StrCat(TypeName(value.type), " '", value.ToString(), "'");
    case TypeKind::kString:
      return QuoteString(value.text);
    case TypeKind::kDecimal:
      // Without its point it would be read as an integer, which divides differently.
      return value.ToString() + (value.type.scale == 0 ? "." : "");
    default:
      return value.ToString();
  }
}

/// A string constant that would be read as char(n) beside one, although it is not.
bool IsPlainText(const Expr& e) {
  return IsLiteral(e) && e.type.kind == TypeKind::kString && !IsChar(e.type);
}

class ExpressionPrinter {
 public:
  explicit ExpressionPrinter(const std::function<std::string(const Expr&)>& name) : name_(name) {}

  /// In parentheses if it binds no tighter than `above`.
  std::string Print(const Expr& expr, int above = 0) const {
    const int binding = Binding(expr);
    std::string text = expr.op == Op::kNot ? Negated(expr.children[0], above) : Plain(expr);
    // IS NOT NULL, NOT IN and NOT LIKE have added their own parentheses.
    return binding <= above && expr.op != Op::kNot ? absl::StrCat("(", text, ")") : text;
  }

 private:
  std::string Plain(const Expr& e) const {
    switch (e.op) {
      case Op::kColumn:
        return name_(e);
      case Op::kLiteral:
        return LiteralText(e.literal);
      case Op::kAnd:
      case Op::kOr:
        return List(e, absl::StrCat(" ", Symbol(e.op), " "));
      case Op::kNegate:
        return absl::StrCat("- ", Print(e.children[0], Binding(e)));
      case Op::kIsNull:
        return absl::StrCat(Print(e.children[0], Binding(e)), " IS NULL");
      case Op::kIn:
      case Op::kLike:
        return Match(e, "");
      case Op::kCase:
        return Case(e);
      case Op::kCast:
        return absl::StrCat("CAST(", Print(e.children[0]), " AS ", CastTarget(e), ")");
      case Op::kFunction:
        return Call(e);
      case Op::kExtractYear:
        return Extract("YEAR", e);
      case Op::kExtractMonth:
        return Extract("MONTH", e);
      case Op::kExtractDay:
        return Extract("DAY", e);
      default:
        break;
    }
    // Infix operators: + and * group to the left, comparisons not at all.
    const int binding = Binding(e);
    const bool groups_left = binding == 7 || binding == 8;
    const Expr &a = Unpacked(e.children[0], e.children[1]), &b = Unpacked(e.children[1], e.children[0]);
    return absl::StrCat(PrintBeside(Plainer(e, a, b), IsChar(b.type), groups_left ? binding - 1 : binding),
                        " ", Symbol(e.op), " ", PrintBeside(Plainer(e, b, a), IsChar(a.type), binding));
  }

  /// Without a conversion that the operator makes of itself: of a number beside a numeric, of a decimal.
  static const Expr& Unpacked(const Expr& e, const Expr& other) {
    if (e.op != Op::kCast || e.type.kind != TypeKind::kNumeric) return e;
    const Expr& from = e.children[0];
    const bool whole = other.op == Op::kCast && other.children[0].type.kind == TypeKind::kInteger;
    const bool converts =
        from.type.kind == TypeKind::kDecimal || (from.type.kind == TypeKind::kInteger && !whole);
    return converts ? from : e;
  }

  /// A constant numeric as a number, where the operator makes a numeric of that again.
  static Expr Plainer(const Expr& operation, const Expr& e, const Expr& other) {
    if (!IsLiteral(e) || e.literal.null || e.type.kind != TypeKind::kNumeric || IsLiteral(other)) return e;
    const bool packs = other.type.kind == TypeKind::kNumeric ||
                       (operation.op == Op::kDivide && other.type.kind == TypeKind::kDecimal);
    if (!packs) return e;
    const Numeric own = e.literal.unpacked();
    const bool whole = own.scale == 0 && FitsInteger(own.digits, sizeof(int64_t));
    return MakeLiteral(whole ? Value::Integer(own.digits) : Value::Decimal(own.digits, own.scale), -1);
  }

  std::string PrintBeside(const Expr& e, bool beside_char, int above = 0) const {
    if (!beside_char || !IsPlainText(e)) return Print(e, above);
    return absl::StrCat("CAST(", LiteralText(e.literal), " AS ", CastTarget(e), ")");
  }

  static std::string CastTarget(const Expr& e) {
    if (e.type == Type::String()) return "text";
    if (e.type.kind == TypeKind::kDecimal)
      return absl::StrCat("decimal(", DecimalDigits(e), ",", static_cast<int>(e.type.scale), ")");
    if (e.type.kind != TypeKind::kInteger) return TypeName(e.type);
    return IntegerBytes(e) == 2 ? "smallint" : IntegerBytes(e) == 4 ? "integer" : "bigint";
  }

  std::string Negated(const Expr& e, int above) const {
    std::string text;
    int binding = Binding(e);
    if (e.op == Op::kIsNull) {
      text = absl::StrCat(Print(e.children[0], binding), " IS NOT NULL");
    } else if (e.op == Op::kIn || e.op == Op::kLike) {
      text = Match(e, "NOT ");
    } else {
      binding = 3;
      text = absl::StrCat("NOT ", Print(e, binding));
    }
    return binding <= above ? absl::StrCat("(", text, ")") : text;
  }

  std::string Match(const Expr& e, const char* negation) const {
    const std::string left = Print(e.children[0], Binding(e));
    if (e.op == Op::kLike) return absl::StrCat(left, " ", negation, "LIKE ", LiteralText(e.literal));
    std::string items;
    for (size_t i = 1; i < e.children.size(); ++i) {
      absl::StrAppend(&items, i > 1 ? ", " : "", Print(e.children[i]));
    }
    return absl::StrCat(left, " ", negation, "IN (", items, ")");
  }

  std::string Case(const Expr& e) const {
    const bool beside_char = MixesConstantsWithChar(e);
    std::string text = "CASE";
    for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
      absl::StrAppend(&text, " WHEN ", Print(e.children[i]), " THEN ",
                      PrintBeside(e.children[i + 1], beside_char));
    }
    const Expr& otherwise = e.children.back();
    if (beside_char || !IsNullLiteral(otherwise))
      absl::StrAppend(&text, " ELSE ", PrintBeside(otherwise, beside_char));
    return absl::StrCat(text, " END");
  }

  /// Whether all results of a CASE are char(n), except constants that are not.
  static bool MixesConstantsWithChar(const Expr& e) {
    bool chars = false;
    for (size_t i = 1; i <= e.children.size(); i += 2) {
      const Expr& result = e.children[std::min(i, e.children.size() - 1)];
      if (!IsChar(result.type) && !IsPlainText(result)) return false;
      chars = chars || IsChar(result.type);
    }
    return chars && !IsChar(e.type);
  }

  /// Functions that are operators get parentheses: PostgreSQL gives most of them one precedence.
  static const char* OperatorOf(Function function) {
    switch (function) {
      case Function::kConcat:
        return "||";
      case Function::kLike:
        return "LIKE";
      case Function::kLikeIgnoreCase:
        return "ILIKE";
      case Function::kMatches:
        return "~";
      case Function::kMatchesIgnoreCase:
        return "~*";
      case Function::kMoveForward:
      case Function::kIntervalSum:
        return "+";
      case Function::kMoveBack:
      case Function::kTimeBetween:
      case Function::kIntervalDifference:
        return "-";
      case Function::kIntervalProduct:
        return "*";
      case Function::kIntervalQuotient:
        return "/";
      default:
        return nullptr;
    }
  }

  std::string Call(const Expr& e) const {
    const Function function = FunctionOf(e);
    if (function == Function::kExtract) {
      const std::string field = IsLiteral(e.children[0]) ? e.children[0].literal.text : "?";
      return absl::StrCat("EXTRACT(", field, " FROM ", Print(e.children[1]), ")");
    }
    const bool in_utc =
        e.children.size() < 3 || (IsLiteral(e.children[2]) && e.children[2].literal.text == kUtc);
    if (const char* symbol = OperatorOf(function); symbol != nullptr && in_utc) {
      constexpr int kTightest = 9;
      std::string text = "(";
      for (size_t i = 0; i < e.children.size(); ++i) {
        if (i > 0) absl::StrAppend(&text, " ", symbol, " ");
        text += Print(e.children[i], kTightest);
      }
      return text + ")";
    }
    std::string operands;
    for (const Expr& child : e.children)
      absl::StrAppend(&operands, operands.empty() ? "" : ", ", Print(child));
    return absl::StrCat(NameOf(function), "(", operands, ")");
  }

  std::string Extract(const char* field, const Expr& e) const {
    return absl::StrCat("EXTRACT(", field, " FROM ", Print(e.children[0]), ")");
  }

  std::string List(const Expr& e, const std::string& separator) const {
    std::string text;
    for (const Expr& child : e.children) {
      absl::StrAppend(&text, text.empty() ? "" : separator, Print(child, Binding(e)));
    }
    return text;
  }

  const std::function<std::string(const Expr&)>& name_;
};

}  // namespace

std::string ToString(const Expr& expr, const std::function<std::string(const Expr&)>& name) {
  return ExpressionPrinter(name).Print(expr);
}

}  // namespace nam::plan
