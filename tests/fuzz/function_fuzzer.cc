// Functions whose text arguments are small languages: patterns of to_char, LIKE and regular expressions, and
// names of fields. For any such text a call ends with a value of its type or with the user's error.

#include <string>

#include "base/check.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "plan/slot_of.h"
#include "tests/fuzz/fuzz.h"
#include "types/sql_error.h"

namespace nam::fuzz {
namespace {

std::vector<Value> Subjects() {
  return {Value::Timestamp(1'588'820'645'678'000),
          Value::Date(-700'000),
          Value::Decimal(-123'456, 3),
          Value::Integer(485),
          Value::Double(-1.5e10),
          Value::Span({14, -3, 4'000'000}),
          Value::String("h\xc3\xa9llo W\xc3\xb6rld 123")};
}

constexpr plan::Function kFunctions[] = {
    plan::Function::kToChar,         plan::Function::kDatePart,          plan::Function::kTruncateTime,
    plan::Function::kMatches,        plan::Function::kMatchesIgnoreCase, plan::Function::kLike,
    plan::Function::kLikeIgnoreCase, plan::Function::kTranslate,         plan::Function::kTrim,
    plan::Function::kSplitPart,      plan::Function::kInitcap,           plan::Function::kReverse};

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const char* text :
       {"YYYY-MM-DD HH24:MI:SS.US", "FMDay, DDth \"of\" Month", "999G990D00MI", "S0V99", "9.99EEEE", "FMRN",
        "<9PR>", "a|b*[[:alpha:]\\d]{2,3}", "(?i)^h.*\\s\\w+$", "%a\\_%", "isoyear", "dow"}) {
    for (uint8_t function = 0; function < 6; ++function) {
      for (uint8_t subject = 0; subject < 7; ++subject)
        seeds.push_back(std::string{static_cast<char>(function), static_cast<char>(subject)} + text);
    }
  }
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  if (size < 2 || size > 300) return 0;
  const plan::Function function = fuzz::kFunctions[data[0] % std::size(fuzz::kFunctions)];
  const std::vector<Value> subjects = fuzz::Subjects();
  const Value subject = subjects[data[1] % subjects.size()];
  const Value text = Value::String(std::string(reinterpret_cast<const char*>(data) + 2, size - 2));
  const bool named = function == plan::Function::kDatePart || function == plan::Function::kTruncateTime;
  std::vector<Value> arguments = named ? std::vector{text, subject} : std::vector{subject, text};
  // The number of arguments differs between functions.
  if (function == plan::Function::kTranslate) arguments.push_back(Value::String("xy"));
  if (function == plan::Function::kSplitPart) arguments.push_back(Value::Integer(-2));
  if (function == plan::Function::kInitcap || function == plan::Function::kReverse) arguments = {text};
  plan::Expr call;
  call.op = plan::Op::kFunction;
  call.index = static_cast<int>(function);
  for (const Value& argument : arguments) call.children.push_back(plan::MakeLiteral(argument, -1));
  const std::optional<Type> type = plan::ResultType(function, call.children);
  if (!type) return 0;
  call.type = *type;
  NAM_CHECK(plan::SlotOf(call, {}).ok());
  const absl::StatusOr<Value> result = plan::Apply(call, arguments);
  if (result.ok()) {
    NAM_CHECK(result->null || plan::IsValueOf(*result, call.type));
  } else {
    NAM_CHECK(SqlErrorOf(result.status()).has_value());
  }
  return 0;
}
