#pragma once

#include <compare>
#include <cstdint>

#include "base/check.h"
#include "base/strong_id.h"

namespace nam::storage {

/// An offset in a server's address space takes 48 bits.
inline constexpr uint64_t kAddressSpaceBytes = uint64_t{1} << 48;

/// An address in the cluster's memory: a memory server and an offset in its address space.
///
///     63        48 47                                      0
///     ├ server id ┼ offset in the server's address space ──┤    all zeroes: null
///
/// The first page of every address space is never handed out, and no server has id 0.
template <typename T>
class RemotePtr {
 public:
  constexpr RemotePtr() = default;
  constexpr RemotePtr(MemoryServerId server, uint64_t offset)
      : raw_(uint64_t{server.value()} << 48 | offset) {
    NAM_CHECK(offset < kAddressSpaceBytes, "offset beyond 48 bits");
  }
  /// Converts from and to the 8 stored bytes.
  static constexpr RemotePtr FromRaw(uint64_t raw) {
    RemotePtr p;
    p.raw_ = raw;
    return p;
  }
  constexpr uint64_t raw() const { return raw_; }
  constexpr bool null() const { return raw_ == 0; }
  constexpr MemoryServerId server() const { return MemoryServerId(static_cast<uint16_t>(raw_ >> 48)); }
  constexpr uint64_t offset() const { return raw_ & (kAddressSpaceBytes - 1); }
  constexpr RemotePtr Plus(uint64_t bytes) const { return RemotePtr(server(), offset() + bytes); }
  constexpr auto operator<=>(const RemotePtr&) const = default;

  template <typename U>
  constexpr RemotePtr<U> As() const {
    return RemotePtr<U>::FromRaw(raw_);
  }

 private:
  uint64_t raw_ = 0;
};

static_assert(sizeof(RemotePtr<void>) == 8);

}  // namespace nam::storage
