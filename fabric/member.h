#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/strong_id.h"

/// How a connection to a memory server names its member and proves it.
///
///     catalog ── proof, 128 random bits ─▶ member          key of memory server S = HMAC(proof, S)
///     catalog ── the member's key of S ──▶ S
///     member  ── id, HMAC(key of S, challenge of this handshake) ─▶ S
///
/// Neither proof nor key crosses the network. A memory server learns only the key for itself.
namespace nam::fabric {

using MemberKey = std::array<uint8_t, 32>;
using MemberChallenge = std::array<uint8_t, 32>;
using MemberAnswer = std::array<uint8_t, 32>;

/// The member that a process connects as. Id 0: no member; its connections only READ.
struct MemberProof {
  MemberId id;
  std::string proof;
};

/// A member's credentials for one memory server.
struct MemberCredentials {
  MemberId id;
  MemberKey key{};
};

/// The connecting side's claim in a handshake. `challenge` depends on both sides' nonces, so an answer is
/// valid for one handshake only.
struct MemberClaim {
  MemberId id;
  MemberChallenge challenge{};
  MemberAnswer answer{};
};

MemberKey DeriveMemberKey(std::string_view proof, MemoryServerId server);
MemberCredentials CredentialsFor(const MemberProof& proof, MemoryServerId server);

MemberAnswer AnswerChallenge(const MemberKey& key, const MemberChallenge& challenge);
/// Compares in constant time.
bool Proves(const MemberClaim& claim, const MemberKey& key);

}  // namespace nam::fabric
