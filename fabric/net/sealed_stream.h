#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "fabric/net/handshake_wire.h"
#include "fabric/net/socket.h"

struct evp_cipher_ctx_st;

namespace nam::fabric::net {

/// The keys of one connection, one per direction. All zero: not encrypted.
///
///     HKDF-SHA-256(secret, salt = client's nonce | server's nonce, "nam tcp stream client" or "… server")
///         =  key:16 | initial vector:12
struct StreamKeys {
  using Key = std::array<uint8_t, 28>;
  Key client{};  // for the connecting side's traffic
  Key server{};
  bool encrypt = false;
};
StreamKeys DeriveStreamKeys(const std::string& secret, const ClientHello& hello,
                            const ServerChallenge& challenge);

/// The record cipher of one direction:
///
///     record  bytes:4 | ciphertext:bytes | tag:16      AES-128-GCM; nonce = initial vector XOR record's
///     number;
///                                                      the first four bytes are authenticated, too
///
/// Numbers count from 0 and are not sent, so a changed, missing, repeated or reordered record has a wrong
/// tag. Used by one thread.
class RecordCipher {
 public:
  static constexpr size_t kRecordBytesMax = 64u << 10;  // of plaintext
  static constexpr size_t kHeaderBytes = 4;
  static constexpr size_t kTagBytes = 16;
  static constexpr size_t kOverheadBytes = kHeaderBytes + kTagBytes;

  enum class Direction { kSeal, kOpen };
  RecordCipher(const StreamKeys::Key& key, Direction direction);
  RecordCipher(RecordCipher&&) noexcept = default;

  /// Seals `parts` (at most kRecordBytesMax bytes) as the next record; returns its length. `record` must have
  /// room.
  size_t Seal(std::span<const iovec> parts, std::span<std::byte> record);
  /// The length of the record that begins with `header`, including overhead; 0 if invalid.
  static size_t RecordBytes(std::span<const std::byte, kHeaderBytes> header);
  /// Opens a whole record in place; its plaintext follows the header. False: forged.
  bool Open(std::span<std::byte> record);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::array<uint8_t, 12> NextNonce();

  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  std::array<uint8_t, 12> vector_{};
  uint64_t number_ = 0;
};

/// A connection after its handshake, plain or encrypted in records. One thread owns and uses it, except for
/// fd().
///
/// Plain, Send and Receive are SendSome and ReceiveSome. Encrypted, they keep the same contract: a Receive
/// that returns less than asked has returned everything that has arrived. Bytes that Send did not take must
/// be passed again, at the same place: a record with them may already be in flight.
class Stream {
 public:
  enum class Side { kClient, kServer };
  Stream() = default;
  Stream(UniqueFd fd, const StreamKeys& keys, Side side);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  IoResult Send(std::span<iovec> parts) {
    return sealed_ == nullptr ? SendSome(fd_.get(), parts) : SendSealed(parts);
  }
  IoResult Receive(std::span<iovec> parts) {
    return sealed_ == nullptr ? ReceiveSome(fd_.get(), parts) : ReceiveSealed(parts);
  }
  /// True if the connection was lost because a record was forged.
  bool forged() const { return sealed_ != nullptr && sealed_->forged; }

 private:
  static constexpr size_t kInputBytes = 4 * (RecordCipher::kRecordBytesMax + RecordCipher::kOverheadBytes);

  struct Sealed {
    Sealed(const StreamKeys::Key& out, const StreamKeys::Key& in)
        : seal(out, RecordCipher::Direction::kSeal), open(in, RecordCipher::Direction::kOpen) {}
    RecordCipher seal, open;
    bool forged = false;

    // The record being sent.
    std::array<std::byte, RecordCipher::kRecordBytesMax + RecordCipher::kOverheadBytes> output;
    size_t output_begin = 0, output_end = 0;
    size_t output_plain = 0;  // its plaintext bytes

    // Input: opened bytes, then unopened records.
    std::array<std::byte, kInputBytes> input;
    size_t opened_begin = 0, opened_end = 0;
    size_t input_begin = 0, input_end = 0;
  };

  IoResult SendSealed(std::span<iovec> parts);
  IoResult ReceiveSealed(std::span<iovec> parts);
  /// False: no whole record, or a forged one.
  bool OpenNext();
  IoResult FillInput();

  UniqueFd fd_;
  std::unique_ptr<Sealed> sealed_;
};

}  // namespace nam::fabric::net
