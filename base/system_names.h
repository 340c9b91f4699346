#pragma once

#include <string>

namespace nam {

/// The transaction state: timestamps, and the slots and logs of clients. Made by the first transaction.
inline constexpr char kTransactionsTable[] = "nam.transactions";

/// Whether a table or an index of this name is the system's: `nam.` in upper or lower case begins it. No
/// statement of SQL creates, drops or writes those; the catalog refuses it too, but for what the system
/// itself does.
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
