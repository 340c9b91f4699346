#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/member.h"

/// The handshake that begins every connection over TCP sockets: of tcp, and the control channels of verbs.
/// Nothing else is read before it has succeeded. All integers are little-endian.
///
///     A ── ClientHello (magic, version, role, encrypt, token, member, nonce) ▶ B
///     A ◀─ ServerChallenge (magic, version, status, nonce) ─────────────────── B
///     A ── ClientProof (HMAC of the above under the secret; member's answer) ▶ B  checks A, and the member
///     A ◀─ ServerProof (status, mode, token, HMAC of everything above) ─────── B  A checks B
///
/// The member's answer is to the challenge ChallengeMember (authentication.h); zeros without a member. B may
/// delay the last step to check the member.
///
/// The token that B returns on tcp's forward connection names its reverse connection (fabric/tcp/wire.h). The
/// proofs have different labels, so neither can be reflected. Both sides must agree on encryption; if they
/// differ, B says so instead of sending a challenge.
namespace nam::fabric::net {

static_assert(std::endian::native == std::endian::little, "frames are used in place");

inline constexpr uint32_t kHandshakeMagic = 0x544d414e;  // "NAMT"
inline constexpr uint16_t kProtocolVersion = 3;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMacBytes = 32;

using Nonce = std::array<uint8_t, kNonceBytes>;
using Mac = std::array<uint8_t, kMacBytes>;

enum class Role : uint8_t { kForward = 1, kReverse = 2 };
enum class ListenMode : uint8_t { kPassive = 1, kPaired = 2 };
enum class HandshakeStatus : uint8_t {
  kOk = 0,
  kWrongVersion = 1,
  kWrongSecret = 2,
  kBusy = 3,
  kUnknownToken = 4,
  kOtherEncryption = 5,  // one side encrypts, the other does not
  kNoSuchMember = 6,     // no member with this id and this key lives
  kMemberUnknown = 7,    // whether it is alive cannot be determined now
};
inline constexpr HandshakeStatus kLastHandshakeStatus = HandshakeStatus::kMemberUnknown;

struct ClientHello {
  uint32_t magic = kHandshakeMagic;
  uint16_t version = kProtocolVersion;
  Role role = Role::kForward;
  uint8_t encrypt = 0;  // 1: what follows the handshake is encrypted
  uint64_t token = 0;
  uint32_t member = 0;
  uint32_t zero = 0;
  Nonce nonce{};
};
static_assert(sizeof(ClientHello) == 56 && offsetof(ClientHello, nonce) == 24);

struct ServerChallenge {
  uint32_t magic = kHandshakeMagic;
  uint16_t version = kProtocolVersion;
  HandshakeStatus status = HandshakeStatus::kOk;
  uint8_t zero = 0;
  Nonce nonce{};
};
static_assert(sizeof(ServerChallenge) == 40 && offsetof(ServerChallenge, nonce) == 8);

struct ClientProof {
  Mac mac{};
  MemberAnswer member{};
};
static_assert(sizeof(ClientProof) == 64);

struct ServerVerdict {
  HandshakeStatus status = HandshakeStatus::kOk;
  ListenMode mode = ListenMode::kPassive;
  std::array<uint8_t, 6> zero{};
  uint64_t token = 0;
};
static_assert(sizeof(ServerVerdict) == 16 && offsetof(ServerVerdict, token) == 8);

struct ServerProof {
  ServerVerdict verdict;
  Mac mac{};
};
static_assert(sizeof(ServerProof) == 48);

/// The decoders accept arbitrary bytes. Nothing: the bytes are not what the handshake sends next, and the
/// connection must be closed.
std::optional<ClientHello> DecodeClientHello(std::span<const std::byte, sizeof(ClientHello)> bytes);
std::optional<ServerChallenge> DecodeServerChallenge(
    std::span<const std::byte, sizeof(ServerChallenge)> bytes);
std::optional<ServerProof> DecodeServerProof(std::span<const std::byte, sizeof(ServerProof)> bytes);

}  // namespace nam::fabric::net
