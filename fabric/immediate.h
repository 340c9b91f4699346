#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

namespace nam::fabric {

/// One-sided operations without a work request, a send queue place or a completion. A queue pair offers them
/// where the posting thread itself executes operations (shm). Each takes effect before it returns, after
/// everything posted before; no message may be pending. Local memory need not be registered. A status other
/// than kOk fails the queue pair, like a failed completion.
class ImmediateOperations {
 public:
  /// Like QueuePair::View, but returns nullptr on error.
  virtual const std::byte* ViewNow(RemoteAddress from, size_t bytes) = 0;
  virtual CompletionStatus ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) = 0;
  virtual CompletionStatus WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) = 0;
  /// `old` receives the previous value.
  virtual CompletionStatus CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                             uint64_t* old) = 0;
  virtual CompletionStatus FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) = 0;

 protected:
  ~ImmediateOperations() = default;
};

}  // namespace nam::fabric
