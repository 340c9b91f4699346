#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

/// The streamed exchange: the threads of some servers, its *members*, send each other rows while a stage
/// runs. The number within the stage names an exchange. A row's targets form a *transmission group*: a set of
/// members that get the same messages. Each member is in one group of an exchange. Repartitioning has a group
/// for each member, broadcast one group of all:
///
///     repartition   {0} {1} {2}        multicast   {0, 1} {2}        broadcast   {0, 1, 2}
///
/// A thread has an endpoint of its own. Thread t of a member talks to the threads t of the others, so no two
/// threads share a queue.
///
///     sender                                                        receiver
///     GetFree ─▶ buffer of (exchange, group) ─ rows ─▶ Send ══▶ inbox ─▶ GetData ─▶ rows ─▶ Release
///        ▲              a few, in turn                    ▲                                    │
///        └─── once all members of the group have it       └───── credit, several at once ──────┘
///
/// Rows are written where they are sent from, and read where they were received, without a copy. A member of
/// its own group gets the buffer itself, which is free once it is released.
///
/// Credit is counted by exchange and sender, so that a stalled exchange stalls no other. It is absolute: the
/// number of messages that the sender may have sent since the attempt began. A message goes to its whole
/// group or not at all.
///
/// Only Poll waits. A thread without a buffer or credit for an exchange processes arrivals of that exchange
/// and later ones (GetData returns the highest first), never of earlier ones. So the last exchange always
/// progresses, and with it all others.
namespace nam::execution {

/// The header of every message. The payload follows, which is opaque to endpoints. Little-endian.
///
///     0       4      6          8         16      20     24              28       30     31         32 40 ├
///     magic ┼ kind ┼ exchange ┼ attempt ┼ stage ┼ rows ┼ payload bytes ┼ sender ┼ last ┼ reserved ┼ credit ┤
struct MessageHeader {
  static constexpr uint32_t kMagic = 0x584d414e;  // "NAMX"
  enum Kind : uint16_t { kHello, kRows, kCredit };
  uint32_t magic = kMagic;
  uint16_t kind = kHello;
  uint16_t exchange = 0;
  uint64_t attempt = 0;
  uint32_t stage = 0;
  uint32_t rows = 0;
  uint32_t payload_bytes = 0;  // kHello: EndpointOptions::message_bytes, equal for all members
  uint16_t sender = 0;
  uint8_t last = 0;  // 1: the sender's last message for the exchange
  uint8_t reserved = 0;
  uint64_t credit = 0;  // kHello, for each exchange, and kCredit: messages that may have been sent in all
};
static_assert(sizeof(MessageHeader) == 40);

/// Members that get the same messages; ascending.
using TransmissionGroup = std::vector<uint32_t>;

/// The processor time that a message costs its sender and its receiver, beside the fabric's charges: for
/// sockets, whose protocols run in software. Virtual time only (Clock::Charge).
struct MessageCost {
  int64_t message_ps = 0;  // for up to window_bytes; proportional beyond
  uint32_t window_bytes = 1;

  int64_t Ns(uint32_t bytes) const {
    return (bytes <= window_bytes ? message_ps : message_ps * bytes / window_bytes) / 1000;
  }
};
/// IP over InfiniBand, by figure 3 of Binnig et al., "The End of Slow Networks": 13,264 cycles of 2.2 GHz for
/// a message of up to TCP's window of 21,888 bytes, proportional beyond. That makes 3.6 GB/s a thread.
inline constexpr MessageCost kIpOverInfinibandCost = {.message_ps = 6'029'000, .window_bytes = 21'888};

struct EndpointOptions {
  uint32_t self = 0;                 // this member's number
  std::vector<std::string> members;  // names for errors; 1 to kMembersMax
  /// The groups of each exchange. Every member is in one of them.
  std::vector<std::vector<TransmissionGroup>> exchanges;
  uint32_t message_bytes =
      16 << 10;          // including the header; a multiple of 64 from 1024 to fabric::kMaxSendBytes
  uint32_t credits = 4;  // messages of an exchange that a sender may be ahead of a receiver; even, 2 to 64
  uint32_t stage = 0;
  uint64_t attempt = 0;
  MessageCost message_cost;  // for rows; credits are small, and come with acknowledgements
  /// How long Poll waits without any completion.
  int64_t timeout_us = 10'000'000;

  static constexpr uint32_t kMembersMax = 256;
  static constexpr uint32_t kExchangesMax = 64;
  static constexpr uint32_t kCreditsMax = 64;
};
/// INVALID_ARGUMENT for options that no endpoint supports.
absl::Status CheckOptions(const EndpointOptions& options);

/// A group for each member.
std::vector<TransmissionGroup> RepartitionAmong(uint32_t members);
/// One group of all.
std::vector<TransmissionGroup> BroadcastAmong(uint32_t members);

/// The payload of an endpoint's error if a member is lost: dead, silent or malformed.
inline constexpr char kExchangeMemberLost[] = "nam/exchange-member-lost";

/// One thread's end of all exchanges of a stage. Used by one thread at a time. An error ends its use.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual const EndpointOptions& options() const = 0;

  /// The address for the other members' endpoints.
  virtual std::string address() const = 0;
  /// Connects to the endpoints of all other members, by the addresses of all (its own is ignored). All do so
  /// at the same time. Called once, first. Errors name the member.
  virtual absl::Status Connect(std::span<const std::string> addresses, Deadline deadline,
                               const std::atomic<bool>& cancel) = 0;

  /// Registered memory for one message. The caller owns it until it is sent.
  struct Buffer {
    std::span<std::byte> payload;
    uint16_t exchange = 0;
    uint16_t group = 0;
    uint32_t number = 0;  // the endpoint's
  };
  /// nullopt if all buffers of the group are taken or in flight.
  virtual std::optional<Buffer> GetFree(uint32_t exchange, uint32_t group) = 0;

  struct Contents {
    uint32_t payload_bytes = 0;
    uint32_t rows = 0;
    /// The sender's last message to the group.
    bool last = false;
  };
  /// False: a member of the group lacks credit, and the caller keeps the buffer.
  virtual absl::StatusOr<bool> Send(const Buffer& buffer, const Contents& contents) = 0;

  /// Takes completions. With `wait`: at least one, unless it is woken or `cancel` is set. CANCELLED soon
  /// after that. Errors of the endpoint name the member, unless all are silent, and carry
  /// kExchangeMemberLost.
  virtual absl::Status Poll(bool wait, const std::atomic<bool>& cancel) = 0;

  struct Message {
    std::span<const std::byte> payload;
    uint32_t rows = 0;
    uint16_t exchange = 0;
    uint16_t sender = 0;
    bool last = false;
    uint32_t number = 0;  // the endpoint's
  };
  /// Returns the next message of the highest exchange in [first, end) that has one. A sender's messages come
  /// in the order in which they were sent. The caller owns it until it is released.
  virtual std::optional<Message> GetData(uint32_t first, uint32_t end) = 0;
  /// Reuses the message's memory for a receive, and gives its sender credit for it.
  virtual absl::Status Release(const Message& message) = 0;
  /// True once the last messages of all senders have been released.
  virtual bool Ended(uint32_t exchange) const = 0;
  /// True if no message of this endpoint is in flight. A finished endpoint must not be destroyed before that:
  /// other members would miss its messages. Afterwards it may be destroyed, whatever the other members do.
  virtual bool Idle() const = 0;

  /// Starts another attempt: drops messages that were not taken, takes back all buffers, and discards
  /// messages of other attempts from now on. The caller has released what it took. Not before all members
  /// have stopped sending, and no member sends before all have begun: the starter of attempts ensures that.
  virtual absl::Status Begin(uint32_t stage, uint64_t attempt) = 0;

  /// The number of completions taken so far. Unchanged between two looks: nothing has come or gone.
  virtual uint64_t completions() const = 0;
  virtual uint64_t sent_bytes() const = 0;     // over the fabric, with headers, without credits
  virtual uint64_t sent_messages() const = 0;  // likewise
  virtual uint64_t discarded() const = 0;      // other attempts' messages
};

}  // namespace nam::execution
