#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "fabric/fabric.h"

namespace nam::ssb {

/// As much of a fabric as the workload needs: threads, events, a clock. Nobody to talk to.
class ThreadFabric final : public fabric::Fabric {
 public:
  fabric::Kind kind() const override { return fabric::Kind::kShm; }
  fabric::Capabilities capabilities() const override { return {}; }
  Clock& clock() override { return RealClock(); }
  absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> Allocate(size_t,
                                                                 const fabric::AllocateOptions&) override {
    return absl::UnimplementedError("threads only");
  }
  absl::StatusOr<std::unique_ptr<fabric::CompletionQueue>> CreateCompletionQueue(uint32_t) override {
    return absl::UnimplementedError("threads only");
  }
  absl::StatusOr<std::unique_ptr<fabric::Listener>> Listen(const fabric::ListenOptions&) override {
    return absl::UnimplementedError("threads only");
  }
  absl::StatusOr<std::unique_ptr<fabric::QueuePair>> Connect(const std::string&, fabric::CompletionQueue&,
                                                             const fabric::QueuePairOptions&,
                                                             Deadline) override {
    return absl::UnimplementedError("threads only");
  }
  std::unique_ptr<fabric::Event> CreateEvent() override { return std::make_unique<Flag>(); }
  std::unique_ptr<fabric::Thread> StartThread(const std::string& name, std::function<void()> body) override {
    if (name.size() > 15) std::abort();
    return std::make_unique<Joined>(std::move(body));
  }

 private:
  class Flag final : public fabric::Event {
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
      const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.ns));
      return changed_.wait_until(lock, until, [&] { return set_; });
    }

   private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
  };
  class Joined final : public fabric::Thread {
   public:
    explicit Joined(std::function<void()> body) : thread_(std::move(body)) {}

   private:
    std::jthread thread_;
  };
};

}  // namespace nam::ssb
