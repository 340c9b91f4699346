#include "fabric/net/authentication.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <string_view>

#include "base/check.h"

namespace nam::fabric::net {
namespace {

template <typename T>
void Append(std::string& transcript, const T& frame) {
  transcript.append(reinterpret_cast<const char*>(&frame), sizeof(frame));
}

}  // namespace

Mac Sign(const std::string& secret, const std::string& text) {
  Mac mac;
  unsigned bytes = 0;
  NAM_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                 reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &bytes) &&
            bytes == mac.size());
  return mac;
}

void FillRandom(std::span<uint8_t> bytes) {
  NAM_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "no randomness");
}

Mac ProveClient(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge) {
  std::string transcript = "nam tcp client";
  Append(transcript, hello);
  Append(transcript, challenge);
  return Sign(secret, transcript);
}

Mac ProveServer(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge,
                const ServerVerdict& verdict) {
  std::string transcript = "nam tcp server";
  Append(transcript, hello);
  Append(transcript, challenge);
  Append(transcript, verdict);
  return Sign(secret, transcript);
}

MemberChallenge ChallengeMember(const std::string& secret, const ClientHello& hello,
                                const ServerChallenge& challenge) {
  std::string transcript = "nam tcp member";
  Append(transcript, hello);
  Append(transcript, challenge);
  return Sign(secret, transcript);
}

bool SameMac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nam::fabric::net
