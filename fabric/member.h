#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/strong_id.h"

/// How a connection to a memory server says, and proves, which member it belongs to.
///
///     catalog ── proof, 128 random bits ─▶ member          key of memory server S = HMAC(proof, S)
///     catalog ── the member's key of S ──▶ S
///     member  ── id, HMAC(key of S, challenge of this handshake) ─▶ S
///
/// The network sees neither proof nor key. A memory server learns a key that is good for itself alone.
namespace nam::fabric {

using MemberKey = std::array<uint8_t, 32>;
using MemberChallenge = std::array<uint8_t, 32>;
using MemberAnswer = std::array<uint8_t, 32>;

/// The member that a process connects as. Id 0: none, and its connections only READ.
struct MemberProof {
  MemberId id;
  std::string proof;
};

/// The same towards one memory server.
struct MemberCredentials {
  MemberId id;
  MemberKey key{};
};

/// What the connecting side of a handshake has said. `challenge` follows from both sides' nonces, so an
/// answer is good for one handshake.
struct MemberClaim {
  MemberId id;
  MemberChallenge challenge{};
  MemberAnswer answer{};
};

MemberKey DeriveMemberKey(std::string_view proof, MemoryServerId server);
MemberCredentials CredentialsFor(const MemberProof& proof, MemoryServerId server);

MemberAnswer AnswerChallenge(const MemberKey& key, const MemberChallenge& challenge);
/// In constant time.
bool Proves(const MemberClaim& claim, const MemberKey& key);

}  // namespace nam::fabric
