#pragma once

#include <string>

#include "absl/status/statusor.h"

/// A benchmark's host environment.
namespace nam::bench {

/// Creates a directory in $TMPDIR or /tmp for gigabytes of files: the runtime directory is in memory.
absl::StatusOr<std::string> MakeLargeDirectory();

/// The host's load average of the last minute; 0 if unknown.
double LoadAverage();
/// Warns on stderr if the load disturbs a benchmark.
void WarnOfLoad(double load_average);

}  // namespace nam::bench
