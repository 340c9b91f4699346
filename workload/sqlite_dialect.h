#pragma once

#include <string>

namespace nam {

/// Translates a query to SQLite's dialect, for the forms that benchmarks use: date literals with or without
/// an interval of days, months or years, EXTRACT of years, SUBSTRING … FROM … FOR, column names of derived
/// tables, and sums and differences of decimals, which SQLite would compute inexactly.
std::string SqliteText(const std::string& sql);

}  // namespace nam
