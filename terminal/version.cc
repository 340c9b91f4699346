#include "terminal/version.h"

#include <cstring>

namespace nam {

std::string VersionText() {
  const bool known = kCommit[0] != '\0' && std::strcmp(kCommit, "redacted") != 0;
  return std::string("nam 0.1.0 (") + (known ? std::string("commit ") + kCommit : "of no known commit") + ")";
}

}  // namespace nam
