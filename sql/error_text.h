#pragma once

#include <string>

#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::sql {

/// Formats an error for a terminal, without a final newline:
///
///   ERROR:  column "lo_revenu" does not exist (SQLSTATE 42703)
///   LINE 2:   sum(lo_revenu)
///                 ^
///   HINT:  did you mean "lo_revenue"?
///
/// The caret counts UTF-8 code points; tabs before it stay tabs, so that both lines shift alike. A long line
/// is cut to the part near the position, between dots.
std::string FormatError(const std::string& statement, const SqlError& error);

}  // namespace nam::sql
