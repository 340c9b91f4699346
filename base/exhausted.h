#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

/// RESOURCE_EXHAUSTED with the exhausted resource as a payload, which survives calls to other servers. The
/// layers that use it do not know SQL; types/sql_error.cc reads the payload by name and picks the SQLSTATE.
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

/// Also reports an exhausted quota, or the file system's limit on file size.
inline absl::Status DiskFullError(absl::string_view message) {
  return Exhausted("disk", message);
}

}  // namespace nam
