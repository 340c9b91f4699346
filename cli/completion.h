#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/client.h"

namespace nam::cli {

/// Completes words in the shell: meta commands, SQL keywords, names of tables and columns.
class Completer {
 public:
  explicit Completer(catalog::Client& catalog) : catalog_(catalog) {}

  /// The whole words that the last word of `line` may become, in order, without repetition.
  std::vector<std::string> Complete(std::string_view line);
  /// Drops the names, for which the catalog is asked only once until then.
  void Forget() { names_known_ = false; }

  /// Where the last word of `line` starts.
  static size_t WordStart(std::string_view line);
  /// The longest common beginning.
  static std::string CommonPrefix(const std::vector<std::string>& words);

 private:
  void LearnNames();

  catalog::Client& catalog_;
  bool names_known_ = false;
  std::vector<std::string> names_;
};

}  // namespace nam::cli
