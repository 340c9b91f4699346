#pragma once

#include <string>

namespace nam {

/// From `bazel build --stamp --embed_label=COMMIT`; else empty, or Bazel's own value.
extern const char kCommit[];

/// `nam 0.1.0 (commit d66cb45)`. Builds by `./run` know their commit; a final `+`: the tree had changes.
std::string VersionText();

}  // namespace nam
