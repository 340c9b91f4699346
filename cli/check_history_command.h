#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace nam::cli {

struct CheckHistoryOptions {
  std::vector<std::string> files;  // of one run, one a client
};

/// `nam check-history`: whether what clients have recorded (`nam checkout --history`) was snapshot isolation.
/// 0: it was. 2: a file cannot be read, is no history or of another format. 4: a file is cut off or damaged,
/// or it was not snapshot isolation: `out` says what was seen.
int RunCheckHistory(const CheckHistoryOptions& options, std::ostream& out, std::ostream& err);

}  // namespace nam::cli
