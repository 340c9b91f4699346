#include "fabric/net/handshake_wire.h"

#include <cstring>

namespace nam::fabric::net {
namespace {

// Enums travel as bytes and are range-checked as bytes, before any value of the type exists.
template <typename T>
T Load(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

uint8_t ByteAt(std::span<const std::byte> bytes, size_t offset) {
  return std::to_integer<uint8_t>(bytes[offset]);
}

}  // namespace

std::optional<ClientHello> DecodeClientHello(std::span<const std::byte, sizeof(ClientHello)> bytes) {
  const uint8_t role = ByteAt(bytes, offsetof(ClientHello, role));
  if (role != static_cast<uint8_t>(Role::kForward) && role != static_cast<uint8_t>(Role::kReverse))
    return std::nullopt;
  const auto hello = Load<ClientHello>(bytes);
  if (hello.magic != kHandshakeMagic || hello.encrypt > 1 || hello.zero != 0) return std::nullopt;
  return hello;
}

std::optional<ServerChallenge> DecodeServerChallenge(
    std::span<const std::byte, sizeof(ServerChallenge)> bytes) {
  const uint8_t status = ByteAt(bytes, offsetof(ServerChallenge, status));
  if (status > static_cast<uint8_t>(kLastHandshakeStatus)) return std::nullopt;
  const auto challenge = Load<ServerChallenge>(bytes);
  if (challenge.magic != kHandshakeMagic || challenge.zero != 0) return std::nullopt;
  return challenge;
}

std::optional<ServerProof> DecodeServerProof(std::span<const std::byte, sizeof(ServerProof)> bytes) {
  const uint8_t status = ByteAt(bytes, offsetof(ServerVerdict, status));
  const uint8_t mode = ByteAt(bytes, offsetof(ServerVerdict, mode));
  if (status > static_cast<uint8_t>(kLastHandshakeStatus)) return std::nullopt;
  if (mode != static_cast<uint8_t>(ListenMode::kPassive) &&
      mode != static_cast<uint8_t>(ListenMode::kPaired)) {
    return std::nullopt;
  }
  return Load<ServerProof>(bytes);
}

}  // namespace nam::fabric::net
