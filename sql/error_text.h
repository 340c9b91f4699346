#pragma once

#include <string>

#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::sql {

/// As a terminal shows it, without a newline at the end:
///
///   ERROR:  column "lo_revenu" does not exist (SQLSTATE 42703)
///   LINE 2:   sum(lo_revenu)
///                 ^
///   HINT:  did you mean "lo_revenue"?
///
/// The caret counts UTF-8 code points; tabs before it stay tabs, so that both lines move alike. Of a long
/// line only what is near the position is shown, between dots.
std::string FormatError(const std::string& statement, const SqlError& error);

}  // namespace nam::sql
