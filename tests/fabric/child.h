#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

/// Peers in processes of their own: this test binary, executed again with `--child=ROLE …`.
namespace nam::fabric::conformance {

class Child {
 public:
  /// Roles are listed in child.cc.
  explicit Child(const std::vector<std::string>& role);
  /// Kills it if it still runs.
  ~Child();
  /// The next line that it prints, within 10 s; else nothing.
  std::optional<std::string> ReadLine();
  void Kill();
  int pid() const { return pid_; }
  /// Lets it end by itself, within 10 s: its exit code, -1 if it had to be killed.
  int Finish();

 private:
  pid_t pid_ = -1;
  UniqueFd input_;  // it ends when this is closed
  UniqueFd output_;
};

/// For main(): the child's exit code, or nothing when this process is no child.
std::optional<int> RunAsChild(int argc, char** argv);

}  // namespace nam::fabric::conformance
