#include "fabric/threads.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace nam::fabric {
namespace {

class RealEvent final : public Event {
 public:
  void Set() override {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool IsSet() const override {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  bool Wait(Deadline deadline) override {
    std::unique_lock lock(mutex_);
    // steady_clock is CLOCK_MONOTONIC, the clock of every Deadline.
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
    return changed_.wait_until(lock, until, [&] { return set_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class RealThread final : public Thread {
 public:
  RealThread(const std::string& name, std::function<void()> body) : thread_(std::move(body)) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }
  ~RealThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Event> CreateRealEvent() {
  return std::make_unique<RealEvent>();
}

std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body) {
  return std::make_unique<RealThread>(name, std::move(body));
}

}  // namespace nam::fabric
