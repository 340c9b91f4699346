#pragma once

#include <string>

namespace nam::cli {

/// From `bazel build --stamp --embed_label=COMMIT`; else empty, or Bazel's word for it.
extern const char kCommit[];

/// `nam 0.1.0 (commit d66cb45)`. Builds by `./run` know their commit; `+` behind it: the tree had changes.
std::string VersionText();

}  // namespace nam::cli
