// Compiled when a binary is linked: Bazel's linkstamp, which defines BUILD_EMBED_LABEL.
#include "cli/version.h"

namespace nam::cli {

const char kCommit[] = BUILD_EMBED_LABEL;

}  // namespace nam::cli
