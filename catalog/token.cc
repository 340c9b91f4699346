#include "catalog/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace nam::catalog {

std::string ControlToken(const std::string& secret) {
  static constexpr char kPurpose[] = "nam control plane 1";
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int hash_bytes = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(kPurpose), sizeof(kPurpose) - 1, hash, &hash_bytes);
  NAM_CHECK(done != nullptr && hash_bytes == 32, "HMAC-SHA256");
  static constexpr char kHex[] = "0123456789abcdef";
  std::string token;
  for (unsigned int i = 0; i < hash_bytes; ++i) {
    token.push_back(kHex[hash[i] >> 4]);
    token.push_back(kHex[hash[i] & 15]);
  }
  return token;
}

std::string MakeMemberProof() {
  std::string proof(16, '\0');
  NAM_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(proof.data()), static_cast<int>(proof.size())) == 1,
            "no randomness");
  return proof;
}

bool SameToken(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nam::catalog
