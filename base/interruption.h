#pragma once

#include <atomic>

namespace nam {

/// Ends a thread's waits for other processes early: the Cancel of the statement that it executes. Waits deep
/// below the statement check it a few times per second.
class Interruption {
 public:
  /// While it lives, this thread's waits end with CANCELLED soon after `flag` is set. Null: waits are not
  /// interrupted, as when giving back or committing. Scopes nest.
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
