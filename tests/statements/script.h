#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

/// SQL tests as text: statements, each with the result that is expected.
///
///     # A comment.
///     create table t (id int primary key, n int) with (storage = record) --> CREATE TABLE
///
///     == KeysMove
///     insert into t values (1, 5), (2, null) --> INSERT 0 2
///     select id, n from t
///     where id > 0 order by id
///     --> 1,5 | 2,NULL
///     insert into t values (1, 1) --> error 23505 duplicate key
///     @other begin --> BEGIN
///
/// `== NAME` begins a case. Each case has an empty database, in which the statements before the first case
/// run first. `@NAME` before a statement names the session that runs it, if it is not the case's own.
///
/// `write NAME TEXT` makes a file in the folder in which the case runs; a line end in it may be `\n`.
///
/// A statement takes one line or several and ends with its expectation, behind `-->`, which may go on in
/// lines that begin with `-->`:
///
///  - Rows stand between ` | `, their values between commas. A line end in a value is `\n`. A row that is
///    empty, or has blanks at its ends, stands in quotation marks.
///  - Any command but a SELECT with rows stands before the rows: `SELECT 0`, `UPDATE 1 | 7,x`. Warnings stand
///    behind it: `BEGIN warns 25001`. Notices do if they are expected: `DROP VIEW notes TEXT`, `notes none`.
///  - An error is `error SQLSTATE`, and may go on with a part of `at PLACE: MESSAGE (HINT)`.
namespace nam::testing {

struct ScriptStep {
  std::string before;   // the lines between the statement before and this one
  std::string text;     // the step's lines
  size_t line = 0;      // the first of these
  std::string in_case;  // empty: of all cases
  std::string session;
  std::string statement;
  std::string expected;
};

struct Script {
  std::vector<std::string> cases;
  std::vector<ScriptStep> steps;
  std::string end;  // the lines behind the last step
};

/// INVALID_ARGUMENT names the line that is wrong.
absl::StatusOr<Script> ParseScript(absl::string_view text);
std::string ToText(const Script& script);

/// A result without the details that the expectation has not: the expectation itself if the result meets it.
std::string AsDetailed(absl::string_view result, absl::string_view expected);

/// Makes the step expect this.
void Expect(absl::string_view expected, ScriptStep& step);

}  // namespace nam::testing
