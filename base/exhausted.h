#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

/// RESOURCE_EXHAUSTED, and what is exhausted: a payload, which passes through calls to other servers. The
/// layers that say so know no SQL; types/sql_error.cc reads the payload by its name and picks the SQLSTATE.
namespace nam {

inline constexpr char kExhaustedPayload[] = "nam/exhausted";

inline absl::Status Exhausted(absl::string_view what, absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kExhaustedPayload, absl::Cord(what));
  return status;
}

inline absl::Status OutOfMemoryError(absl::string_view message) {
  return Exhausted("memory", message);
}

/// Or a quota, or the file system's bound on a file's size.
inline absl::Status DiskFullError(absl::string_view message) {
  return Exhausted("disk", message);
}

}  // namespace nam
