#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/fabric.h"

namespace nam::fabric {

/// The receives that are posted to a datagram queue pair and that no datagram has filled, oldest first.
/// At most `depth`; the queue pair checks it. Used by one thread.
class ReceiveRing {
 public:
  explicit ReceiveRing(uint32_t depth) : receives_(depth) {}

  bool empty() const { return begin_ == end_; }
  size_t size() const { return end_ - begin_; }
  void Push(std::span<const ReceiveRequest> batch) {
    for (const ReceiveRequest& receive : batch) receives_[end_++ % receives_.size()] = receive;
  }
  /// The oldest is at 0.
  ReceiveRequest& operator[](size_t at) { return receives_[(begin_ + at) % receives_.size()]; }
  void Pop(size_t count = 1) { begin_ += count; }

 private:
  std::vector<ReceiveRequest> receives_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace nam::fabric
