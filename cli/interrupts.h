#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace nam::cli {

/// The target of Ctrl-C while something runs. A signal handler calls it, in any thread.
class Cancellable {
 public:
  virtual ~Cancellable() = default;
  virtual void CancelFromSignal() = 0;
};

/// Handles Ctrl-C during its lifetime: SIGINT sets a flag and reaches the current target. One at a time in a
/// process.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Since the last Clear.
  bool Seen() const;
  void Clear();
  /// Readable when Seen, for poll().
  int fd() const { return read_end_.get(); }
  /// Null for none. An earlier signal that was not cleared reaches the new target, too.
  void SetTarget(Cancellable* target);

 private:
  static void Handle(int signal);
  UniqueFd read_end_;
  UniqueFd write_end_;
  struct sigaction previous_;
};

}  // namespace nam::cli
