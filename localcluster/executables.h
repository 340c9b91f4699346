#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace nam {

/// The program `nam` or `nam-bench`: this very one, or the one beside it, installed in the same directory or
/// as Bazel leaves them (cli/nam, bench/nam-bench). NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindExecutable(const std::string& name);

}  // namespace nam
