#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/unique_fd.h"

namespace nam::fabric::tcp {

/// Ends a thread's epoll_wait. Any thread may ring; that makes a system call only if the owner sleeps. The
/// owner arms it, looks for work once more, and only then sleeps.
class Doorbell {
 public:
  Doorbell() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  int fd() const { return event_.get(); }

  void Arm() { armed_.store(true); }
  void Disarm() { armed_.store(false); }
  void Ring() {
    if (!armed_.exchange(false)) return;
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the owner wakes anyway.
    [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof(one));
  }
  void Clear() {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof(count));
  }

 private:
  UniqueFd event_;
  std::atomic<bool> armed_{false};
};

}  // namespace nam::fabric::tcp
