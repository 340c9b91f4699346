#include "fabric/shm/message_ring.h"

#include <algorithm>
#include <cstring>

#include "fabric/shm/doorbell.h"

namespace nam::fabric::shm {
namespace {

uint64_t RecordBytes(uint32_t payload_bytes) {
  constexpr uint64_t kUnit = sizeof(MessageHeader);
  return kUnit + (payload_bytes + kUnit - 1) / kUnit * kUnit;
}

uint32_t PayloadBytes(const MessageHeader& header) {
  return header.kind == MessageKind::kSend ? header.bytes : 0;
}

void RingOwner(const ChannelSide& side, const PeerProcess& peer) {
  // 0 until the other side has a queue pair, which first looks at the ring by itself.
  if (Doorbell* bell = peer.doorbell(side.bell.load(std::memory_order_acquire))) Ring(*bell);
}

}  // namespace

bool Outbox::HasRoom(uint32_t payload_bytes) const {
  const uint64_t used = written_bytes_ - theirs_.taken_bytes.load(std::memory_order_acquire);
  return used <= kRingBytes && RecordBytes(payload_bytes) <= kRingBytes - used;
}

uint64_t Outbox::Place(const MessageHeader& header, const std::byte* payload) {
  std::byte* ring = mine_.ring.data();
  std::memcpy(ring + written_bytes_ % kRingBytes, &header, sizeof(header));
  const uint32_t bytes = PayloadBytes(header);
  const uint64_t at = (written_bytes_ + sizeof(header)) % kRingBytes;
  const size_t first = std::min<size_t>(bytes, kRingBytes - at);
  if (first > 0) std::memcpy(ring + at, payload, first);
  if (bytes > first) std::memcpy(ring, payload + first, bytes - first);
  written_bytes_ += RecordBytes(bytes);
  mine_.written_bytes.store(written_bytes_, std::memory_order_release);
  // The peer reads the doorbell first and the ring then: it sees every message whose ring it saw.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  RingOwner(theirs_, peer_);
  return messages_++;
}

Outbox::Fate Outbox::Check(uint64_t message, const MessageHeader& header) const {
  if (message >= theirs_.receives.load(std::memory_order_acquire)) return Fate::kWaiting;
  if (header.kind == MessageKind::kImmediate) return Fate::kReceived;
  const uint32_t capacity = theirs_.receive_bytes[message % kReceiveDepthMax].load(std::memory_order_acquire);
  // The entry is reused only after its message was taken, and a message that is too long never is.
  if (theirs_.taken_messages.load(std::memory_order_acquire) > message) return Fate::kReceived;
  return header.bytes <= capacity ? Fate::kReceived : Fate::kTooLong;
}

void Outbox::SetStarved(bool starved) {
  mine_.starved.store(starved ? 1 : 0, std::memory_order_relaxed);
  // Pairs with the fences before RingIfStarved: either the peer sees the flag, or we see its progress.
  if (starved) std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Inbox::Post(uint32_t capacity_bytes) {
  mine_.receive_bytes[receives_ % kReceiveDepthMax].store(capacity_bytes, std::memory_order_release);
  ++receives_;
}

void Inbox::Publish() {
  mine_.receives.store(receives_, std::memory_order_release);
  RingIfStarved();
}

Inbox::Next Inbox::Peek(MessageHeader& header) const {
  const uint64_t available = theirs_.written_bytes.load(std::memory_order_acquire) - taken_bytes_;
  if (available == 0) return Next::kNone;
  if (available < sizeof(header) || available > kRingBytes) return Next::kGarbage;
  std::memcpy(&header, theirs_.ring.data() + taken_bytes_ % kRingBytes, sizeof(header));
  const bool send = header.kind == MessageKind::kSend && header.bytes <= kMaxSendBytes;
  if (!send && header.kind != MessageKind::kImmediate) return Next::kGarbage;
  return RecordBytes(PayloadBytes(header)) <= available ? Next::kMessage : Next::kGarbage;
}

void Inbox::Consume(const MessageHeader& header, std::byte* into) {
  const uint32_t bytes = PayloadBytes(header);
  const std::byte* ring = theirs_.ring.data();
  const uint64_t at = (taken_bytes_ + sizeof(header)) % kRingBytes;
  const size_t first = std::min<size_t>(bytes, kRingBytes - at);
  if (first > 0) std::memcpy(into, ring + at, first);
  if (bytes > first) std::memcpy(into + first, ring, bytes - first);
  taken_bytes_ += RecordBytes(bytes);
  mine_.taken_messages.store(++taken_messages_, std::memory_order_release);
  mine_.taken_bytes.store(taken_bytes_, std::memory_order_release);
}

void Inbox::RingIfStarved() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (theirs_.starved.load(std::memory_order_relaxed) != 0) RingOwner(theirs_, peer_);
}

}  // namespace nam::fabric::shm
