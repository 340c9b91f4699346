#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/check.h"

/// Who may hold how much:
///
///     ServerMemory ── MemoryGrant ── MemoryBudget of build sides ── operators
///      of a server     an attempt's └ MemoryBudget of the result ── operators
///
/// A budget is what a query wants to be held to; the grant is what its attempt has of what all share.
namespace nam::execution {

/// The bytes that all queries together may hold on one server. Thread-safe.
class ServerMemory {
 public:
  explicit ServerMemory(uint64_t bytes) : bytes_(bytes) {}
  ServerMemory(const ServerMemory&) = delete;
  ServerMemory& operator=(const ServerMemory&) = delete;

  /// False, and nothing is taken, if there is not so much. Nobody waits here.
  [[nodiscard]] bool Take(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void Give(uint64_t bytes) {
    NAM_CHECK(used_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes,
              "more is given back than was taken");
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  std::atomic<uint64_t> used_ = 0;
};

/// What one attempt has of a server's memory, for all of its budgets: so much from its beginning on, and more
/// when it takes more, if there is more at that moment. All of it goes back when the attempt ends, and not
/// before, so that whoever waits for memory waits for ends. Thread-safe; the memory outlives it.
class MemoryGrant {
 public:
  /// `granted` bytes have been taken for it.
  MemoryGrant(ServerMemory& memory, uint64_t granted) : memory_(memory), granted_(granted) {}
  MemoryGrant(const MemoryGrant&) = delete;
  MemoryGrant& operator=(const MemoryGrant&) = delete;
  ~MemoryGrant() {
    NAM_CHECK(used_.load() == 0, "budgets end before what they are granted");
    memory_.Give(granted_);
  }

  /// False, and nothing is taken: others have the server's memory.
  [[nodiscard]] bool Take(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    while (true) {
      const uint64_t granted = granted_.load(std::memory_order_acquire);
      if (used > granted || bytes > granted - used) {
        if (!Grow(used, bytes)) return false;
        used = used_.load(std::memory_order_relaxed);
      } else if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) {
        return true;
      }
    }
  }
  void Give(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Whether it was ever refused what a budget allowed.
  bool refused() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return granted_.load(std::memory_order_relaxed); }
  /// The most that it can ever have.
  uint64_t bytes_most() const { return memory_.bytes(); }

 private:
  static constexpr uint64_t kStepBytes = uint64_t{1} << 20;

  /// Until `bytes` more than `used` are granted.
  bool Grow(uint64_t used, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const uint64_t granted = granted_.load(std::memory_order_relaxed);
    if (used <= granted && bytes <= granted - used) return true;  // somebody has seen to it
    if (bytes > memory_.bytes()) return Refuse();
    const uint64_t needed = used + bytes - granted;
    uint64_t more = std::max(needed, kStepBytes);
    if (!memory_.Take(more)) {
      more = needed;
      if (!memory_.Take(more)) return Refuse();
    }
    granted_.store(granted + more, std::memory_order_release);
    return true;
  }
  bool Refuse() {
    refused_ = true;
    return false;
  }

  ServerMemory& memory_;
  std::mutex mutex_;  // guards growth
  std::atomic<uint64_t> granted_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<bool> refused_ = false;
};

/// The bytes that one query may hold on one server; shared by its threads and operators. Taken before memory
/// is allocated and given back after it is freed, so that the sum is never above the bound.
class MemoryBudget {
 public:
  /// Out of the grant, which outlives it; null: whatever the process can have.
  explicit MemoryBudget(uint64_t bytes, MemoryGrant* grant = nullptr)
      : bytes_(grant == nullptr ? bytes : std::min(bytes, grant->bytes_most())), grant_(grant) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  ~MemoryBudget() { NAM_CHECK(used_.load() == 0, "who took memory gives it back before the query ends"); }

  /// False, and nothing is taken, if the query then held more than it may.
  [[nodiscard]] bool Take(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (grant_ != nullptr && !grant_->Take(bytes)) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    uint64_t most = most_.load(std::memory_order_relaxed);
    while (used + bytes > most &&
           !most_.compare_exchange_weak(most, used + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void Give(uint64_t bytes) {
    NAM_CHECK(used_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes,
              "more is given back than was taken");
    if (grant_ != nullptr) grant_->Give(bytes);
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// The most that was held at one time.
  uint64_t most() const { return most_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  MemoryGrant* const grant_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> most_ = 0;
};

}  // namespace nam::execution
