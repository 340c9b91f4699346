#include "fabric/net/handshake_wire.h"

#include "fabric/net/wire_bytes.h"

namespace nam::fabric::net {

std::optional<ClientHello> DecodeClientHello(std::span<const std::byte, sizeof(ClientHello)> bytes) {
  const uint8_t role = ByteAt(bytes, offsetof(ClientHello, role));
  if (role != static_cast<uint8_t>(Role::kForward) && role != static_cast<uint8_t>(Role::kReverse))
    return std::nullopt;
  const auto hello = FromBytes<ClientHello>(bytes);
  if (hello.magic != kHandshakeMagic || hello.encrypt > 1 || hello.zero != 0) return std::nullopt;
  return hello;
}

std::optional<ServerChallenge> DecodeServerChallenge(
    std::span<const std::byte, sizeof(ServerChallenge)> bytes) {
  const uint8_t status = ByteAt(bytes, offsetof(ServerChallenge, status));
  if (status > static_cast<uint8_t>(kLastHandshakeStatus)) return std::nullopt;
  const auto challenge = FromBytes<ServerChallenge>(bytes);
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
  return FromBytes<ServerProof>(bytes);
}

}  // namespace nam::fabric::net
