#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"

namespace nam {

/// A std::mutex that clang's -Wthread-safety knows, which `./run lint` asks. A member says what guards it by
/// ABSL_GUARDED_BY(mutex_), and a function what its caller holds by ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_).
///
/// For short sections. Never held over a wait of the fabric: `sim` runs one thread at a time, so the thread
/// that waits for the mutex would keep the holder from running.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

/// Holds a mutex for the scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.Lock(); }
  /// Takes over a mutex that the caller has locked, say by TryLock.
  MutexLock(Mutex& mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) : mutex_(mutex) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Wakes threads that wait below the fabric. Waits may end without a notification, so they stand in a loop:
///
///     const MutexLock lock(mutex_);
///     while (!done_) changed_.Wait(mutex_);
class ConditionVariable {
 public:
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

  /// Releases the mutex while it waits.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  /// As Wait. False if the deadline, one of RealClock(), has passed: look at what you wait for once more.
  bool WaitUntil(Mutex& mutex, Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (deadline.ns == Deadline::Never().ns) {
      Wait(mutex);
      return true;
    }
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    // steady_clock is CLOCK_MONOTONIC, and takes no time before the host's start.
    const std::chrono::nanoseconds since_boot(deadline.ns < 0 ? 0 : deadline.ns);
    const bool in_time = changed_.wait_until(lock, std::chrono::steady_clock::time_point(since_boot)) ==
                         std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace nam
