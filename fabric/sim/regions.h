#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "fabric/fabric.h"

namespace nam::fabric::sim {

/// The registered regions of one process. A key is index:18 | drawn:12: counting does not guess it, and no
/// key is reused.
class Regions {
 public:
  struct View {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Access access = Access::kNone;
    std::shared_ptr<const void> memory;  // keeps it mapped
    uint64_t begin = 0;                  // of the data, from AllocateAddresses
  };

  /// RESOURCE_EXHAUSTED when the process has used up its keys.
  absl::StatusOr<uint32_t> Register(const View& view, RandomStream& random);
  void Remove(uint32_t key) { views_.erase(key); }
  /// Reserves a range of numbers for `bytes`. Unlike addresses, they are the same in every run.
  uint64_t AllocateAddresses(size_t bytes) {
    return std::exchange(addresses_, addresses_ + (bytes + 7) / 8 * 8);
  }
  /// The number of the byte at a resolved address.
  uint64_t NumberOf(RemoteAddress address) const {
    return views_.at(address.rkey.value).begin + address.offset;
  }
  /// Keeps resolved memory mapped after its region is gone.
  std::shared_ptr<const void> MemoryOf(RemoteKey key) const { return views_.at(key.value).memory; }

  /// Resolves a peer's address within a region: kOk, or the completion status.
  CompletionStatus Resolve(RemoteAddress address, uint32_t bytes, Access wanted, std::byte*& at) const;
  bool Contains(const LocalBuffer& buffer) const;

 private:
  std::unordered_map<uint32_t, View> views_;  // never iterated
  uint32_t made_ = 0;
  uint64_t addresses_ = 0;
};

}  // namespace nam::fabric::sim
