#include "fabric/tcp/datagram_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace nam::fabric::tcp {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr size_t kSendersMax = 1024;

const uint8_t* Bytes(const void* data) {
  return static_cast<const uint8_t*>(data);
}

}  // namespace

void DatagramKey::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

DatagramKey::DatagramKey(const std::string& secret, uint64_t sender, bool encrypt)
    : context_(EVP_CIPHER_CTX_new()) {
  std::string label = encrypt ? "nam tcp datagram encrypted" : "nam tcp datagram";
  label.append(reinterpret_cast<const char*>(&sender), sizeof(sender));
  std::array<uint8_t, 32> derived;
  unsigned derived_bytes = 0;
  NAM_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), Bytes(label.data()),
                 label.size(), derived.data(), &derived_bytes) != nullptr &&
            derived_bytes == derived.size());
  std::memcpy(salt_.data(), derived.data() + kKeyBytes, salt_.size());
  NAM_CHECK(context_ != nullptr &&
            EVP_EncryptInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, derived.data(), nullptr) == 1);
}

std::array<uint8_t, 12> DatagramKey::Nonce(const DatagramHeader& header) const {
  std::array<uint8_t, 12> nonce;
  std::memcpy(nonce.data(), salt_.data(), salt_.size());
  std::memcpy(nonce.data() + salt_.size(), &header.sequence, sizeof(header.sequence));
  return nonce;
}

// Without `into` the payload is only authenticated.
DatagramTag DatagramKey::Run(const DatagramHeader& header, std::span<const std::byte> payload,
                             std::byte* into) {
  const std::array<uint8_t, 12> nonce = Nonce(header);
  DatagramTag tag;
  int ignored = 0;
  EVP_CIPHER_CTX* const context = context_.get();
  bool ok = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
            EVP_EncryptUpdate(context, nullptr, &ignored, Bytes(&header), offsetof(DatagramHeader, tag)) == 1;
  if (!payload.empty()) {
    ok = ok && EVP_EncryptUpdate(context, reinterpret_cast<uint8_t*>(into), &ignored, Bytes(payload.data()),
                                 static_cast<int>(payload.size())) == 1;
  }
  ok = ok && EVP_EncryptFinal_ex(context, tag.data(), &ignored) == 1 &&
       EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()), tag.data()) == 1;
  NAM_CHECK(ok, "AES-GCM failed");
  return tag;
}

bool DatagramKey::Verify(const DatagramHeader& header, std::span<const std::byte> payload) {
  const DatagramTag tag = Sign(header, payload);
  return CRYPTO_memcmp(tag.data(), header.tag.data(), tag.size()) == 0;
}

bool DatagramKey::Open(const DatagramHeader& header, std::span<std::byte> payload) {
  const std::array<uint8_t, 12> nonce = Nonce(header);
  DatagramTag tag = header.tag;
  int ignored = 0;
  EVP_CIPHER_CTX* const context = context_.get();
  auto* const text = reinterpret_cast<uint8_t*>(payload.data());
  bool ok = EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
            EVP_DecryptUpdate(context, nullptr, &ignored, Bytes(&header), offsetof(DatagramHeader, tag)) == 1;
  if (!payload.empty()) {
    ok = ok && EVP_DecryptUpdate(context, text, &ignored, text, static_cast<int>(payload.size())) == 1;
  }
  std::array<uint8_t, 16> rest;
  return ok &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag.size()), tag.data()) == 1 &&
         EVP_DecryptFinal_ex(context, rest.data(), &ignored) == 1;
}

bool DatagramVerifier::Verify(const DatagramHeader& header, std::span<std::byte> payload) {
  if (const auto found = keys_.find(header.sender); found != keys_.end()) {
    return Verify(found->second, header, payload);
  }
  DatagramKey key(secret_, header.sender, encrypt_);
  if (!Verify(key, header, payload)) return false;
  // They are relearned soon.
  if (keys_.size() >= kSendersMax) keys_.clear();
  keys_.emplace(header.sender, std::move(key));
  return true;
}

}  // namespace nam::fabric::tcp
