#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace nam::fabric::net {

/// Connections that wait for Accept, each until its deadline. Thread-safe.
template <typename Connection>
class WaitingRoom {
 public:
  /// No more than this many connections may wait.
  static constexpr size_t kMax = 128;

  size_t size() const {
    const MutexLock lock(mutex_);
    return waiting_.size();
  }
  /// Deadlines never get earlier from one connection to the next.
  void Add(Connection connection, int64_t deadline_ns) {
    const MutexLock lock(mutex_);
    waiting_.push_back({std::move(connection), deadline_ns});
    arrived_.NotifyOne();
  }
  /// Closes connections that have waited too long; returns when the next one will have.
  int64_t Expire(int64_t now_ns) {
    const MutexLock lock(mutex_);
    while (!waiting_.empty() && waiting_.front().deadline_ns <= now_ns) waiting_.pop_front();
    return waiting_.empty() ? INT64_MAX : waiting_.front().deadline_ns;
  }
  /// The connection that has waited longest; nothing on timeout.
  std::optional<Connection> Take(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (waiting_.empty() && arrived_.WaitUntil(mutex_, deadline)) {
    }
    if (waiting_.empty()) return std::nullopt;
    std::optional<Connection> next(std::move(waiting_.front().connection));
    waiting_.pop_front();
    return next;
  }

 private:
  struct Entry {
    Connection connection;
    int64_t deadline_ns = 0;
  };
  mutable Mutex mutex_;
  ConditionVariable arrived_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::net
