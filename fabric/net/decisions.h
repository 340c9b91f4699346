#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"

namespace nam::fabric::net {

/// Passes an Admission's decisions to the acceptor's thread. May outlive the acceptor. Thread-safe.
class Decisions {
 public:
  struct Decided {
    uint64_t arrival = 0;
    Admission::Decision decision;
  };

  Decisions() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  /// Readable when a decision waits. -1: out of descriptors.
  int fd() const { return event_.get(); }
  void Add(uint64_t arrival, Admission::Decision decision) {
    const MutexLock lock(mutex_);
    decided_.push_back({arrival, std::move(decision)});
    eventfd_write(event_.get(), 1);
  }
  std::vector<Decided> Take() {
    const MutexLock lock(mutex_);
    eventfd_t count;
    eventfd_read(event_.get(), &count);
    return std::exchange(decided_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Decided> decided_ ABSL_GUARDED_BY(mutex_);
  const UniqueFd event_;
};

}  // namespace nam::fabric::net
