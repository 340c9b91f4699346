#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace nam::cli {

struct CheckHistoryOptions {
  std::vector<std::string> files;  // of one run, one a client
};

/// `nam check-history`: checks that recorded histories (`nam checkout --history`) satisfy snapshot isolation.
/// 0: they do. 2: a file cannot be read, is no history or of another format. 4: a file is truncated or
/// damaged, or there are anomalies, which `out` lists.
int RunCheckHistory(const CheckHistoryOptions& options, std::ostream& out, std::ostream& err);

}  // namespace nam::cli
