// Compiled when a binary is linked: Bazel's linkstamp, which defines BUILD_EMBED_LABEL.
#include "terminal/version.h"

namespace nam {

const char kCommit[] = BUILD_EMBED_LABEL;

}  // namespace nam
