#include "fabric/threads.h"

#include <pthread.h>
#include <sys/random.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

namespace nam::fabric {
namespace {

class RealEvent final : public Event {
 public:
  void Set() override {
    // Notifies under the lock: the waiter may destroy the event as soon as it sees the flag.
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }

  bool IsSet() const override {
    std::lock_guard lock(mutex_);
    return set_;
  }

  bool Wait(Deadline deadline) override {
    std::unique_lock lock(mutex_);
    const auto is_set = [this] { return set_; };
    if (deadline.ns == Deadline::Never().ns) {
      changed_.wait(lock, is_set);
      return true;
    }
    // steady_clock is CLOCK_MONOTONIC, the clock of deadlines.
    return changed_.wait_until(
        lock,
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.ns < 0 ? 0 : deadline.ns)),
        is_set);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class RealThread final : public Thread {
 public:
  explicit RealThread(std::thread thread) : thread_(std::move(thread)) {}
  ~RealThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Event> MakeRealEvent() {
  return std::make_unique<RealEvent>();
}

std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body) {
  try {
    return std::make_unique<RealThread>(std::thread([name = name.substr(0, 15), body = std::move(body)] {
      pthread_setname_np(pthread_self(), name.c_str());
      body();
    }));
  } catch (const std::system_error&) {
    CheckFailed(__FILE__, __LINE__, "thread started",
                "the system refuses another thread (ulimit -u, pids.max)");
  }
}

uint64_t RandomBits() {
  uint64_t bits = 0;
  NAM_CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits), "no randomness");
  return bits;
}

}  // namespace nam::fabric
