#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace nam {

/// SIGINT and SIGTERM as something to wait for. Construct it on the main thread before any other thread
/// starts, so that all of them inherit the block; the mask is restored at the end.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable while a signal is pending.
  int fd() const { return fd_.get(); }
  bool Pending() const;
  /// After the first signal, on the thread that saw it: the next one ends the process at once, and so
  /// does the clock when the orderly end takes longer than `seconds`.
  void GiveOrderlyEnd(unsigned seconds);

 private:
  sigset_t stop_set_;
  sigset_t previous_;
  UniqueFd fd_;
};

}  // namespace nam
