#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/fabric.h"

/// The protocol between two tcp fabrics. All integers are little-endian.
///
/// A queue pair is two TCP connections, one per direction of requests, so that a socket carries only
/// requests one way and only replies, in the order of the requests, the other way:
///
///     A (Connect)                                     B (Listen, Accept)
///     forward   thread of A's queue pair ──requests──▶ NIC thread of B
///                                        ◀──replies──
///     reverse   NIC thread of A          ◀──requests── thread of B's queue pair
///                                        ──replies──▶
///
/// A passive listener never posts, so the reverse connection does not exist there.
///
/// Every connection begins with the handshake of fabric/net/handshake_wire.h; nothing else is read before it
/// has succeeded. The token that B returns on the forward connection names its reverse connection.
///
/// Without encryption, traffic is authenticated at the start only, then neither encrypted nor signed: the
/// network between the hosts must be trusted not to alter it. With encryption, everything after the handshake
/// travels in records (fabric/net/sealed_stream.h) under keys of this connection and direction, derived from
/// the secret and both nonces: an attacker who learns the secret can read recorded traffic. The end of a TCP
/// connection is not signed: an attacker who can forge packets can end connections, and make one end believe
/// that the other has closed.
///
/// Requests follow, each with its payload, and replies, each with its payload:
///
///     request  magic:2 opcode:1 zero:1 sequence:4 rkey:4 bytes:4 immediate:4 zero:4 offset:8 compare:8
///     swap_or_add:8
///              + bytes of payload for WRITE, WRITE_WITH_IMMEDIATE, SEND
///     reply    magic:2 opcode:1 status:1 sequence:4 value:8
///              + value bytes of payload for a READ that succeeded; value is the old word of an atomic
///
/// After an error reply, B executes and sends nothing more on that connection.
namespace nam::fabric::tcp {

static_assert(std::endian::native == std::endian::little, "headers are used in place");

inline constexpr uint16_t kRequestMagic = 0x5152;  // "RQ"
inline constexpr uint16_t kReplyMagic = 0x5052;    // "RP"

struct RequestHeader {
  uint16_t magic = kRequestMagic;
  Opcode opcode = Opcode::kRead;
  uint8_t zero = 0;
  uint32_t sequence = 0;  // per connection, from 0, wraps around
  uint32_t rkey = 0;
  uint32_t bytes = 0;
  uint32_t immediate = 0;
  uint32_t zero2 = 0;
  uint64_t offset = 0;
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;
};
static_assert(sizeof(RequestHeader) == 48 && offsetof(RequestHeader, offset) == 24 &&
              offsetof(RequestHeader, swap_or_add) == 40);

struct ReplyHeader {
  uint16_t magic = kReplyMagic;
  Opcode opcode = Opcode::kRead;
  CompletionStatus status = CompletionStatus::kOk;
  uint32_t sequence = 0;
  uint64_t value = 0;
};
static_assert(sizeof(ReplyHeader) == 16 && offsetof(ReplyHeader, value) == 8);

constexpr bool CarriesPayload(Opcode opcode) {
  return opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImmediate || opcode == Opcode::kSend;
}

/// The longest payload of a request or reply in this protocol.
constexpr uint32_t BytesMax(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
    case Opcode::kWrite:
    case Opcode::kWriteWithImmediate:
      return kMaxMessageBytes;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAdd:
      return sizeof(uint64_t);
    case Opcode::kSend:
      return kMaxSendBytes;
    case Opcode::kReceive:
      return 0;
  }
  return 0;
}

/// The decoders accept arbitrary bytes. Nothing: the bytes are not what the protocol sends next (`sequence`
/// is expected), and the connection must be closed.
std::optional<RequestHeader> DecodeRequest(std::span<const std::byte, sizeof(RequestHeader)> bytes,
                                           uint32_t sequence);
/// `request` is the request that the reply must answer.
std::optional<ReplyHeader> DecodeReply(std::span<const std::byte, sizeof(ReplyHeader)> bytes,
                                       const RequestHeader& request);

}  // namespace nam::fabric::tcp
