#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/fabric.h"

/// The protocol of two verbs fabrics beside a queue pair, over a TCP connection with the queue pair's
/// lifetime. It begins with the tcp fabric's handshake (fabric/tcp/wire.h), so that a peer without the
/// cluster's secret learns no queue pair number. All integers are little-endian.
///
///     A (Connect)                                        B (Listen)
///     handshake ◀────────────────────────────────────────▶ handshake
///     A's queue pair INIT
///     Offer (number, PSN, GID, MTU) ────────────────────▶ waits for Accept, unless passive
///                                                          B's queue pair INIT, RTR, RTS
///     A's queue pair RTR, RTS ◀───────────────────────────  Offer
///     kReady ────────────────────────────────────────────▶ Accept returns: A's receiver is up
///
/// From then on, frames of 40 bytes both ways:
///
///     kAskRegion key        ─▶  ◀─ kRegion key status NIC's rkey, base address, bytes, rights
///     kAskState             ─▶  ◀─ kState status (kOk: able to work)
///     kEnded status         ─▶       the sender's queue pair failed; status: what the receiver's oldest
///                                    unfinished request gets, unless it knows a better one. A
///                                    passive end is destroyed then: kState is no longer kOk, and nothing
///                                    takes effect any more
///     end of the connection ─▶       the peer closed, or died
///
/// A RemoteKey is this fabric's own number of a region, not the NIC's: NICs reuse theirs soon and address a
/// region by the owner's virtual addresses. A queue pair asks once per key.
namespace nam::fabric::verbs {

static_assert(std::endian::native == std::endian::little, "frames are used in place");

inline constexpr uint32_t kOfferMagic = 0x564d414e;  // "NAMV"
inline constexpr uint16_t kWireVersion = 1;
inline constexpr uint32_t kQueuePairNumberMax = 0xff'ffff;
inline constexpr uint32_t kPsnMax = 0xff'ffff;

enum class Refusal : uint8_t {
  kNone,
  kNoQueuePair,  // could not be created
  kNoSuchMember  // the membership has ended
};

struct Offer {
  uint32_t magic = kOfferMagic;
  uint16_t version = kWireVersion;
  uint8_t mtu = 0;  // ibv_mtu: 1 (256 bytes) … 5 (4096)
  Refusal refused = Refusal::kNone;
  uint32_t queue_pair = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  uint16_t reads_max = 0;  // READs and atomics that this side answers concurrently
  uint32_t zero = 0;
  std::array<uint8_t, 16> gid{};
};
static_assert(sizeof(Offer) == 40 && offsetof(Offer, gid) == 24);

enum class FrameKind : uint8_t {
  kReady = 1,
  kAskRegion = 2,
  kRegion = 3,
  kAskState = 4,
  kState = 5,
  kEnded = 6
};

inline constexpr uint16_t kFrameMagic = 0x5646;  // "FV"

struct Frame {
  uint16_t magic = kFrameMagic;
  FrameKind kind = FrameKind::kReady;
  CompletionStatus status = CompletionStatus::kOk;
  uint32_t key = 0;
  uint32_t nic_key = 0;
  Access access = Access::kNone;
  std::array<uint8_t, 3> zero{};
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint64_t reserved = 0;
};
static_assert(sizeof(Frame) == 40 && offsetof(Frame, base) == 16);

/// The decoders accept arbitrary bytes. Nothing: the bytes are not this protocol, and the connection must be
/// closed.
std::optional<Offer> DecodeOffer(std::span<const std::byte, sizeof(Offer)> bytes);
std::optional<Frame> DecodeFrame(std::span<const std::byte, sizeof(Frame)> bytes);

}  // namespace nam::fabric::verbs
