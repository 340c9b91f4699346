#pragma once

#include <signal.h>

#include <atomic>

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

  /// Whether Ctrl-C was pressed since the last Clear.
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

/// While it lives, Ctrl-C sets a flag: for work that looks at one between its pieces.
class CancelFlag final : public Cancellable {
 public:
  explicit CancelFlag(Interrupts& interrupts) : interrupts_(interrupts) { interrupts_.SetTarget(this); }
  ~CancelFlag() override { interrupts_.SetTarget(nullptr); }
  void CancelFromSignal() override { cancelled_ = true; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  Interrupts& interrupts_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace nam::cli
