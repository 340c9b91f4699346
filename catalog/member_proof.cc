#include "catalog/member_proof.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace nam::catalog {

std::string MakeMemberProof() {
  std::string proof(16, '\0');
  NAM_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(proof.data()), static_cast<int>(proof.size())) == 1,
            "no randomness");
  return proof;
}

bool SameProof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nam::catalog
