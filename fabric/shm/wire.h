#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "fabric/member.h"

/// The protocol over the UNIX socket (SOCK_SEQPACKET) of a queue pair. Every packet is one Message, of fixed
/// size; anything else closes the connection.
///
///     connecting side                              listening side
///       Hello      nonce, member            ──▶
///                                           ◀──    Challenge  nonce
///       Proof      HMAC("client"), answer   ──▶            of the member, to HMAC("member"); 0 without one
///                                           ◀──    Welcome    HMAC("server"), rights; table, doorbells,
///                                                  channel (or Refused: code, text)
///       Attach     table, doorbells         ──▶
///     ──────────────────────────── then, either way ────────────────────────────
///       RegionRequest  rkey                 ──▶
///                                           ◀──    RegionReply  bytes, access; the memory          (or code)
///     ───────── or, to the socket of a fabric's datagrams, one request and nothing more ─────────
///       DatagramJoin   datagram_id (of a group), bell  ──▶
///                                           ◀──    DatagramReply  slots; the group's ring   (or Refused)
///       DatagramSend   datagram_id (of a queue pair), slots; the sender's ring  ──▶
///                                           ◀──    DatagramReply  bell                      (or Refused)
///
/// HMAC is SHA-256 with the cluster's secret over role and both nonces. Welcoming a member takes as long as
/// the check that it is alive. Neither side hands out a descriptor before the other has proved the secret.
namespace nam::fabric::shm {

using Nonce = std::array<uint8_t, 32>;
using Mac = std::array<uint8_t, 32>;
/// Random, unique to one Fabric object and equal in all its connections.
using ProcessId = std::array<uint8_t, 16>;

enum class MessageType : uint16_t {
  kHello = 1,
  kChallenge,
  kProof,
  kWelcome,
  kRefused,
  kAttach,
  kRegionRequest,
  kRegionReply,
  kDatagramJoin,
  kDatagramSend,
  kDatagramReply,
};

inline constexpr uint32_t kWireMagic = 0x4d41'4e73;  // "sNAM"
inline constexpr uint16_t kWireVersion = 4;

struct Message {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  MessageType type = MessageType::kHello;
  std::array<uint8_t, 32> proof{};  // nonce or HMAC
  ProcessId process{};
  uint64_t bytes = 0;  // size of the region
  uint32_t rkey = 0;
  uint32_t access = 0;  // rights on the region; in Welcome: of the connection
  uint32_t code = 0;    // absl::StatusCode; 0: OK
  std::array<char, 100> text{};
  uint64_t datagram_id = 0;
  uint32_t slots = 0;  // size of a datagram ring
  uint32_t bell = 0;   // index of the reader's doorbell in its process
  MemberAnswer answer{};
  uint32_t member = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(Message) == 232);

inline constexpr size_t kDescriptorsMax = 3;

struct Packet {
  Message message;
  std::array<UniqueFd, kDescriptorsMax> descriptors;
};

/// Never blocks. UNAVAILABLE if the peer is gone or does not read.
absl::Status SendMessage(int socket, const Message& message, std::span<const int> descriptors = {});

/// Never blocks. NOT_FOUND: no message yet. UNAVAILABLE: the peer closed. INVALID_ARGUMENT: malformed.
/// RESOURCE_EXHAUSTED: out of descriptors.
absl::StatusOr<Packet> ReceiveMessage(int socket);
/// Waits for a message. DEADLINE_EXCEEDED, else as above.
absl::StatusOr<Packet> AwaitMessage(int socket, Deadline deadline);

Message MakeRefusal(const absl::Status& status);
absl::Status RefusalStatus(const Message& message);

Nonce RandomNonce();
ProcessId RandomProcessId();
Mac ComputeMac(const std::string& secret, std::string_view role, const Nonce& client, const Nonce& server);
/// Compares in constant time.
bool SameMac(const Mac& a, const Mac& b);

inline constexpr std::string_view kClientRole = "nam shm client";
inline constexpr std::string_view kServerRole = "nam shm server";
inline constexpr std::string_view kMemberRole = "nam shm member";

}  // namespace nam::fabric::shm
