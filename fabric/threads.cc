#include "fabric/threads.h"

#include <pthread.h>
#include <sys/random.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/process_limits.h"

namespace nam::fabric {
namespace {

class RealEvent final : public Event {
 public:
  void Set() override {
    // Notifies under the lock: the waiter may destroy the event as soon as it sees the flag.
    const MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }

  bool IsSet() const override {
    const MutexLock lock(mutex_);
    return set_;
  }

  bool Wait(Deadline deadline) override {
    const MutexLock lock(mutex_);
    while (!set_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    return set_;
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

/// An operating system thread that runs bodies, one at a time.
class Worker {
 public:
  Worker() : thread_([this] { Loop(); }) {}
  ~Worker() {
    {
      const MutexLock lock(mutex_);
      leaving_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void Start(std::string name, std::function<void()> body) {
    const MutexLock lock(mutex_);
    name_ = std::move(name);
    body_ = std::move(body);
    done_ = false;
    changed_.NotifyAll();
  }
  /// Waits until the body has returned and its captures are destroyed.
  void Await() {
    const MutexLock lock(mutex_);
    while (!done_) changed_.Wait(mutex_);
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> body;
      std::string name;
      {
        const MutexLock lock(mutex_);
        while (body_ == nullptr && !leaving_) changed_.Wait(mutex_);
        if (body_ == nullptr) return;
        body = std::exchange(body_, nullptr);
        name = std::exchange(name_, {});
      }
      pthread_setname_np(pthread_self(), name.c_str());
      body();
      body = nullptr;
      pthread_setname_np(pthread_self(), "nam-parked");
      const MutexLock lock(mutex_);
      done_ = true;
      changed_.NotifyAll();
    }
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> body_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false, leaving_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // starts after all members above
};

/// Idle workers of the process, for reuse. A short query has a thread on each server, and in its client one
/// thread per server; creating and ending them takes longer than waking them.
class ParkedWorkers {
 public:
  /// A forked process has none of its parent's threads, so it starts with no parked worker.
  static ParkedWorkers& Instance() {
    static ParkedWorkers* workers = nullptr;
    static std::once_flag once;
    std::call_once(once, [] {
      workers = new ParkedWorkers;
      pthread_atfork(nullptr, nullptr, [] { workers = new ParkedWorkers; });
    });
    return *workers;
  }

  std::unique_ptr<Worker> Take() {
    {
      const MutexLock lock(mutex_);
      if (!parked_.empty()) {
        std::unique_ptr<Worker> worker = std::move(parked_.back());
        parked_.pop_back();
        return worker;
      }
    }
    return std::make_unique<Worker>();
  }

  void Give(std::unique_ptr<Worker> worker) {
    const MutexLock lock(mutex_);
    if (parked_.size() < kParkedMax) parked_.push_back(std::move(worker));
  }

 private:
  static constexpr size_t kParkedMax = 16;

  Mutex mutex_;
  std::vector<std::unique_ptr<Worker>> parked_ ABSL_GUARDED_BY(mutex_);
};

class RealThread final : public Thread {
 public:
  RealThread(std::string name, std::function<void()> body) : worker_(ParkedWorkers::Instance().Take()) {
    worker_->Start(std::move(name), std::move(body));
  }
  ~RealThread() override {
    worker_->Await();
    ParkedWorkers::Instance().Give(std::move(worker_));
  }

 private:
  std::unique_ptr<Worker> worker_;
};

}  // namespace

std::unique_ptr<Event> MakeRealEvent() {
  return std::make_unique<RealEvent>();
}

absl::StatusOr<std::unique_ptr<Thread>> TryStartRealThread(const std::string& name,
                                                           std::function<void()> body) {
  try {
    return std::make_unique<RealThread>(name.substr(0, 15), std::move(body));
  } catch (const std::system_error&) {
    return NoThreadsLeft();
  }
}

std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body) {
  absl::StatusOr<std::unique_ptr<Thread>> started = TryStartRealThread(name, std::move(body));
  if (started.ok()) return *std::move(started);
  // The callers are parts of servers without which these are of no use.
  std::fprintf(stderr, "nam: %s\n", std::string(started.status().message()).c_str());
  std::_Exit(EXIT_FAILURE);
}

uint64_t RandomBits() {
  uint64_t bits = 0;
  NAM_CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits), "no randomness");
  return bits;
}

}  // namespace nam::fabric
