#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plan/expression.h"
#include "plan/schema.h"
#include "plan/slot_of.h"
#include "types/date.h"

namespace nam::plan::testing {

/// Random expressions, schemas and rows: the same for the same seed.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  uint32_t Below(uint32_t bound) { return bound == 0 ? 0 : static_cast<uint32_t>(engine_() % bound); }
  bool Chance(uint32_t one_in) { return Below(one_in) == 0; }
  int64_t Between(int64_t low, int64_t high) {
    const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    return static_cast<int64_t>(static_cast<uint64_t>(low) + engine_() % width);
  }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(static_cast<uint32_t>(items.size()))];
  }

  Type AType() {
    switch (Below(11)) {
      case 7:
        return Type::Uuid();
      case 8:
        return Type::Bytes();
      case 9:
        return Type::TimestampTz();
      case 10:
        return Type::Time();
      case 0:
        return Type::Bool();
      case 1:
      case 2:
        return Type::Integer();
      case 3:
        return Type::Decimal(static_cast<uint8_t>(Chance(4) ? Below(12) : Below(4)));
      case 4:
        return Type::Date();
      case 5:
        return Type::Timestamp();
      default:
        return Chance(3) ? CharType(1 + Below(6)) : Type::String(Below(8));
    }
  }

  __int128 Number() {
    switch (Below(6)) {
      case 0:
        return Between(-3, 3);
      case 1:
        return Between(-100'000, 100'000);
      case 2:
        return Between(INT64_MIN / 2, INT64_MAX / 2);
      case 3:
        return Chance(2) ? INT64_MAX : INT64_MIN;
      case 4:
        return (Chance(2) ? 1 : -1) * (PowerOfTen(static_cast<int>(Below(39))) - 1);
      default:
        return static_cast<__int128>(Between(INT64_MIN / 4, INT64_MAX / 4)) * Between(0, 1'000'000'000);
    }
  }

  Bounds ABounds(const Type& type) {
    if (!HasBounds(type) || Chance(5)) return {};
    __int128 a, b;
    if (type.kind == TypeKind::kDate) {
      a = Between(kLeastDay, kGreatestDay), b = Between(kLeastDay, kGreatestDay);
    } else if (type.kind == TypeKind::kTime) {
      a = Between(0, kMicrosecondsPerDay), b = Between(0, kMicrosecondsPerDay);
    } else if (type.kind == TypeKind::kTimestamp || type.kind == TypeKind::kTimestampTz) {
      a = Between(kLeastDay, kGreatestDay) * kMicrosecondsPerDay + Between(0, 10);
      b = Between(kLeastDay, kGreatestDay) * kMicrosecondsPerDay + Between(0, 10);
    } else {
      a = Number(), b = Chance(3) ? a + Between(0, 9) : Number();
    }
    return {std::min(a, b), std::max(a, b), true};
  }

  Slot ASlot(const Type& type) { return {type, Chance(2), ABounds(type)}; }

  Schema ASchema(uint32_t slots) {
    Schema out;
    for (uint32_t i = 0; i < slots; ++i) out.push_back(ASlot(AType()));
    return out;
  }

  std::string Text() {
    static const std::vector<std::string> kTexts = {
        "",  "a",  "b ", "ab",       "12",    "-3.50",           "1994-02-28",
        "t", "x%", "_",  "\xc3\xa4", "false", "2001-01-01 10:00"};
    return Of(kTexts);
  }

  /// Often a value at an end of the bounds, where errors are likely.
  Value AValue(const Slot& slot) {
    if (slot.nullable && Chance(4)) return Value::Null(slot.type);
    Value out{slot.type, false, 0, {}};
    const Bounds& b = slot.bounds;
    switch (slot.type.kind) {
      case TypeKind::kBool:
        out.number = Below(2);
        break;
      case TypeKind::kBytes:
        out.text = Text();
        if (Chance(2)) out.text.push_back('\0');
        break;
      case TypeKind::kString:
        out.text = Text();
        if (IsChar(slot.type)) out.text.resize(WithoutBlanks(out.text).size());
        break;
      default:
        if (b.known) {
          out.number = Chance(3) ? b.low : Chance(2) ? b.high : std::clamp<__int128>(Number(), b.low, b.high);
        } else if (slot.type.kind == TypeKind::kDate) {
          out.number = Between(kLeastDay, kGreatestDay);
        } else if (slot.type.kind == TypeKind::kTime) {
          out.number = Between(0, kMicrosecondsPerDay);
        } else if (slot.type.kind == TypeKind::kTimestamp || slot.type.kind == TypeKind::kTimestampTz) {
          out.number = Between(kLeastDay, kGreatestDay) * kMicrosecondsPerDay;
        } else {
          out.number = Number();
        }
    }
    // The bounds of a slot may be wider than what its type holds.
    if (!IsValueOf(out, slot.type)) out.number = b.known ? std::clamp<__int128>(0, b.low, b.high) : 0;
    return out;
  }

  std::vector<Value> ARow(const Schema& schema) {
    std::vector<Value> row;
    for (const Slot& slot : schema) row.push_back(AValue(slot));
    return row;
  }

  Expr ALiteral(const Type& type) {
    Expr e;
    e.type = type;
    e.literal = AValue({type, Chance(6), {}});
    return e;
  }

  static Expr Column(const Schema& schema, uint32_t slot) {
    Expr e;
    e.op = Op::kColumn;
    e.type = schema[slot].type;
    e.column = {0, static_cast<int>(slot)};
    return e;
  }

  Expr Leaf(const Schema& schema, const Type& type) {
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < schema.size(); ++i) {
      if (schema[i].type == type) slots.push_back(i);
    }
    if (slots.empty() || Chance(4)) return ALiteral(type);
    return Column(schema, Of(slots));
  }

  /// An expression of this type over the schema, as the binder would make it.
  Expr AnExpr(const Schema& schema, const Type& type, int depth) {
    if (depth == 0 || Chance(6)) return Leaf(schema, type);
    if (Chance(8)) return Case(schema, type, depth);
    switch (type.kind) {
      case TypeKind::kBool:
        return Condition(schema, depth);
      case TypeKind::kInteger:
        return Integer(schema, depth);
      case TypeKind::kDecimal:
        return Decimal(schema, type, depth);
      case TypeKind::kDate:
        if (Chance(2)) return Cast(AnExpr(schema, Type::Timestamp(), depth - 1), type);
        return Node(Chance(2) ? Op::kAdd : Op::kSubtract, type,
                    {AnExpr(schema, type, depth - 1), AnExpr(schema, Type::Integer(), depth - 1)});
      case TypeKind::kTimestamp:
        return Cast(AnExpr(schema, Chance(4) ? Type::String() : Type::Date(), depth - 1), type);
      case TypeKind::kUuid:
      case TypeKind::kBytes:
        return Chance(3) ? Cast(AnExpr(schema, Type::String(), depth - 1), type) : Leaf(schema, type);
      case TypeKind::kTimestampTz:
        return Leaf(schema, type);  // casts name a zone: functions
      case TypeKind::kTime:
        return Cast(AnExpr(schema, Chance(4) ? Type::String() : Type::Timestamp(), depth - 1), type);
      default: {
        Type from = AType();
        if (from.kind == TypeKind::kTimestampTz) from = Type::Date();
        return Cast(AnExpr(schema, from, depth - 1), type);
      }
    }
  }

  static Expr Node(Op op, const Type& type, std::vector<Expr> children) {
    Expr e;
    e.op = op;
    e.type = type;
    e.children = std::move(children);
    return e;
  }

 private:
  static Expr Cast(Expr a, const Type& type) { return Node(Op::kCast, type, {std::move(a)}); }

  Expr Case(const Schema& schema, const Type& type, int depth) {
    std::vector<Expr> parts;
    for (uint32_t i = 0; i <= Below(2); ++i) {
      parts.push_back(AnExpr(schema, Type::Bool(), depth - 1));
      parts.push_back(AnExpr(schema, type, depth - 1));
    }
    parts.push_back(AnExpr(schema, type, depth - 1));
    return Node(Op::kCase, type, std::move(parts));
  }

  Expr Condition(const Schema& schema, int depth) {
    const auto any = [&](const Type& type) { return AnExpr(schema, type, depth - 1); };
    const Type type = AType();
    switch (Below(7)) {
      case 0:
        return Node(Chance(2) ? Op::kAnd : Op::kOr, Type::Bool(), {any(Type::Bool()), any(Type::Bool())});
      case 1:
        return Node(Op::kNot, Type::Bool(), {any(Type::Bool())});
      case 2:
        return Node(Op::kIsNull, Type::Bool(), {any(type)});
      case 3: {
        Expr in = Node(Op::kIn, Type::Bool(), {any(type)});
        for (uint32_t i = 0; i <= Below(3); ++i) {
          Expr item = ALiteral(type);
          if (item.literal.null) item.literal = AValue({type, false, {}});
          in.children.push_back(std::move(item));
        }
        return in;
      }
      case 4: {
        Expr like = Node(Op::kLike, Type::Bool(), {any(Type::String())});
        like.literal = Value::String(Text());
        return like;
      }
      default: {
        const auto op = static_cast<Op>(static_cast<int>(Op::kEqual) + static_cast<int>(Below(6)));
        const Type other = type.numeric() ? (Chance(2) ? Type::Integer() : Type::Decimal(2)) : type;
        return Node(op, Type::Bool(), {any(type), any(other)});
      }
    }
  }

  Expr Integer(const Schema& schema, int depth) {
    const auto any = [&](const Type& type) { return AnExpr(schema, type, depth - 1); };
    switch (Below(10)) {
      case 0:
        return Node(Op::kNegate, Type::Integer(), {any(Type::Integer())});
      case 1:
        return Node(static_cast<Op>(static_cast<int>(Op::kExtractYear) + static_cast<int>(Below(3))),
                    Type::Integer(), {any(Type::Date())});
      case 2:
        return Node(Op::kSubtract, Type::Integer(), {any(Type::Date()), any(Type::Date())});
      case 3: {
        Expr cast = Cast(any(Chance(3)   ? Type::String()
                             : Chance(2) ? Type::Decimal(3)
                                         : Type::Integer()),
                         Type::Integer());
        cast.index = static_cast<int>(std::vector{-1, 2, 4, 8}[Below(4)]);
        return cast;
      }
      default: {
        const auto op = static_cast<Op>(static_cast<int>(Op::kAdd) + static_cast<int>(Below(5)));
        return Node(op, Type::Integer(), {any(Type::Integer()), any(Type::Integer())});
      }
    }
  }

  Expr Decimal(const Schema& schema, const Type& type, int depth) {
    const auto any = [&](const Type& t) { return AnExpr(schema, t, depth - 1); };
    const auto smaller = [&] { return Type::Decimal(static_cast<uint8_t>(Below(type.scale + 1u))); };
    switch (Below(6)) {
      case 0:
        return Node(Op::kNegate, type, {any(type)});
      case 1: {
        const Type other = smaller();
        return Node(Op::kMultiply, type,
                    {any(other), any(Type::Decimal(static_cast<uint8_t>(type.scale - other.scale)))});
      }
      case 2:
        return Cast(any(Type::Integer()), type);
      case 3:
        return Cast(any(Type::Decimal(static_cast<uint8_t>(Below(14)))), type);
      default: {
        const Op op = Chance(2) ? Op::kAdd : Op::kSubtract;
        const Type other = Chance(2) ? Type::Integer() : smaller();
        return Chance(2) ? Node(op, type, {any(type), any(other)}) : Node(op, type, {any(other), any(type)});
      }
    }
  }

  std::mt19937_64 engine_;
};

}  // namespace nam::plan::testing
