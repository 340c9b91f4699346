#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

namespace nam::fabric {

/// What a queue pair is besides where the thread that posts executes, too (shm): one-sided operations without
/// a work request, a place in the send queue, or a completion. Each has taken effect when it returns, behind
/// all that was posted before; of that no message may be waiting. Local memory need not be registered.
/// Whatever is not kOk has failed the queue pair, as such a completion does.
class ImmediateOperations {
 public:
  /// As QueuePair::View; nullptr instead of an error.
  virtual const std::byte* ViewNow(RemoteAddress from, size_t bytes) = 0;
  virtual CompletionStatus ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) = 0;
  virtual CompletionStatus WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) = 0;
  /// `old`: the word that was there.
  virtual CompletionStatus CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                             uint64_t* old) = 0;
  virtual CompletionStatus FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) = 0;

 protected:
  ~ImmediateOperations() = default;
};

}  // namespace nam::fabric
