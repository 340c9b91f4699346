#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace nam {

/// Makes SIGINT and SIGTERM waitable. Construct it on the main thread before any other thread starts, so that
/// all inherit the blocked signals; the destructor restores the mask.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable while a signal is pending.
  int fd() const { return fd_.get(); }
  bool Pending() const;
  /// Call after the first signal, on the thread that saw it. The next signal ends the process at once; so
  /// does the clock if the orderly end takes longer than `seconds`.
  void GiveOrderlyEnd(unsigned seconds);

 private:
  sigset_t stop_set_;
  sigset_t previous_;
  UniqueFd fd_;
};

}  // namespace nam
