#pragma once

#include <string>

namespace nam::cli {

/// `nam 0.1.0 (commit d66cb45)`. Builds by `./run` know their commit; `+` behind it: the tree had changes.
std::string VersionText();

}  // namespace nam::cli
