#include "sql/declared_type.h"

#include <algorithm>

#include "types/wire.h"

namespace nam::sql {

using plan::AggregateFunction;
using plan::Expr;
using plan::Function;
using plan::Op;

namespace {

/// The wider of two types of numbers that are exact.
SqlType WiderExact(SqlType a, SqlType b) {
  const auto rank = [](SqlType type) {
    return type.numeric() ? 4 : type == SqlType::BigInt() ? 3 : type.oid == SqlType::Integer().oid ? 2 : 1;
  };
  if (a.numeric() && b.numeric() && a != b) return SqlType::Numeric();
  return rank(a) >= rank(b) ? a : b;
}

/// Of operands that are converted to whole numbers, if they are none.
SqlType WidestOf(std::span<const Expr> operands) {
  SqlType widest = DeclaredType(operands[0]);
  for (const Expr& operand : operands.subspan(1)) widest = WiderExact(widest, DeclaredType(operand));
  return widest;
}

bool IsTextOrVarchar(SqlType type) {
  return type.oid == SqlType::Text().oid || type.oid == SqlType::Varchar(0).oid;
}

}  // namespace

SqlType DeclaredType(const Expr& expr) {
  if (expr.declared.oid != 0) return expr.declared;
  const bool constant = expr.op == Op::kLiteral && expr.type.kind == TypeKind::kInteger && !expr.literal.null;
  if (constant && !plan::FitsInteger(expr.literal.number, sizeof(int32_t))) return SqlType::BigInt();
  return SqlTypeOf(expr.type);
}

SqlType DeclaredType(const proto::Type& column) {
  Type type = ColumnTypeOf(column);
  const bool whole = type.kind == TypeKind::kInteger;
  if (whole || type.kind == TypeKind::kDecimal) type.precision = static_cast<uint8_t>(column.precision());
  if (whole && type.precision == 0) type.precision = sizeof(int64_t);
  return SqlTypeOf(type);
}

proto::Type CreatedColumn(const Expr& expr) {
  Type type = expr.type;
  const SqlType declared = DeclaredType(expr);
  if (type.kind == TypeKind::kInteger && declared.whole()) {
    type.precision = declared == SqlType::SmallInt() ? 2 : declared == SqlType::Integer() ? 4 : 8;
  } else if (declared.numeric()) {
    const auto digits = static_cast<uint8_t>(declared.digits());
    type = digits == 0 ? Type::Numeric() : Type::Decimal(static_cast<uint8_t>(declared.scale()));
    type.precision = digits;
  } else if (type.kind == TypeKind::kString && declared == SqlType::Text()) {
    type = Type::String();  // of all texts of a CASE, or the least varchar
  } else if (type.kind == TypeKind::kString && declared.modifier >= 0) {
    type.length = static_cast<uint32_t>(declared.modifier) - 4;  // as in pg_attribute
  } else if (plan::IsChar(type) && type.length == 0) {
    type = Type::String();  // of a CASE of several lengths
  }
  return CreatedColumn(type);
}

proto::Type CreatedColumn(Type type) {
  if (type.kind == TypeKind::kNull) type = Type::String();
  if (type.kind == TypeKind::kInteger && type.precision == 0) type.precision = sizeof(int64_t);
  if (type.kind == TypeKind::kDecimal && type.precision == 0) type.precision = kMaxDecimalDigits;
  return ToProto(type);
}

std::string ShownType(const Expr& expr) {
  if (expr.type.kind == TypeKind::kDecimal || expr.type.kind == TypeKind::kNumeric) return "decimal";
  return expr.type.kind == TypeKind::kInteger ? SqlTypeName(DeclaredType(expr)) : TypeName(expr.type);
}

bool IsWholeNumeric(const Expr& expr) {
  return expr.type.kind == TypeKind::kInteger && expr.declared.numeric();
}

SqlType CommonDeclaredType(const std::vector<const Expr*>& operands) {
  SqlType common;
  for (const Expr* operand : operands) {
    // NULL, and texts without a type, take that of the others.
    if (operand->op == Op::kLiteral && operand->literal.null && operand->declared.oid == 0) continue;
    const SqlType own = DeclaredType(*operand);
    if (common.oid == 0) {
      common = own;
    } else if ((own.whole() || own.numeric()) && (common.whole() || common.numeric())) {
      common = WiderExact(common, own);
    } else if (IsTextOrVarchar(own) && IsTextOrVarchar(common)) {
      if (own != common) common.modifier = -1;  // each becomes the other, so the first decides
    } else if (own != common) {
      return {};  // char(n) and others
    }
  }
  return common;
}

SqlType DeclaredResult(Function function, std::span<const Expr> operands) {
  switch (function) {
    case Function::kExtract:
      return SqlType::Numeric();
    case Function::kAbs:
    case Function::kShiftLeft:
    case Function::kShiftRight:
    case Function::kBitsNot:
      return operands[0].type.kind == TypeKind::kInteger ? DeclaredType(operands[0]) : SqlType();
    case Function::kGreatestDivisor:
    case Function::kLeastMultiple:
    case Function::kBitsAnd:
    case Function::kBitsOr:
    case Function::kBitsXor:
      return WidestOf(operands);
    case Function::kGreatest:
    case Function::kLeast: {
      std::vector<const Expr*> all;
      for (const Expr& operand : operands) all.push_back(&operand);
      return CommonDeclaredType(all);
    }
    default:
      return {};
  }
}

SqlType DeclaredAggregate(AggregateFunction function, const Expr& argument) {
  switch (function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      return SqlType::BigInt();
    case AggregateFunction::kSum:
      if (argument.type.kind != TypeKind::kInteger)
        return argument.type.exact() ? SqlType::Numeric() : SqlType();
      return DeclaredType(argument) == SqlType::SmallInt() || DeclaredType(argument) == SqlType::Integer()
                 ? SqlType::BigInt()
                 : SqlType::Numeric();
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      // Of varchar and text there is one function.
      if (argument.type.kind == TypeKind::kString && !plan::IsChar(argument.type)) return SqlType::Text();
      return argument.type.exact() ? SqlType{DeclaredType(argument).oid}
                                   : SqlType{SqlTypeOf(argument.type).oid};
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      return DeclaredType(argument);
    case AggregateFunction::kStringAggregate:
      return SqlType::Text();
    default:
      return {};
  }
}

}  // namespace nam::sql
