#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace nam::fabric::net {

/// Connections that wait for Accept. Thread-safe.
template <typename Connection>
class WaitingRoom {
 public:
  /// No more than this many connections may wait.
  static constexpr size_t kMax = 128;

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  void Add(Connection connection) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(connection));
    arrived_.notify_one();
  }
  /// The connection that has waited longest; nothing on timeout.
  std::optional<Connection> Take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
    if (!arrived_.wait_until(lock, until, [&] { return !waiting_.empty(); })) return std::nullopt;
    std::optional<Connection> next(std::move(waiting_.front()));
    waiting_.pop_front();
    return next;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Connection> waiting_;
};

}  // namespace nam::fabric::net
