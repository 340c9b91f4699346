#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "base/mutex.h"

/// Bounds of memory:
///
///     ServerMemory ── MemoryGrant ── MemoryBudget of build sides ── operators
///      of a server     an attempt's └ MemoryBudget of the result ── operators
///
/// A budget is a query's own bound; the grant is its attempt's share of the server's memory.
namespace nam::execution {

/// The bytes that all queries together may hold on one server. Thread-safe.
class ServerMemory {
 public:
  explicit ServerMemory(uint64_t bytes) : bytes_(bytes) {}
  ServerMemory(const ServerMemory&) = delete;
  ServerMemory& operator=(const ServerMemory&) = delete;

  /// False, and nothing is reserved, if less is left. Never waits.
  [[nodiscard]] bool Reserve(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void Release(uint64_t bytes) {
    NAM_CHECK(used_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes,
              "more is given back than was taken");
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  std::atomic<uint64_t> used_ = 0;
};

/// One attempt's share of a server's memory, for all of its budgets: an initial amount, and more on demand,
/// if the server has more at that moment. All of it is released when the attempt ends, and none before. So a
/// query that waits for memory waits for other attempts to end. Thread-safe; the memory outlives it.
class MemoryGrant {
 public:
  /// `granted` bytes have been taken for it.
  MemoryGrant(ServerMemory& memory, uint64_t granted) : memory_(memory), granted_(granted) {}
  MemoryGrant(const MemoryGrant&) = delete;
  MemoryGrant& operator=(const MemoryGrant&) = delete;
  ~MemoryGrant() {
    NAM_CHECK(used_.load() == 0, "budgets end before what they are granted");
    memory_.Release(granted_);
  }

  /// False, and nothing is reserved: other attempts have the server's memory.
  [[nodiscard]] bool Reserve(uint64_t bytes) {
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
  void Release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Whether the server ever refused what a budget allowed.
  bool refused() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return granted_.load(std::memory_order_relaxed); }
  /// The most that it can ever have.
  uint64_t bytes_most() const { return memory_.bytes(); }

 private:
  static constexpr uint64_t kStepBytes = uint64_t{1} << 20;

  /// Takes until `bytes` more than `used` are granted.
  bool Grow(uint64_t used, uint64_t bytes) {
    const MutexLock lock(mutex_);
    const uint64_t granted = granted_.load(std::memory_order_relaxed);
    if (used <= granted && bytes <= granted - used) return true;  // another thread has done it
    if (bytes > memory_.bytes()) return Refuse();
    const uint64_t needed = used + bytes - granted;
    uint64_t more = std::max(needed, kStepBytes);
    if (!memory_.Reserve(more)) {
      more = needed;
      if (!memory_.Reserve(more)) return Refuse();
    }
    granted_.store(granted + more, std::memory_order_release);
    return true;
  }
  bool Refuse() {
    refused_ = true;
    return false;
  }

  ServerMemory& memory_;
  Mutex mutex_;  // guards growth
  std::atomic<uint64_t> granted_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<bool> refused_ = false;
};

/// The bytes that one query may hold on one server; shared by its threads and operators. Taken before memory
/// is allocated and given back after it is freed, so that the sum is never above the bound.
class MemoryBudget {
 public:
  /// Takes from the grant, which outlives it; null: from the process, without a bound of its own.
  explicit MemoryBudget(uint64_t bytes, MemoryGrant* grant = nullptr)
      : bytes_(grant == nullptr ? bytes : std::min(bytes, grant->bytes_most())), grant_(grant) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  ~MemoryBudget() { NAM_CHECK(used_.load() == 0, "all memory is given back before the query ends"); }

  /// False, and nothing is reserved, if the query would hold more than it may.
  [[nodiscard]] bool Reserve(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (grant_ != nullptr && !grant_->Reserve(bytes)) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    uint64_t most = most_.load(std::memory_order_relaxed);
    while (used + bytes > most &&
           !most_.compare_exchange_weak(most, used + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void Release(uint64_t bytes) {
    NAM_CHECK(used_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes,
              "more is given back than was taken");
    if (grant_ != nullptr) grant_->Release(bytes);
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// The peak of memory held.
  uint64_t most() const { return most_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  MemoryGrant* const grant_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> most_ = 0;
};

/// Bytes of a budget, as long as this lives. The budget outlives it.
class HeldBytes {
 public:
  /// Null if the budget has fewer left.
  static std::shared_ptr<const HeldBytes> Take(MemoryBudget& budget, uint64_t bytes) {
    if (!budget.Reserve(bytes)) return nullptr;
    return std::make_shared<const HeldBytes>(budget, bytes);
  }
  /// The bytes have been reserved.
  HeldBytes(MemoryBudget& budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  ~HeldBytes() { budget_.Release(bytes_); }

 private:
  MemoryBudget& budget_;
  const uint64_t bytes_;
};

}  // namespace nam::execution
