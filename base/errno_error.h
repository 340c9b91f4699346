#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace nam {

/// INTERNAL: why the system call that came last has failed, after `what`.
inline absl::Status ErrnoError(const std::string& what) {
  const int error = errno;
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace nam
