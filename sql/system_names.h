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

}  // namespace nam::sql
