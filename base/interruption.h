#pragma once

#include <atomic>

namespace nam {

/// What ends a thread's waits for other processes before their time: the Cancel of the statement that it
/// executes. Waits deep below the statement look at it, a few times a second.
class Interruption {
 public:
  /// While it lives, this thread's waits end soon after `flag` is set, with CANCELLED. Null: none do, as
  /// where something is given back or committed. Scopes nest.
  explicit Interruption(const std::atomic<bool>* flag);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The flag of the thread's innermost scope, for threads that work for it; null: none.
  static const std::atomic<bool>* flag();
  static bool requested() { return flag() != nullptr && flag()->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* const outer_;
};

}  // namespace nam
