#pragma once

#include <string>

namespace nam {

/// The transaction state: timestamps, and the clients' slots and logs. Created by the first transaction.
inline constexpr char kTransactionsTable[] = "nam.transactions";

/// Names of tables that hold the rows of a load into an empty table until its end: this, the number of the
/// member whose load it is, a dot, and the number of the load.
inline constexpr char kLoadTables[] = "nam.load.";

/// True for names of system tables and indexes, which begin with `nam.` in upper or lower case. No SQL
/// statement creates, drops or writes those; the catalog refuses it, too, except for the system itself.
inline bool IsSystemName(const std::string& name) {
  constexpr char kPrefix[] = "nam.";
  for (size_t i = 0; kPrefix[i] != '\0'; ++i) {
    if (i >= name.size()) return false;
    const char c = name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    if (c != kPrefix[i]) return false;
  }
  return true;
}

}  // namespace nam
