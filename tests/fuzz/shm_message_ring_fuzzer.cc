// A peer that scribbles over its side of a channel, between any two steps of our side.
//
//     input: records  kind:1 …   0 scribble  offset:4 length:1 bytes   anywhere in the peer's side
//                                1 counter   which:1 value:8           one of the peer's counters
//                                2 receive   capacity:2                ours is posted
//                                3 take      the next message, if there is one
//                                4 place     bytes:2                   ours, if there is room
//                                5 message   the peer's: header:16 length:1 payload, and its counter moved on

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "fabric/shm/message_ring.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::shm;

class Session {
 public:
  Session()
      : channel_(FreshChannel()),
        outbox_(&mine(), &theirs(), &ThePeer()),
        inbox_(&mine(), &theirs(), &ThePeer()) {}

  void Scribble(uint32_t offset, std::span<const std::byte> bytes) {
    const size_t at = offset % sizeof(ChannelSide);
    auto* side = reinterpret_cast<std::byte*>(&theirs());
    std::memcpy(side + at, bytes.data(), std::min(bytes.size(), sizeof(ChannelSide) - at));
  }
  void SetCounter(uint8_t which, uint64_t value) {
    std::array counters = {&theirs().written_bytes, &theirs().taken_bytes, &theirs().taken_messages,
                           &theirs().receives};
    counters[which % counters.size()]->store(value);
  }
  void PeerSends(const std::array<std::byte, sizeof(MessageHeader)>& header,
                 std::span<const std::byte> payload) {
    const uint64_t at =
        theirs().written_bytes.load() % kRingBytes / sizeof(MessageHeader) * sizeof(MessageHeader);
    std::memcpy(theirs().ring.data() + at, header.data(), header.size());
    const uint64_t after = (at + header.size()) % kRingBytes;
    std::memcpy(theirs().ring.data() + after, payload.data(), std::min(payload.size(), kRingBytes - after));
    const uint64_t padded = (payload.size() + 15) / 16 * 16;
    theirs().written_bytes.fetch_add(header.size() + padded);
  }
  void Receive(uint32_t capacity_bytes) {
    if (++receives_ > kReceiveDepthMax) return;
    inbox_.Post(capacity_bytes);
    inbox_.Publish();
  }
  void TakeNext() {
    MessageHeader header;
    if (inbox_.Peek(header) != Inbox::Next::kMessage) return;
    // The peer goes on writing meanwhile: the values that were peeked must be the ones that count.
    std::memset(theirs().ring.data(), 0xff, 64);
    const uint32_t bytes = header.kind == MessageKind::kSend ? header.bytes : 0;
    NAM_CHECK(bytes <= fabric::kMaxSendBytes);
    const auto into = std::make_unique<std::byte[]>(bytes);  // exactly: a byte more is an error
    inbox_.Consume(header, into.get());
    inbox_.RingIfStarved();
  }
  void Place(uint32_t bytes) {
    if (!outbox_.HasRoom(bytes)) {
      outbox_.SetStarved(true);
      return;
    }
    const MessageHeader header{.bytes = bytes};
    const std::vector<std::byte> payload(bytes, std::byte{0x77});
    const uint64_t number = outbox_.Place(header, payload.data());
    outbox_.Check(number, header);
    outbox_.Check(number / 2, header);
  }

 private:
  ChannelSide& mine() { return channel_.sides[0]; }
  ChannelSide& theirs() { return channel_.sides[1]; }
  // Kept from input to input: making them takes far longer than an input does.
  static Channel& FreshChannel() {
    static const auto channel = std::make_unique<Channel>();
    std::memset(static_cast<void*>(channel.get()), 0, sizeof(Channel));
    return *channel;
  }
  static PeerProcess& ThePeer() {
    static PeerProcess peer(
        std::move(CreateShared("table", sizeof(RegionTable), PeerAccess::kReadOnly, false)->mapping),
        std::move(CreateShared("bells", sizeof(DoorbellPage), PeerAccess::kReadWrite, false)->mapping));
    return peer;
  }

  Channel& channel_;
  Outbox outbox_;
  Inbox inbox_;
  uint32_t receives_ = 0;
};

std::string Peer(const MessageHeader& header, const std::string& payload) {
  std::string record(1, '\5');
  Append(record, header);
  return record + static_cast<char>(payload.size()) + payload;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string receive{'\2', '\x40', '\0'}, place{'\4', '\x20', '\0'}, take(1, '\3');
  const std::string hello = Peer({.bytes = 5}, "hello");
  const std::string immediate = Peer({.bytes = 9, .kind = MessageKind::kImmediate, .immediate = 3}, "");
  std::string counter{'\1', '\0'}, all_taken{'\1', '\1'};
  Append(counter, uint64_t{1} << 40);
  Append(all_taken, ~uint64_t{0});
  return {receive + hello + take, hello + immediate + take + take, place + place + all_taken + place,
          hello + counter + take, Peer({.bytes = 65536}, "short") + take};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  Session session;
  for (int records = 0; !input.empty() && records < 256; ++records) {
    switch (input.Byte() % 6) {
      case 0: {
        const auto offset = input.Consume<uint32_t>();
        session.Scribble(offset, input.Bytes(input.Byte()));
        break;
      }
      case 1: {
        const uint8_t which = input.Byte();
        session.SetCounter(which, input.Consume<uint64_t>());
        break;
      }
      case 2:
        session.Receive(input.Consume<uint16_t>());
        break;
      case 3:
        session.TakeNext();
        break;
      case 4:
        session.Place(input.Consume<uint16_t>());
        break;
      default: {
        const auto header = input.Consume<std::array<std::byte, sizeof(nam::fabric::shm::MessageHeader)>>();
        session.PeerSends(header, input.Bytes(input.Byte()));
      }
    }
  }
  return 0;
}
