#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstring>
#include <vector>

#include "fabric/net/authentication.h"
#include "fabric/tcp/wire.h"

namespace nam::fabric::tcp {
namespace {

template <typename Frame>
std::span<const std::byte, sizeof(Frame)> FrameBytes(const Frame& frame) {
  return std::span<const std::byte, sizeof(Frame)>(reinterpret_cast<const std::byte*>(&frame), sizeof(Frame));
}

template <typename Frame>
std::array<std::byte, sizeof(Frame)> RandomFrame(const Frame& start) {
  // Random bytes alone hardly ever pass the magic: start from a good frame and spoil a few.
  std::array<std::byte, sizeof(Frame)> bytes;
  std::memcpy(bytes.data(), &start, sizeof(Frame));
  const auto spoiled = *rc::gen::container<std::vector<std::pair<uint8_t, uint8_t>>>(
      rc::gen::pair(rc::gen::inRange<uint8_t>(0, sizeof(Frame)), rc::gen::arbitrary<uint8_t>()));
  for (const auto& [at, value] : spoiled) bytes[at] = std::byte{value};
  return bytes;
}

TEST(TcpWire, DecodedRequestsAreWithinBounds) {
  EXPECT_TRUE(rc::check("a request decodes to what was encoded, within bounds, or not at all", [] {
    const auto sequence = *rc::gen::arbitrary<uint32_t>();
    const auto bytes = RandomFrame(RequestHeader{.sequence = sequence, .bytes = 8});
    const auto header = DecodeRequest(bytes, sequence);
    RC_CLASSIFY(header.has_value());
    if (!header) return;
    RC_ASSERT(header->opcode < Opcode::kReceive);
    RC_ASSERT(header->bytes <= BytesMax(header->opcode));
    RC_ASSERT(header->sequence == sequence);
    RC_ASSERT(std::memcmp(&*header, bytes.data(), bytes.size()) == 0);
  }));
}

TEST(TcpWire, DecodedRepliesAnswerTheirRequest) {
  EXPECT_TRUE(rc::check("a reply answers the request, or is none", [] {
    const RequestHeader request{.opcode = *rc::gen::element(Opcode::kRead, Opcode::kWrite, Opcode::kFetchAdd),
                                .sequence = *rc::gen::arbitrary<uint32_t>(),
                                .bytes = *rc::gen::inRange<uint32_t>(0, kMaxMessageBytes + 1)};
    const auto bytes = RandomFrame(
        ReplyHeader{.opcode = request.opcode, .sequence = request.sequence, .value = request.bytes});
    const auto reply = DecodeReply(bytes, request);
    RC_CLASSIFY(reply.has_value());
    if (!reply) return;
    RC_ASSERT(reply->opcode == request.opcode && reply->sequence == request.sequence);
    const bool payload = reply->opcode == Opcode::kRead && reply->status == CompletionStatus::kOk;
    RC_ASSERT(!payload || reply->value == request.bytes);
    RC_ASSERT(reply->status != CompletionStatus::kPeerLost && reply->status != CompletionStatus::kFlushed);
  }));
}

TEST(TcpWire, HandshakeDecodersTakeAnything) {
  EXPECT_TRUE(rc::check("no bytes are read as an enum value that does not exist", [] {
    if (const auto hello = net::DecodeClientHello(RandomFrame(net::ClientHello{}))) {
      RC_ASSERT(hello->role == net::Role::kForward || hello->role == net::Role::kReverse);
      RC_ASSERT(hello->magic == net::kHandshakeMagic);
    }
    if (const auto challenge = net::DecodeServerChallenge(RandomFrame(net::ServerChallenge{}))) {
      RC_ASSERT(challenge->status <= net::kLastHandshakeStatus);
    }
    if (const auto proof = net::DecodeServerProof(RandomFrame(net::ServerProof{}))) {
      RC_ASSERT(proof->verdict.mode == net::ListenMode::kPassive ||
                proof->verdict.mode == net::ListenMode::kPaired);
    }
  }));
}

TEST(TcpWire, GoodFramesDecode) {
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite, Opcode::kWriteWithImmediate,
                              Opcode::kCompareAndSwap, Opcode::kFetchAdd, Opcode::kSend}) {
    const RequestHeader request{.opcode = opcode, .sequence = 9, .bytes = BytesMax(opcode)};
    EXPECT_TRUE(DecodeRequest(FrameBytes(request), 9)) << OpcodeName(opcode);
    EXPECT_FALSE(DecodeRequest(FrameBytes(request), 8)) << OpcodeName(opcode);
    const ReplyHeader reply{.opcode = opcode, .sequence = 9, .value = request.bytes};
    EXPECT_TRUE(DecodeReply(FrameBytes(reply), request)) << OpcodeName(opcode);
  }
}

TEST(TcpAuthentication, ProofsDependOnEverything) {
  net::ClientHello hello;
  net::ServerChallenge challenge;
  const net::Mac mac = net::ProveClient("secret", hello, challenge);
  EXPECT_TRUE(net::SameMac(mac, net::ProveClient("secret", hello, challenge)));
  EXPECT_FALSE(net::SameMac(mac, net::ProveClient("Secret", hello, challenge)));
  const net::Mac server = net::ProveServer("secret", hello, challenge, {});
  EXPECT_FALSE(net::SameMac(mac, server));
  EXPECT_FALSE(net::SameMac(server, net::ProveServer("secret", hello, challenge, {.token = 1})));
  challenge.nonce[31] ^= 1;
  EXPECT_FALSE(net::SameMac(mac, net::ProveClient("secret", hello, challenge)));
  challenge.nonce[31] ^= 1;
  hello.token = 1;
  EXPECT_FALSE(net::SameMac(mac, net::ProveClient("secret", hello, challenge)));
}

}  // namespace
}  // namespace nam::fabric::tcp
