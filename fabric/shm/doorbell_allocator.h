#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

namespace nam::fabric::shm {

/// The doorbells of this process, one per completion queue. Any thread.
class DoorbellAllocator {
 public:
  static absl::StatusOr<std::unique_ptr<DoorbellAllocator>> Create() {
    NAM_ASSIGN_OR_RETURN(SharedMemory memory, CreateShared("nam-doorbells", sizeof(DoorbellPage),
                                                           PeerAccess::kReadWrite, /*huge_pages=*/false));
    return std::unique_ptr<DoorbellAllocator>(new DoorbellAllocator(std::move(memory)));
  }

  /// Nothing if all are taken.
  std::optional<uint32_t> Allocate() {
    const MutexLock lock(mutex_);
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (next_ == kCompletionQueuesMax) return std::nullopt;
    return next_++;
  }
  /// A late ring by a peer merely wakes the next owner once.
  void Return(uint32_t index) {
    const MutexLock lock(mutex_);
    free_.push_back(index);
  }
  Doorbell& at(uint32_t index) const {
    return reinterpret_cast<DoorbellPage*>(memory_.mapping.data())->bells[index];
  }
  const SharedMemory& memory() const { return memory_; }

 private:
  explicit DoorbellAllocator(SharedMemory memory) : memory_(std::move(memory)) {}

  const SharedMemory memory_;
  Mutex mutex_;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::shm
