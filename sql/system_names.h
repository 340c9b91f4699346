#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/system_names.h"
#include "types/sql_error.h"

namespace nam::sql {

/// Refuses the names of the system's own tables and indexes: SQLSTATE 42501.
inline absl::Status CheckNotSystem(const std::string& name, int position) {
  if (!IsSystemName(name)) return absl::OkStatus();
  return UserError(sqlstate::kNoPrivilege, absl::StrCat("permission denied for ", Quote(name)), position,
                   "names that begin with nam. are the system's, which makes and changes them itself; choose "
                   "another");
}

/// The hidden column of a table without a primary key.
inline constexpr char kRowIdColumn[] = "nam.row";
/// Dropped columns have this before their number.
inline constexpr char kDroppedPrefix[] = "nam.dropped.";

/// Refuses the names of hidden columns: SQLSTATE 42701. All others are the user's.
inline absl::Status CheckColumnName(const std::string& name, int position) {
  if (name != kRowIdColumn && !name.starts_with(kDroppedPrefix)) return absl::OkStatus();
  return UserError(sqlstate::kDuplicateColumn,
                   absl::StrCat("column name ", Quote(name), " conflicts with a system column name"),
                   position, "choose another name");
}

}  // namespace nam::sql
