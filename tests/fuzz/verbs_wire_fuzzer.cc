// Decoders of the verbs fabrics: for messages beside the queue pair, for addresses that peers hand on, and
// for the choice of a device. The first byte picks one.

#include <array>
#include <string>

#include "base/check.h"
#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/device_choice.h"
#include "fabric/verbs/wire.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::verbs;

template <typename T>
using Raw = std::array<std::byte, sizeof(T)>;

template <typename T>
Raw<T> BytesOf(const T& object) {
  Raw<T> bytes;
  std::memcpy(bytes.data(), &object, sizeof(T));
  return bytes;
}

std::string TakeText(Input& input) {
  const auto rest = input.Rest();
  return {reinterpret_cast<const char*>(rest.data()), rest.size()};
}

void DecodeOneOffer(Input& input) {
  const auto offer = DecodeOffer(input.Consume<Raw<Offer>>());
  if (!offer) return;
  NAM_CHECK(DecodeOffer(BytesOf(*offer)).has_value());
  if (offer->refused != Refusal::kNone) return;
  NAM_CHECK(offer->queue_pair > 0 && offer->queue_pair <= kQueuePairNumberMax && offer->psn <= kPsnMax);
  NAM_CHECK(offer->mtu >= IBV_MTU_256 && offer->mtu <= IBV_MTU_4096);
}

void DecodeOneFrame(Input& input) {
  const auto bytes = input.Consume<Raw<Frame>>();
  const auto frame = DecodeFrame(bytes);
  if (!frame) return;
  NAM_CHECK(BytesOf(*frame) == bytes, "what is decoded is what was sent");
  NAM_CHECK(fabric::Allows(fabric::Access::kAll, frame->access), "unknown rights");
}

/// An address may be written in several ways; Format's is one of the same meaning.
void ParseOneAddress(Input& input) {
  const auto address = ParseDatagramAddress(TakeText(input));
  if (!address.ok()) return;
  NAM_CHECK(address->queue_pair > 0 && address->queue_pair <= kQueuePairNumberMax);
  const auto again = ParseDatagramAddress(FormatDatagramAddress(*address));
  NAM_CHECK(again.ok() && BytesOf(again->gid) == BytesOf(address->gid) &&
            again->queue_pair == address->queue_pair && again->lid == address->lid);
}

void ParseOneGroup(Input& input) {
  const auto group = ParseGroupAddress(TakeText(input));
  if (!group.ok()) return;
  NAM_CHECK(IsMappedV4(group->group) && group->queue_pair > 0 && group->queue_pair <= kQueuePairNumberMax);
  const auto again = ParseGroupAddress(FormatGroupAddress(*group));
  NAM_CHECK(again.ok() && BytesOf(again->group) == BytesOf(group->group) &&
            BytesOf(again->sender) == BytesOf(group->sender) && again->queue_pair == group->queue_pair);
}

void ParseOneChoice(Input& input) {
  const std::string text = TakeText(input);
  const auto choice = ParseDeviceChoice(text);
  if (!choice.ok()) return;
  NAM_CHECK(choice->device.empty() == text.empty() && text.rfind(choice->device, 0) == 0);
  NAM_CHECK(choice->port.value_or(1) > 0);
  NAM_CHECK(choice->gid_index.value_or(0) >= 0 && choice->gid_index.value_or(0) <= 255);
}

template <typename T>
std::string Seed(char decoder, const T& object) {
  std::string seed(1, decoder);
  Append(seed, object);
  return seed;
}

}  // namespace

std::vector<std::string> Seeds() {
  ibv_gid plain{};
  plain.raw[0] = 0xfe;
  plain.raw[1] = 0x80;
  plain.raw[15] = 1;
  const auto text = [](char decoder, const std::string& rest) { return std::string(1, decoder) + rest; };
  return {Seed('\0', Offer{.mtu = 5, .queue_pair = 17, .psn = kPsnMax, .reads_max = 16, .gid = {0xfe, 0x80}}),
          Seed('\0', Offer{.refused = Refusal::kNoSuchMember}),
          Seed('\1', Frame{}),
          Seed('\1', Frame{.kind = FrameKind::kRegion,
                           .key = 7,
                           .nic_key = 99,
                           .access = fabric::Access::kAll,
                           .base = 1 << 20,
                           .bytes = 1 << 12}),
          Seed('\1', Frame{.kind = FrameKind::kEnded, .status = fabric::CompletionStatus::kFlushed}),
          text('\2', FormatDatagramAddress({GroupGid(0), 17, 0})),
          text('\2', FormatDatagramAddress({plain, kQueuePairNumberMax, 65535})),
          text('\2', "10.0.0.2#017#0"),
          text('\3', FormatGroupAddress({GroupGid(5), plain, 23})),
          text('\4', "mlx5_0:2,gid=13"),
          text('\4', "rxe0")};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  switch (input.Byte() % 5) {
    case 0:
      DecodeOneOffer(input);
      break;
    case 1:
      DecodeOneFrame(input);
      break;
    case 2:
      ParseOneAddress(input);
      break;
    case 3:
      ParseOneGroup(input);
      break;
    default:
      ParseOneChoice(input);
  }
  return 0;
}
