// The decoders of the tcp fabric's frames, handshakes and datagrams: the first byte picks one.

#include <string>

#include "base/check.h"
#include "fabric/net/handshake_wire.h"
#include "fabric/tcp/datagram_wire.h"
#include "fabric/tcp/wire.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::net;
using namespace fabric::tcp;

template <typename Frame>
std::span<const std::byte, sizeof(Frame)> BytesOf(const Frame& frame) {
  return std::span<const std::byte, sizeof(Frame)>(reinterpret_cast<const std::byte*>(&frame), sizeof(Frame));
}

template <typename Frame>
struct Raw {
  std::array<std::byte, sizeof(Frame)> bytes{};
};

template <typename Frame>
std::array<std::byte, sizeof(Frame)> ConsumeFrame(Input& input) {
  return input.Consume<Raw<Frame>>().bytes;
}

void DecodeOneRequest(Input& input) {
  const auto sequence = input.Consume<uint32_t>();
  const auto request = DecodeRequest(ConsumeFrame<RequestHeader>(input), sequence);
  if (!request) return;
  NAM_CHECK(request->sequence == sequence && request->bytes <= fabric::kMaxMessageBytes);
  NAM_CHECK(request->opcode != fabric::Opcode::kReceive);
  // Decoded values are encoded again as the same bytes.
  NAM_CHECK(DecodeRequest(BytesOf(*request), sequence).has_value());
}

void DecodeOneReply(Input& input) {
  const auto sequence = input.Consume<uint32_t>();
  const RequestHeader request{.opcode = static_cast<fabric::Opcode>(input.Byte() % 6),
                              .sequence = sequence,
                              .bytes = input.Consume<uint32_t>()};
  const auto reply = DecodeReply(ConsumeFrame<ReplyHeader>(input), request);
  if (!reply) return;
  NAM_CHECK(reply->opcode == request.opcode && reply->sequence == sequence);
  const bool read = reply->opcode == fabric::Opcode::kRead && reply->status == fabric::CompletionStatus::kOk;
  NAM_CHECK(!read || reply->value == request.bytes, "a READ brings what was asked for");
}

void DecodeOneDatagram(Input& input) {
  const auto bytes = ConsumeFrame<DatagramHeader>(input);
  const size_t payload_bytes = input.left();
  const auto header = DecodeDatagram(bytes, payload_bytes);
  NAM_CHECK(!header || (header->bytes == payload_bytes && payload_bytes <= fabric::kMaxDatagramBytes));
}

void ParseOneAddress(Input& input) {
  const auto rest = input.Rest();
  const std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  const auto address = ParseDatagramAddress(text);
  NAM_CHECK(!address || FormatDatagramAddress(*address) == text, "only what Format makes is an address");
}

template <typename Frame>
std::string Seed(uint8_t decoder, const std::string& before, const Frame& frame) {
  std::string seed(1, static_cast<char>(decoder));
  seed += before;
  Append(seed, frame);
  return seed;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::string sequence, asked;
  Append(sequence, uint32_t{7});
  Append(asked, uint32_t{7});
  asked += '\0';  // READ
  Append(asked, uint32_t{64});
  std::string address = "\6" + FormatDatagramAddress({.ip = 0x0a000002, .port = 41234, .target = 99});
  return {Seed(0, sequence, RequestHeader{.sequence = 7, .rkey = 1, .bytes = 64}),
          Seed(0, sequence,
               RequestHeader{.opcode = fabric::Opcode::kFetchAdd, .sequence = 7, .rkey = 1, .bytes = 8}),
          Seed(1, asked, ReplyHeader{.sequence = 7, .value = 64}),
          Seed(2, "", ClientHello{}),
          Seed(3, "", ServerChallenge{}),
          Seed(4, "", ServerProof{}),
          Seed(5, "", DatagramHeader{.bytes = 4}) + "four",
          address};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  switch (input.Byte() % 7) {
    case 0:
      DecodeOneRequest(input);
      break;
    case 1:
      DecodeOneReply(input);
      break;
    case 2:
      DecodeClientHello(ConsumeFrame<ClientHello>(input));
      break;
    case 3:
      DecodeServerChallenge(ConsumeFrame<ServerChallenge>(input));
      break;
    case 4:
      DecodeServerProof(ConsumeFrame<ServerProof>(input));
      break;
    case 5:
      DecodeOneDatagram(input);
      break;
    default:
      ParseOneAddress(input);
  }
  return 0;
}
