#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam::fabric::shm {

/// Owns a range of mapped addresses.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// A memfd and the owner's writable mapping of all of it, zeroed. Its size is sealed, so a mapping of
/// it never faults.
struct SharedMemory {
  UniqueFd descriptor;
  Mapping mapping;
};

/// What peers can do with a memfd that they were handed, by any means.
enum class PeerAccess { kReadOnly, kReadWrite };

/// `mapping` is rounded up to whole pages. RESOURCE_EXHAUSTED says what is short. Huge pages are tried
/// for 2 MiB and more: reserved ones, then transparent ones, which are present from then on.
absl::StatusOr<SharedMemory> CreateShared(const char* name, size_t bytes, PeerAccess peers, bool huge_pages);

/// Makes every page present, in parallel.
absl::Status Populate(const Mapping& mapping);

/// A descriptor to hand to a peer.
absl::StatusOr<UniqueFd> DescriptorForPeer(int memfd, PeerAccess access);

/// Maps the first `bytes` of a descriptor that a peer handed out, after checking that it cannot shrink.
absl::StatusOr<Mapping> MapFromPeer(int memfd, size_t bytes, PeerAccess access);

}  // namespace nam::fabric::shm
