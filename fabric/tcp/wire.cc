#include "fabric/tcp/wire.h"

#include "fabric/net/wire_bytes.h"

namespace nam::fabric::tcp {

std::optional<RequestHeader> DecodeRequest(std::span<const std::byte, sizeof(RequestHeader)> bytes,
                                           uint32_t sequence) {
  // kReceive is never sent.
  if (net::ByteAt(bytes, offsetof(RequestHeader, opcode)) >= static_cast<uint8_t>(Opcode::kReceive))
    return std::nullopt;
  const auto header = net::FromBytes<RequestHeader>(bytes);
  if (header.magic != kRequestMagic || header.zero != 0 || header.zero2 != 0) return std::nullopt;
  if (header.sequence != sequence || header.bytes > BytesMax(header.opcode)) return std::nullopt;
  const bool atomic = header.opcode == Opcode::kCompareAndSwap || header.opcode == Opcode::kFetchAdd;
  if (atomic && header.bytes != sizeof(uint64_t)) return std::nullopt;
  return header;
}

std::optional<ReplyHeader> DecodeReply(std::span<const std::byte, sizeof(ReplyHeader)> bytes,
                                       const RequestHeader& request) {
  const uint8_t opcode = net::ByteAt(bytes, offsetof(ReplyHeader, opcode));
  const uint8_t status = net::ByteAt(bytes, offsetof(ReplyHeader, status));
  // A peer can report only what it can know, not local errors.
  if (opcode != static_cast<uint8_t>(request.opcode)) return std::nullopt;
  if (status != static_cast<uint8_t>(CompletionStatus::kOk) &&
      status != static_cast<uint8_t>(CompletionStatus::kRemoteAccessError) &&
      status != static_cast<uint8_t>(CompletionStatus::kRemoteInvalidRequest)) {
    return std::nullopt;
  }
  const auto header = net::FromBytes<ReplyHeader>(bytes);
  if (header.magic != kReplyMagic || header.sequence != request.sequence) return std::nullopt;
  const bool read = header.opcode == Opcode::kRead && header.status == CompletionStatus::kOk;
  if (read && header.value != request.bytes) return std::nullopt;
  return header;
}

}  // namespace nam::fabric::tcp
