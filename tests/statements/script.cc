#include "tests/statements/script.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace nam::testing {
namespace {

constexpr size_t kTextBytesMax = 1 << 20;
constexpr size_t kLineBytesMax = 140;
constexpr absl::string_view kMark = "-->", kCase = "== ", kRow = " | ", kNotes = " notes ", kError = "error ";
constexpr size_t kStateEnd = kError.size() + 5;  // of `error 23505`

bool IsName(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

class Reader {
 public:
  /// Returns what is wrong with the line, or nothing.
  std::string Take(size_t number, absl::string_view line) {
    const size_t mark = line.find(kMark);
    const bool blank = absl::StripAsciiWhitespace(line).empty(), begins_case = absl::StartsWith(line, kCase);
    if (step_.text.empty()) {
      if (mark == 0) return Continue(line);
      if (blank || begins_case || line[0] == '#') {
        absl::StrAppend(&step_.before, line, "\n");
        return begins_case ? BeginCase(line.substr(kCase.size())) : "";
      }
      step_.line = number;
    } else if (blank || begins_case) {
      return "the statement before has no -->";
    }
    absl::StrAppend(&step_.text, line, "\n");
    absl::StrAppend(&step_.statement, line.substr(0, mark), "\n");
    return mark == absl::string_view::npos ? "" : Finish(line.substr(mark + kMark.size()));
  }

  std::string End() {
    if (!step_.text.empty()) return "the statement before has no -->";
    script_.end = std::exchange(step_.before, "");
    return script_.cases.empty() ? "there is no case: a line == NAME" : CaseIsEmpty();
  }

  Script& script() { return script_; }

 private:
  std::string BeginCase(absl::string_view name) {
    if (!IsName(name)) return "a case has a name of letters, digits and _";
    if (std::count(script_.cases.begin(), script_.cases.end(), name) > 0)
      return "there is another case of this name";
    const std::string empty = CaseIsEmpty();
    script_.cases.emplace_back(name);
    return empty;
  }

  std::string CaseIsEmpty() const {
    const bool empty = !script_.cases.empty() &&
                       (script_.steps.empty() || script_.steps.back().in_case != script_.cases.back());
    return empty ? "the case before has no statement" : "";
  }

  std::string Continue(absl::string_view line) {
    if (script_.steps.empty() || !step_.before.empty()) return "there is no statement before -->";
    ScriptStep& step = script_.steps.back();
    absl::StrAppend(&step.text, line, "\n");
    absl::StrAppend(&step.expected, kRow, absl::StripAsciiWhitespace(line.substr(kMark.size())));
    return "";
  }

  std::string Finish(absl::string_view expected) {
    ScriptStep step = std::exchange(step_, ScriptStep());
    absl::string_view statement = step.statement;
    if (absl::ConsumePrefix(&statement, "@")) {
      step.session = std::string(statement.substr(0, statement.find(' ')));
      if (!IsName(step.session)) return "a session has a name of letters, digits and _";
      statement.remove_prefix(step.session.size());
    }
    step.statement = std::string(absl::StripAsciiWhitespace(statement));
    if (step.statement.empty()) return "there is no statement before -->";
    step.expected = std::string(absl::StripAsciiWhitespace(expected));
    if (!script_.cases.empty()) step.in_case = script_.cases.back();
    script_.steps.push_back(std::move(step));
    return "";
  }

  Script script_;
  ScriptStep step_;  // up to the line before
};

}  // namespace

absl::StatusOr<Script> ParseScript(absl::string_view text) {
  if (text.size() > kTextBytesMax) return absl::InvalidArgumentError("a script has at most 1 MiB");
  Reader reader;
  size_t number = 1;
  std::string wrong;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    wrong = reader.Take(number, line);
    if (!wrong.empty()) break;
    ++number;
  }
  if (wrong.empty()) wrong = reader.End();
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", wrong));
  return std::move(reader.script());
}

std::string ToText(const Script& script) {
  std::string text;
  for (const ScriptStep& step : script.steps) absl::StrAppend(&text, step.before, step.text);
  return text + script.end;
}

std::string AsDetailed(absl::string_view result, absl::string_view expected) {
  if (absl::StartsWith(result, kError)) {
    const absl::string_view state = result.substr(0, kStateEnd), detail = result.substr(state.size());
    if (expected.size() <= kStateEnd) return std::string(state);
    const bool met = absl::ConsumePrefix(&expected, state) && absl::StrContains(detail, expected);
    return absl::StrCat(state, met ? expected : detail);
  }
  const size_t rows = std::min(result.find(kRow), result.size()), notes = std::min(result.find(kNotes), rows);
  return absl::StrCat(result.substr(0, absl::StrContains(expected, kNotes) ? rows : notes),
                      result.substr(rows));
}

void Expect(absl::string_view expected, ScriptStep& step) {
  step.expected = std::string(expected);
  std::string text = step.text.substr(0, absl::string_view(step.text).find(kMark));
  absl::StripTrailingAsciiWhitespace(&text);
  size_t begin = text.rfind('\n') + 1;  // of the last line
  absl::string_view between = " --> ";
  const auto begin_line = [&] {
    between = "\n--> ";
    begin = text.size() + 1;
  };
  if (text.size() - begin + between.size() + expected.size() > kLineBytesMax) begin_line();
  for (const absl::string_view row : absl::StrSplit(expected, kRow)) {
    if (text.size() - begin + between.size() + row.size() > kLineBytesMax) begin_line();
    absl::StrAppend(&text, between, row);
    between = kRow;
  }
  step.text = text + "\n";
}

}  // namespace nam::testing
