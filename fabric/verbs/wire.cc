#include "fabric/verbs/wire.h"

#include <cstring>

#include "fabric/net/wire_bytes.h"

namespace nam::fabric::verbs {
namespace {

constexpr uint8_t kMtuMin = 1;
constexpr uint8_t kMtuMax = 5;

}  // namespace

std::optional<Offer> DecodeOffer(std::span<const std::byte, sizeof(Offer)> bytes) {
  // Enums are checked as bytes, before any value of their types exists.
  if (net::ByteAt(bytes, offsetof(Offer, refused)) > static_cast<uint8_t>(Refusal::kNoSuchMember))
    return std::nullopt;
  Offer offer;
  std::memcpy(&offer, bytes.data(), sizeof(offer));
  if (offer.magic != kOfferMagic || offer.version != kWireVersion || offer.zero != 0) return std::nullopt;
  if (offer.refused != Refusal::kNone) return offer;
  if (offer.mtu < kMtuMin || offer.mtu > kMtuMax || offer.queue_pair == 0 ||
      offer.queue_pair > kQueuePairNumberMax || offer.psn > kPsnMax) {
    return std::nullopt;
  }
  return offer;
}

std::optional<Frame> DecodeFrame(std::span<const std::byte, sizeof(Frame)> bytes) {
  const uint8_t kind = net::ByteAt(bytes, offsetof(Frame, kind));
  if (kind < static_cast<uint8_t>(FrameKind::kReady) || kind > static_cast<uint8_t>(FrameKind::kEnded) ||
      net::ByteAt(bytes, offsetof(Frame, status)) > static_cast<uint8_t>(CompletionStatus::kFlushed) ||
      net::ByteAt(bytes, offsetof(Frame, access)) > static_cast<uint8_t>(Access::kAll)) {
    return std::nullopt;
  }
  Frame frame;
  std::memcpy(&frame, bytes.data(), sizeof(frame));
  if (frame.magic != kFrameMagic || frame.reserved != 0 || frame.zero != decltype(frame.zero){}) {
    return std::nullopt;
  }
  return frame;
}

}  // namespace nam::fabric::verbs
