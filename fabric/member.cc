#include "fabric/member.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace nam::fabric {
namespace {

std::array<uint8_t, 32> Sign(std::span<const uint8_t> key, std::string_view text) {
  std::array<uint8_t, 32> mac;
  unsigned bytes = 0;
  NAM_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                 reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(),
                 &bytes) != nullptr &&
            bytes == mac.size());
  return mac;
}

}  // namespace

MemberKey DeriveMemberKey(std::string_view proof, MemoryServerId server) {
  return Sign({reinterpret_cast<const uint8_t*>(proof.data()), proof.size()},
              absl::StrCat("nam member key ", server.value()));
}

MemberCredentials CredentialsFor(const MemberProof& proof, MemoryServerId server) {
  if (proof.id == MemberId()) return {};
  return {proof.id, DeriveMemberKey(proof.proof, server)};
}

MemberAnswer AnswerChallenge(const MemberKey& key, const MemberChallenge& challenge) {
  std::string text = "nam member";
  text.append(reinterpret_cast<const char*>(challenge.data()), challenge.size());
  return Sign(key, text);
}

bool Proves(const MemberClaim& claim, const MemberKey& key) {
  const MemberAnswer right = AnswerChallenge(key, claim.challenge);
  return CRYPTO_memcmp(right.data(), claim.answer.data(), right.size()) == 0;
}

}  // namespace nam::fabric
