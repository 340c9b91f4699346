#pragma once

#include <string>

#include "absl/status/statusor.h"

/// What a benchmark finds on its host.
namespace nam::bench {

/// A fresh directory in $TMPDIR or /tmp, where gigabytes may go: the runtime directory is memory.
absl::StatusOr<std::string> MakeLargeDirectory();

/// The host's load average of the last minute; 0 if it is not told.
double LoadAverage();
/// Says on stderr if it is so high that other work disturbs a benchmark.
void WarnOfLoad(double load_average);

}  // namespace nam::bench
