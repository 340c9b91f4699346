#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/threads.h"

namespace nam::fabric {

/// Real threads, events and memory, but no queue pairs: enough for everything but moving data.
class FakeFabric : public Fabric {
 public:
  explicit FakeFabric(Kind kind = Kind::kTcp) : kind_(kind) {}

  /// Regions may be made until their bytes exceed this.
  std::atomic<uint64_t> memory_bytes_max{UINT64_MAX};
  /// As if a peer stalled inside a WRITE on each connection.
  std::atomic<bool> peers_stand_still{false};
  std::function<void()> before_listen;  // if it is set

  Kind kind() const override { return kind_; }
  Capabilities capabilities() const override { return {}; }
  Clock& clock() override { return RealClock(); }

  absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                         const AllocateOptions& options) override {
    if (allocated_bytes_ + bytes > memory_bytes_max)
      return absl::ResourceExhaustedError("no more shared memory");
    allocated_bytes_ += bytes;
    return std::make_unique<Region>(bytes, options.access, next_key_++);
  }
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t) override { return None(); }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) override {
    if (before_listen) before_listen();
    return std::make_unique<PassiveListener>(options.address, peers_stand_still);
  }
  absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string&, CompletionQueue&,
                                                     const QueuePairOptions&, Deadline) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue&, const DatagramOptions&) override {
    return None();
  }
  DatagramDrops datagram_drops() const override { return {}; }
  uint64_t Random() override { return 0x9e3779b97f4a7c15 * next_key_++; }
  std::unique_ptr<Event> CreateEvent() override { return MakeRealEvent(); }
  std::unique_ptr<Thread> StartThread(const std::string& name, std::function<void()> body) override {
    NAM_CHECK(name.size() <= 15, "the longest name of a thread");
    return StartRealThread(name, std::move(body));
  }

 private:
  static absl::Status None() { return absl::UnimplementedError("the fake fabric moves no data"); }

  class Region final : public MemoryRegion {
   public:
    Region(size_t bytes, Access access, uint32_t key) {
      data_ = static_cast<std::byte*>(
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      bytes_ = bytes;
      access_ = access;
      rkey_ = {key};
      lkey_ = {key};
    }
    ~Region() override { ::munmap(data_, bytes_); }
    bool Revoke() override { return true; }
  };

  class PassiveListener final : public Listener {
   public:
    PassiveListener(std::string address, const std::atomic<bool>& in_use)
        : address_(std::move(address)), in_use_(in_use) {}
    std::string address() const override { return address_; }
    absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue&, const QueuePairOptions&,
                                                      Deadline) override {
      return None();
    }
    bool Fence(MemberId, bool) override { return !in_use_; }
    std::vector<MemberId> Members() override { return {}; }

   private:
    const std::string address_;
    const std::atomic<bool>& in_use_;
  };

  const Kind kind_;
  std::atomic<uint32_t> next_key_{1};
  std::atomic<uint64_t> allocated_bytes_{0};
};

/// Waits for others' progress without sleeping: `Advance` by them, `WaitFor` by the test.
class Progress {
 public:
  void Advance() {
    const MutexLock lock(mutex_);
    ++steps_;
    changed_.NotifyAll();
  }
  /// False after two minutes, far beyond what any test needs.
  bool WaitFor(int steps) {
    const MutexLock lock(mutex_);
    const Deadline deadline = RealClock().After(120'000'000);
    while (steps_ < steps && changed_.WaitUntil(mutex_, deadline)) {
    }
    return steps_ >= steps;
  }
  int steps() const {
    const MutexLock lock(mutex_);
    return steps_;
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  int steps_ = 0;
};

}  // namespace nam::fabric
