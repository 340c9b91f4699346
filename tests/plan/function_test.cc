#include "plan/function.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/expression_codec.h"
#include "plan/expression_tree.h"
#include "plan/slot_of.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

/// A value that every function takes for a letter.
Value ValueOf(char letter) {
  switch (letter) {
    case 'b':
      return Value::Bool(true);
    case 'i':
      return Value::Integer(3);
    case 'n':
      return Value::Decimal(150, 2);
    case 'f':
      return Value::Double(0.5);
    case 'D':
      return Value::Date(10'000);
    case 'T':
      return Value::Timestamp(86'400'000'001);
    case 'I':
      return Value::Span({1, 2, 3});
    default:
      return Value::String("y");
  }
}

/// Letters with `*` spelled out.
std::string LettersOf(const Signature& signature) {
  std::string letters = signature.arguments;
  if (letters.back() == '*') letters.back() = letters[letters.size() - 2];
  return letters;
}

Expr CallOf(Function function, std::vector<Value> operands) {
  Expr call;
  call.op = Op::kFunction;
  call.index = static_cast<int>(function);
  call.position = 7;
  for (Value& operand : operands) call.children.push_back(MakeLiteral(std::move(operand), -1));
  call.type = ResultType(function, call.children).value_or(Type::Null());
  return call;
}

Expr CallOf(const Signature& signature) {
  std::vector<Value> operands;
  for (const char letter : LettersOf(signature)) operands.push_back(ValueOf(letter));
  // make_date(3, 3, 3), chr(3), …: all of these exist.
  return CallOf(signature.function, std::move(operands));
}

std::string StateOf(const absl::Status& status) {
  const auto error = SqlErrorOf(status);
  return error ? error->sqlstate : status.ToString();
}

absl::StatusOr<Value> Result(const Expr& call) {
  return Evaluate(call, Resolver());
}

TEST(Function, EverySignatureCanBeCalled) {
  for (const Signature& signature : Signatures()) {
    const Expr call = CallOf(signature);
    SCOPED_TRACE(std::string(signature.name) + "(" + signature.arguments + ")");
    ASSERT_NE(call.type.kind, TypeKind::kNull);
    const auto slot = SlotOf(call, {});
    ASSERT_TRUE(slot.ok()) << slot.status();
    const absl::StatusOr<Value> value = Result(call);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_TRUE(IsValueOf(*value, call.type));
    const auto decoded = FromProto(ToProto(call));
    ASSERT_TRUE(decoded.ok());
    EXPECT_TRUE(SameExpr(*decoded, call));
  }
}

TEST(Function, NullInIsNullOutOfStrictFunctions) {
  for (const Signature& signature : Signatures()) {
    if (!signature.strict) continue;
    const Expr whole = CallOf(signature);
    for (size_t i = 0; i < whole.children.size(); ++i) {
      if (signature.function == Function::kExtract && i == 0) continue;  // its field is a constant
      Expr call = whole;
      call.children[i].literal = Value::Null(call.children[i].type);
      const absl::StatusOr<Value> value = Result(call);
      EXPECT_TRUE(value.ok() && value->null) << signature.name << " of a NULL at " << i;
    }
  }
}

TEST(Function, PlansCallWhatTakesTheirOperands) {
  for (const Signature& signature : Signatures()) {
    SCOPED_TRACE(signature.name);
    Expr call = CallOf(signature);
    // Fewer operands, another type of one, another type of the result, another function.
    Expr fewer = call;
    fewer.children.pop_back();
    if (!ResultType(signature.function, fewer.children)) {
      EXPECT_FALSE(SlotOf(fewer, {}).ok());
    }
    Expr other = call;
    other.children[0] = MakeLiteral(Value::Null(CharType(3)), -1);
    other.children[0].type.kind = TypeKind::kNull;
    EXPECT_FALSE(SlotOf(other, {}).ok());
    Expr result = call;
    result.type = call.type.kind == TypeKind::kBool ? Type::Date() : Type::Bool();
    EXPECT_FALSE(SlotOf(result, {}).ok());
    for (const int number : {-1, static_cast<int>(kLastFunction) + 1, 255}) {
      Expr unknown = call;
      unknown.index = number;
      EXPECT_FALSE(SlotOf(unknown, {}).ok());
    }
  }
}

TEST(Function, TextsAreBounded) {
  const std::string half(10 << 20, 'x');
  const auto state = [](Function function, std::vector<Value> operands) {
    return StateOf(Result(CallOf(function, std::move(operands))).status());
  };
  EXPECT_EQ(state(Function::kConcat, {Value::String(half), Value::String(half)}), "54000");
  EXPECT_EQ(state(Function::kConcatAll, {Value::String(half), Value::String(half)}), "54000");
  EXPECT_EQ(state(Function::kRepeat, {Value::String("ab"), Value::Integer(INT64_MAX)}), "54000");
  EXPECT_EQ(state(Function::kPadLeft, {Value::String("a"), Value::Integer(1 << 25)}), "54000");
  EXPECT_EQ(state(Function::kPadRight, {Value::String("a"), Value::Integer(INT64_MAX), Value::String("xy")}),
            "54000");
  EXPECT_EQ(state(Function::kReplace, {Value::String(half), Value::String("x"), Value::String(half)}),
            "54000");
  EXPECT_TRUE(Result(CallOf(Function::kRepeat, {Value::String("x"), Value::Integer(16 << 20)})).ok());
}

TEST(Function, RegularExpressionsTakeLinearTime) {
  // Back-tracking would not come back.
  const std::string text = std::string(100'000, 'a') + "!";
  for (const char* expression : {"(a*)*b", "(a|aa)+$", "^(a?){50}a{50}$"}) {
    const auto value = Result(CallOf(Function::kMatches, {Value::String(text), Value::String(expression)}));
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->number, 0) << expression;
  }
  for (const char* expression :
       {"(a)\\1", "a(?=b)", "a(?!b)", "(?<=a)b", "\\yfoo\\y", "\\mfoo", "[[:<:]]a", "[[.a.]]"})
    EXPECT_EQ(
        StateOf(Result(CallOf(Function::kMatches, {Value::String("a"), Value::String(expression)})).status()),
        "0A000")
        << expression;
}

}  // namespace
}  // namespace nam::plan
