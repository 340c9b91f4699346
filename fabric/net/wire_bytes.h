#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

/// Helpers of decoders of received structs. Enums travel as bytes and are range-checked as bytes (ByteAt),
/// before any value of their type exists (FromBytes).
namespace nam::fabric::net {

inline uint8_t ByteAt(std::span<const std::byte> bytes, size_t offset) {
  return std::to_integer<uint8_t>(bytes[offset]);
}

/// `bytes` has at least a T.
template <typename T>
T FromBytes(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace nam::fabric::net
