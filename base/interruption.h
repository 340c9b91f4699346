#pragma once

#include <atomic>

namespace nam {

/// Ends a thread's waits for other processes when the statement that the thread executes is cancelled. Waits
/// deep below the statement check the flag a few times per second.
class Interruption {
 public:
  /// While this object lives, the thread's waits end with CANCELLED soon after `flag` is set. Null: nothing
  /// interrupts waits, such as those of a commit or of giving memory back. Scopes nest.
  explicit Interruption(const std::atomic<bool>* flag);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The flag of the thread's innermost scope, to hand to threads that work for it; null if none.
  static const std::atomic<bool>* flag();
  static bool requested() { return flag() != nullptr && flag()->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* const outer_;
};

}  // namespace nam
