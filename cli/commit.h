#pragma once

namespace nam::cli {

/// From `bazel build --stamp --embed_label=COMMIT`; else empty, or Bazel's word for it.
extern const char kCommit[];

}  // namespace nam::cli
