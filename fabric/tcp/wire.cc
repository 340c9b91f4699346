#include "fabric/tcp/wire.h"

#include <cstring>

namespace nam::fabric::tcp {
namespace {

// Enums travel as bytes and are range-checked as bytes, before any value of the type exists.
template <typename T>
T Load(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

uint8_t ByteAt(std::span<const std::byte> bytes, size_t offset) {
  return std::to_integer<uint8_t>(bytes[offset]);
}

}  // namespace

std::optional<RequestHeader> DecodeRequest(std::span<const std::byte, sizeof(RequestHeader)> bytes,
                                           uint32_t sequence) {
  // kReceive is never sent.
  if (ByteAt(bytes, offsetof(RequestHeader, opcode)) >= static_cast<uint8_t>(Opcode::kReceive))
    return std::nullopt;
  const auto header = Load<RequestHeader>(bytes);
  if (header.magic != kRequestMagic || header.zero != 0 || header.zero2 != 0) return std::nullopt;
  if (header.sequence != sequence || header.bytes > BytesMax(header.opcode)) return std::nullopt;
  const bool atomic = header.opcode == Opcode::kCompareAndSwap || header.opcode == Opcode::kFetchAdd;
  if (atomic && header.bytes != sizeof(uint64_t)) return std::nullopt;
  return header;
}

std::optional<ReplyHeader> DecodeReply(std::span<const std::byte, sizeof(ReplyHeader)> bytes,
                                       const RequestHeader& request) {
  const uint8_t opcode = ByteAt(bytes, offsetof(ReplyHeader, opcode));
  const uint8_t status = ByteAt(bytes, offsetof(ReplyHeader, status));
  // A peer can report only what it can know, not local errors.
  if (opcode != static_cast<uint8_t>(request.opcode)) return std::nullopt;
  if (status != static_cast<uint8_t>(CompletionStatus::kOk) &&
      status != static_cast<uint8_t>(CompletionStatus::kRemoteAccessError) &&
      status != static_cast<uint8_t>(CompletionStatus::kRemoteInvalidRequest)) {
    return std::nullopt;
  }
  const auto header = Load<ReplyHeader>(bytes);
  if (header.magic != kReplyMagic || header.sequence != request.sequence) return std::nullopt;
  const bool read = header.opcode == Opcode::kRead && header.status == CompletionStatus::kOk;
  if (read && header.value != request.bytes) return std::nullopt;
  return header;
}

}  // namespace nam::fabric::tcp
