#include "fabric/net/sealed_stream.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fabric/net/authentication.h"

namespace nam::fabric::net {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr size_t kRecordPartsMax = 64;

/// HKDF-Expand (RFC 5869) to one block.
StreamKeys::Key Expand(const Mac& pseudorandom, const std::string& label) {
  const Mac block = Sign(std::string(reinterpret_cast<const char*>(pseudorandom.data()), pseudorandom.size()),
                         label + '\1');
  StreamKeys::Key key;
  static_assert(sizeof(key) <= sizeof(block));
  std::memcpy(key.data(), block.data(), key.size());
  return key;
}

uint8_t* Bytes(std::byte* data) {
  return reinterpret_cast<uint8_t*>(data);
}

}  // namespace

// HKDF-Extract is an HMAC whose key is the salt.
StreamKeys DeriveStreamKeys(const std::string& secret, const ClientHello& hello,
                            const ServerChallenge& challenge) {
  std::string salt(reinterpret_cast<const char*>(hello.nonce.data()), hello.nonce.size());
  salt.append(reinterpret_cast<const char*>(challenge.nonce.data()), challenge.nonce.size());
  const Mac pseudorandom = Sign(salt, secret);
  return {.client = Expand(pseudorandom, "nam tcp stream client"),
          .server = Expand(pseudorandom, "nam tcp stream server"),
          .encrypt = true};
}

void RecordCipher::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

RecordCipher::RecordCipher(const StreamKeys::Key& key, Direction direction) : context_(EVP_CIPHER_CTX_new()) {
  std::memcpy(vector_.data(), key.data() + kKeyBytes, vector_.size());
  const auto begin = direction == Direction::kSeal ? EVP_EncryptInit_ex : EVP_DecryptInit_ex;
  NAM_CHECK(context_ != nullptr &&
            begin(context_.get(), EVP_aes_128_gcm(), nullptr, key.data(), nullptr) == 1);
}

std::array<uint8_t, 12> RecordCipher::NextNonce() {
  std::array<uint8_t, 12> nonce = vector_;
  const uint64_t number = number_++;
  for (size_t i = 0; i < sizeof(number); ++i) nonce[i] ^= static_cast<uint8_t>(number >> (8 * i));
  return nonce;
}

size_t RecordCipher::Seal(std::span<const iovec> parts, std::span<std::byte> record) {
  uint32_t bytes = 0;
  for (const iovec& part : parts) bytes += static_cast<uint32_t>(part.iov_len);
  NAM_CHECK(bytes <= kRecordBytesMax && record.size() >= bytes + kOverheadBytes);
  std::memcpy(record.data(), &bytes, kHeaderBytes);
  const std::array<uint8_t, 12> nonce = NextNonce();
  EVP_CIPHER_CTX* const context = context_.get();
  int written = 0;
  bool ok = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
            EVP_EncryptUpdate(context, nullptr, &written, Bytes(record.data()), kHeaderBytes) == 1;
  uint8_t* at = Bytes(record.data()) + kHeaderBytes;
  for (const iovec& part : parts) {
    ok = ok && EVP_EncryptUpdate(context, at, &written, static_cast<const uint8_t*>(part.iov_base),
                                 static_cast<int>(part.iov_len)) == 1;
    at += part.iov_len;
  }
  ok = ok && EVP_EncryptFinal_ex(context, at, &written) == 1 &&
       EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, at) == 1;
  NAM_CHECK(ok, "AES-GCM failed");
  return bytes + kOverheadBytes;
}

size_t RecordCipher::RecordBytes(std::span<const std::byte, kHeaderBytes> header) {
  uint32_t bytes;
  std::memcpy(&bytes, header.data(), sizeof(bytes));
  return bytes == 0 || bytes > kRecordBytesMax ? 0 : bytes + kOverheadBytes;
}

bool RecordCipher::Open(std::span<std::byte> record) {
  const std::array<uint8_t, 12> nonce = NextNonce();
  EVP_CIPHER_CTX* const context = context_.get();
  uint8_t* const text = Bytes(record.data()) + kHeaderBytes;
  const size_t bytes = record.size() - kOverheadBytes;
  int written = 0;
  return EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
         EVP_DecryptUpdate(context, nullptr, &written, Bytes(record.data()), kHeaderBytes) == 1 &&
         EVP_DecryptUpdate(context, text, &written, text, static_cast<int>(bytes)) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, text + bytes) == 1 &&
         EVP_DecryptFinal_ex(context, text + bytes, &written) == 1;
}

Stream::Stream(UniqueFd fd, const StreamKeys& keys, Side side) : fd_(std::move(fd)) {
  if (!keys.encrypt) return;
  const bool client = side == Side::kClient;
  sealed_ = std::unique_ptr<Sealed>(
      new Sealed(client ? keys.client : keys.server, client ? keys.server : keys.client));
}

IoResult Stream::SendSealed(std::span<iovec> parts) {
  Sealed& sealed = *sealed_;
  IoResult result;
  size_t left = 0;
  for (const iovec& part : parts) left += part.iov_len;
  size_t first = 0;  // index into parts; `done` bytes of it are done
  size_t done = 0;
  while (left > 0) {
    if (sealed.output_plain == 0) {
      // Excess bytes or parts go into the next record.
      std::array<iovec, kRecordPartsMax> record_parts;
      size_t count = 0;
      for (size_t i = first, skipped = done; i < parts.size() && count < kRecordPartsMax; ++i, skipped = 0) {
        const size_t bytes =
            std::min(parts[i].iov_len - skipped, RecordCipher::kRecordBytesMax - sealed.output_plain);
        if (bytes == 0) continue;
        record_parts[count++] = {static_cast<std::byte*>(parts[i].iov_base) + skipped, bytes};
        sealed.output_plain += bytes;
      }
      sealed.output_begin = 0;
      sealed.output_end = sealed.seal.Seal(std::span(record_parts).first(count), sealed.output);
    }
    while (sealed.output_begin < sealed.output_end) {
      iovec record{sealed.output.data() + sealed.output_begin, sealed.output_end - sealed.output_begin};
      const IoResult sent = SendSome(fd_.get(), {&record, 1});
      if (sent.bytes == 0) {
        if (result.bytes == 0) result = sent;
        return result;
      }
      sealed.output_begin += sent.bytes;
    }
    const size_t said = std::exchange(sealed.output_plain, 0);
    NAM_CHECK(said <= left, "what was not taken must be given again");
    result.bytes += said;
    left -= said;
    for (done += said; first < parts.size() && done >= parts[first].iov_len; ++first) {
      done -= parts[first].iov_len;
    }
  }
  return result;
}

bool Stream::OpenNext() {
  Sealed& sealed = *sealed_;
  const size_t available = sealed.input_end - sealed.input_begin;
  if (available < RecordCipher::kHeaderBytes) return false;
  std::byte* const record = sealed.input.data() + sealed.input_begin;
  const size_t bytes =
      RecordCipher::RecordBytes(std::span<const std::byte, RecordCipher::kHeaderBytes>(record, 4));
  if (bytes > 0 && available < bytes) return false;
  if (bytes == 0 || !sealed.open.Open({record, bytes})) {
    sealed.forged = true;
    return false;
  }
  sealed.opened_begin = sealed.input_begin + RecordCipher::kHeaderBytes;
  sealed.opened_end = sealed.input_begin + bytes - RecordCipher::kTagBytes;
  sealed.input_begin += bytes;
  return true;
}

// Call only when all opened bytes have been taken.
IoResult Stream::FillInput() {
  Sealed& sealed = *sealed_;
  const size_t rest = sealed.input_end - sealed.input_begin;
  if (sealed.input_begin > 0)
    std::memmove(sealed.input.data(), sealed.input.data() + sealed.input_begin, rest);
  sealed.input_begin = 0;
  sealed.input_end = rest;
  iovec room{sealed.input.data() + rest, sealed.input.size() - rest};
  const IoResult received = ReceiveSome(fd_.get(), {&room, 1});
  sealed.input_end += received.bytes;
  return received;
}

IoResult Stream::ReceiveSealed(std::span<iovec> parts) {
  Sealed& sealed = *sealed_;
  IoResult result;
  for (const iovec& part : parts) {
    size_t filled = 0;
    while (filled < part.iov_len) {
      if (sealed.opened_begin == sealed.opened_end && !sealed.forged && !OpenNext() && !sealed.forged) {
        const IoResult received = FillInput();
        if (received.bytes > 0) continue;
        if (result.bytes == 0) result = received;
        return result;
      }
      if (sealed.forged) {
        if (result.bytes == 0) result.lost = true;
        return result;
      }
      const size_t copied = std::min(part.iov_len - filled, sealed.opened_end - sealed.opened_begin);
      std::memcpy(static_cast<std::byte*>(part.iov_base) + filled, sealed.input.data() + sealed.opened_begin,
                  copied);
      sealed.opened_begin += copied;
      filled += copied;
      result.bytes += copied;
    }
  }
  return result;
}

}  // namespace nam::fabric::net
