#include "plan/function.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/expression_codec.h"
#include "plan/expression_tree.h"
#include "plan/slot_of.h"
#include "types/bytes.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

/// A value that every function accepts for a letter.
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
    case 'U':
      return UuidValue(7);
    case 'N':
      return Value::OfNumeric({25, 1});
    case 'B':
      return BytesValue(std::string(32, 'y'));  // also the order of an interval
    case 'Z':
      return Value::TimestampTz(86'400'000'001);
    case 'C':
      return Value::Time(86'400'001);
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

/// Whether an operand names a time zone.
bool IsZone(const Signature& signature, size_t i) {
  const std::string letters = LettersOf(signature);
  const bool zoned = letters.find('Z') != std::string::npos || signature.result == 'Z';
  const bool other = (signature.function == Function::kTruncateTime && i == 0) ||
                     (signature.function == Function::kToChar && i == 1) ||
                     (signature.function == Function::kTimestampTzOfText && i == 0);
  return letters[i] == 't' && zoned && !other;
}

Expr CallOf(const Signature& signature) {
  std::vector<Value> operands;
  for (const char letter : LettersOf(signature)) {
    const bool zone = IsZone(signature, operands.size());
    operands.push_back(zone ? Value::String("Asia/Kolkata") : ValueOf(letter));
  }
  // make_date(3, 3, 3), chr(3), …: all of these exist. Flags are letters, times are read by a pattern.
  const Function function = signature.function;
  if (LettersOf(signature) == "tC") operands[0] = Value::String("hour");
  if (LettersOf(signature) == "Ct") operands[1] = Value::String("HH24");
  if (function == Function::kTimestampTzOfText) operands[0] = Value::String("2024-01-31 10:00");
  if (function >= Function::kReplaceMatches && function <= Function::kMatchPlace) {
    for (size_t i = function == Function::kReplaceMatches ? 3 : 2; i < operands.size(); ++i)
      operands[i] = operands[i].type.kind == TypeKind::kString ? Value::String("i") : Value::Integer(1);
  }
  if (function == Function::kToDate || function == Function::kTimestampByPattern) {
    operands[0] = Value::String("2001-02-03");
    operands[1] = Value::String("YYYY-MM-DD");
  }
  switch (function) {
    case Function::kEncode:
      operands[1].text = "hex";
      break;
    case Function::kDecode:
      operands = {Value::String("00ff"), Value::String("hex")};
      break;
    case Function::kConvertFrom:
    case Function::kConvertTo:
      operands[1].text = "UTF8";
      break;
    case Function::kSetBit:
      operands[2].number = 1;
      break;
    case Function::kNumericOfOrder:
      operands[0].text = OrderedNumericBytes({25, 1});
      break;
    case Function::kNumericLimb:
    case Function::kNumericSquareLimb:
      operands[1].number = 2;
      break;
    case Function::kDecimalLimb:
      operands[1].number = 1;
      break;
    case Function::kNumericVarPop:
    case Function::kNumericVarSamp:
    case Function::kNumericStddevPop:
    case Function::kNumericStddevSamp:  // of zeros
      for (size_t i = 0; i + 2 < operands.size(); ++i) operands[i].number = 0;
      break;
    default:
      break;
  }
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

Value Called(Function function, std::vector<Value> operands) {
  const absl::StatusOr<Value> value = Result(CallOf(function, std::move(operands)));
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value_or(Value::Null());
}

Value TextValue(const char* text) {
  return Value::String(text);
}

TEST(Function, MatchesAreTheLongest) {
  const auto part = [](const char* text, const char* expression) {
    return Called(Function::kMatchedPart, {TextValue(text), TextValue(expression)}).ToString();
  };
  EXPECT_EQ(part("foobar", "o.b"), "oob");
  EXPECT_EQ(part("foobar", "o(.)b"), "o");
  EXPECT_EQ(part("foobar", "o|oo"), "oo") << "RE2 alone takes the first branch";
  EXPECT_EQ(part("aab", "a*(?:ab)*"), "aab") << "the whole is as long as it can be";
  EXPECT_EQ(part("abcabc", "a.*?c"), "abc");
  EXPECT_TRUE(Called(Function::kMatchedPart, {TextValue("foo"), TextValue("x")}).null);
  EXPECT_TRUE(Called(Function::kMatchedPart, {TextValue("foo"), TextValue("(x)?foo")}).null)
      << "the group took nothing";
  const auto state = [](const char* expression) {
    return StateOf(Result(CallOf(Function::kMatchedPart, {TextValue("a"), TextValue(expression)})).status());
  };
  EXPECT_EQ(state("a*b*?"), "0A000");
  EXPECT_EQ(state("(a|b)*?"), "0A000");
  EXPECT_EQ(state("(a"), "2201B");
}

TEST(Function, MatchesAreReplacedCountedAndFound) {
  const auto replaced = [](const char* text, const char* expression, const char* by, const char* flags) {
    return Called(Function::kReplaceMatches,
                  {TextValue(text), TextValue(expression), TextValue(by), TextValue(flags)})
        .ToString();
  };
  EXPECT_EQ(replaced("banana", "a", "<\\\\&>", ""), "b<\\&>nana");
  EXPECT_EQ(replaced("banana", "A(n)?", "<\\1>", "gi"), "b<n><n><>");
  EXPECT_EQ(replaced("\xc3\xa9"
                     "a\xc3\xa9",
                     "x*", "-", "g"),
            "-\xc3\xa9-"
            "a-\xc3\xa9-");
  const auto count = [](const char* text, const char* expression) {
    return Called(Function::kCountMatches, {TextValue(text), TextValue(expression)}).number;
  };
  EXPECT_EQ(count("aaaa", "aa"), 2);
  EXPECT_EQ(count("ab", ""), 3);
  EXPECT_EQ(count("aaa", "^a"), 1) << "a search goes on behind the text's beginning";
  EXPECT_EQ(Called(Function::kNthMatch,
                   {TextValue("a1b22c333"), TextValue("[0-9]+"), Value::Integer(1), Value::Integer(2)})
                .text,
            "22");
  EXPECT_EQ(Called(Function::kMatchPlace, {TextValue("\xc3\xa9\xc3\xa9x"), TextValue("x")}).number, 3);
  EXPECT_EQ(Called(Function::kMatchPlace, {TextValue("ab"), TextValue("a"), Value::Integer(3)}).number, 0);
  for (const char* flags : {"z", "G"})
    EXPECT_EQ(
        StateOf(
            Result(CallOf(Function::kHasMatch, {TextValue("a"), TextValue("a"), TextValue(flags)})).status()),
        "22023");
  EXPECT_EQ(
      StateOf(Result(CallOf(Function::kHasMatch, {TextValue("a"), TextValue("a"), TextValue("g")})).status()),
      "22023");
  EXPECT_EQ(
      StateOf(Result(CallOf(Function::kHasMatch, {TextValue("a"), TextValue("a"), TextValue("x")})).status()),
      "0A000");
}

TEST(Function, BitsAreThoseOfIntegersOf64Bits) {
  const __int128 longer = __int128{INT64_MAX} + 1;
  EXPECT_EQ(Called(Function::kShiftLeft, {Value::Integer(1), Value::Integer(63)}).number, INT64_MIN);
  EXPECT_EQ(Called(Function::kShiftLeft, {Value::Integer(1), Value::Integer(65)}).number, 2);
  EXPECT_EQ(Called(Function::kShiftRight, {Value::Integer(-8), Value::Integer(1)}).number, -4);
  EXPECT_EQ(Called(Function::kGreatestDivisor, {Value::Integer(-12), Value::Integer(18)}).number, 6);
  EXPECT_EQ(Called(Function::kLeastMultiple, {Value::Integer(4), Value::Integer(-6)}).number, 12);
  const auto state = [](Function function, __int128 a, __int128 b) {
    Value first = Value::Integer(0), second = Value::Integer(0);
    first.number = a;
    second.number = b;
    return StateOf(Result(CallOf(function, {first, second})).status());
  };
  EXPECT_EQ(state(Function::kBitsAnd, longer, 1), "22003");
  EXPECT_EQ(state(Function::kGreatestDivisor, INT64_MIN, 0), "22003");
  EXPECT_EQ(state(Function::kLeastMultiple, INT64_MAX, INT64_MAX - 1), "22003");
}

TEST(Function, TimesAreReadByPatterns) {
  const auto day = [](const char* text, const char* pattern) {
    return Called(Function::kToDate, {TextValue(text), TextValue(pattern)}).ToString();
  };
  EXPECT_EQ(day("05 Dec 2000", "DD Mon YYYY"), "2000-12-05");
  EXPECT_EQ(day("20240229", "YYYYMMDD"), "2024-02-29");
  EXPECT_EQ(day("  2024-7-1", "YYYY-MM-DD"), "2024-07-01");
  EXPECT_EQ(day("99 365", "YY DDD"), "1999-12-31");
  const auto moment = [](const char* zone) {
    return Called(Function::kTimestampByPattern, {TextValue("2024-01-02 12:05:06.25 AM"),
                                                  TextValue("YYYY-MM-DD HH12:MI:SS.MS PM"), TextValue(zone)})
        .ToString();
  };
  EXPECT_EQ(moment("UTC"), "2024-01-02 00:05:06.25+00");
  EXPECT_EQ(moment("Asia/Kolkata"), "2024-01-01 18:35:06.25+00");
  const auto state = [](const char* text, const char* pattern) {
    return StateOf(Result(CallOf(Function::kToDate, {TextValue(text), TextValue(pattern)})).status());
  };
  EXPECT_EQ(state("2024-02-30", "YYYY-MM-DD"), "22008");
  EXPECT_EQ(state("x", "YYYY"), "22007");
  EXPECT_EQ(state("2024 2023", "YYYY YYYY"), "22007");
  EXPECT_EQ(state("24", "IYYY"), "0A000");
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
  EXPECT_EQ(state(Function::kReplaceMatches, {Value::String(half), Value::String("x"),
                                              Value::String(std::string(1000, 'y')), Value::String("g")}),
            "54000");
  EXPECT_EQ(state(Function::kOverlay,
                  {Value::String(half), Value::String(half), Value::Integer(1), Value::Integer(0)}),
            "54000");
  EXPECT_EQ(state(Function::kFormatText, {Value::String("%s%s"), Value::String(half), Value::String(half)}),
            "54000");
}

TEST(Function, RegularExpressionsTakeLinearTime) {
  // A matcher that back-tracks would not return.
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
