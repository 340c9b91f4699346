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

/// A memfd and the owner's writable mapping of all of it, zeroed. Its size is sealed, so accesses through a
/// mapping never fault.
struct SharedMemory {
  UniqueFd descriptor;
  Mapping mapping;
};

/// The access that peers get to the memfd.
enum class PeerAccess { kReadOnly, kReadWrite };

/// Rounds `mapping` up to whole pages. RESOURCE_EXHAUSTED says what is short. From 2 MiB on it tries huge
/// pages: reserved ones, then transparent ones, which are faulted in at once.
absl::StatusOr<SharedMemory> CreateShared(const char* name, size_t bytes, PeerAccess peers, bool huge_pages);

/// Faults in every page, in parallel.
absl::Status Populate(const Mapping& mapping);

/// A descriptor for a peer.
absl::StatusOr<UniqueFd> DescriptorForPeer(int memfd, PeerAccess access);

/// Maps the first `bytes` of a peer's descriptor, after checking that it cannot shrink.
absl::StatusOr<Mapping> MapFromPeer(int memfd, size_t bytes, PeerAccess access);

}  // namespace nam::fabric::shm
