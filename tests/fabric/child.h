#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/provider.h"

/// Peers in separate processes.
namespace nam::fabric::conformance {

/// A child as the test sees it. Roles are listed in child.cc: {NAME, SECRET, …}.
class Child {
 public:
  explicit Child(const std::vector<std::string>& role) : process_(CurrentProvider().StartChild(role)) {}
  std::optional<std::string> ReadLine() { return process_->ReadLine(); }
  void Kill() { process_->Kill(); }
  int pid() const { return process_->pid(); }
  int Finish() { return process_->Finish(); }

 private:
  const std::unique_ptr<ChildProcess> process_;
};

/// The test as the child sees it.
class Console {
 public:
  virtual ~Console() = default;
  virtual void Print(const std::string& line) = 0;
  /// Waits until the test is done with the child.
  virtual void AwaitEnd() = 0;
};

/// Plays the role with a fabric that was opened with its secret: the exit code.
int PlayRole(const std::vector<std::string>& role, Fabric& fabric, Console& console);

/// For main(): the child's exit code, or nothing when this process is no child.
std::optional<int> RunAsChild(int argc, char** argv);

}  // namespace nam::fabric::conformance
