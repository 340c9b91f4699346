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

/// The streamed exchange: rows that the threads of some servers, its *members*, send each other while a stage
/// runs. An exchange is named by its number within the stage. Where a row may go is a *transmission group*: a
/// set of members that get the same messages. Each member is in one group of an exchange. Repartitioning has
/// a group for each member, broadcast one group of all:
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
/// Rows are written where they are sent from, and read where they were received: nothing is copied in
/// between. A member that is in its own group gets the buffer itself, which is free once it has been
/// released.
///
/// Credit is counted by exchange and sender, so that an exchange that is held up holds up no other one. It is
/// absolute: the number of messages that the sender may have sent since the attempt began. A message is sent
/// to all of its group or not at all.
///
/// No call waits but Poll. A thread that has no buffer or no credit for an exchange works on what has come
/// for that exchange and those behind it (GetData has the highest first), never on those before. So the last
/// one always goes on, and with it all others.
namespace nam::execution {

/// What every message begins with. The payload follows, which is opaque to endpoints. Little-endian.
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
  uint32_t payload_bytes = 0;  // of kHello: EndpointOptions::message_bytes, which all members have alike
  uint16_t sender = 0;
  uint8_t last = 0;  // 1: the sender sends no more for the exchange
  uint8_t reserved = 0;
  uint64_t credit = 0;  // of kHello, for each exchange, and kCredit: messages that may have been sent in all
};
static_assert(sizeof(MessageHeader) == 40);

/// Members that get the same messages; ascending.
using TransmissionGroup = std::vector<uint32_t>;

/// What messages take of the processors of their sender and of their receiver, beside what the fabric
/// charges: of sockets, whose protocols software speaks. In virtual time alone (Clock::Charge).
struct MessageCost {
  int64_t message_ps = 0;  // of up to window_bytes; of longer ones in proportion
  uint32_t window_bytes = 1;

  int64_t Ns(uint32_t bytes) const {
    return (bytes <= window_bytes ? message_ps : message_ps * bytes / window_bytes) / 1000;
  }
};
/// IP over InfiniBand, by figure 3 of Binnig et al., "The End of Slow Networks": 13,264 cycles of 2.2 GHz for
/// a message of up to TCP's window of 21,888 bytes, and growing in proportion beyond it. That makes 3.6 GB/s
/// of a thread.
inline constexpr MessageCost kIpOverInfinibandCost = {.message_ps = 6'029'000, .window_bytes = 21'888};

struct EndpointOptions {
  uint32_t self = 0;                 // which of the members this one is
  std::vector<std::string> members;  // what errors call them; 1 to kMembersMax
  /// Of each exchange: where its rows may go. Every member is in one of the groups.
  std::vector<std::vector<TransmissionGroup>> exchanges;
  uint32_t message_bytes = 16 << 10;  // with the header; a multiple of 64 from 1024 to fabric::kMaxSendBytes
  uint32_t credits = 4;  // messages of an exchange that a sender may be ahead of a receiver; even, 2 to 64
  uint32_t stage = 0;
  uint64_t attempt = 0;
  MessageCost message_cost;  // of rows; credits are small, and come with acknowledgements
  /// So long Poll waits without any completion.
  int64_t timeout_us = 10'000'000;

  static constexpr uint32_t kMembersMax = 256;
  static constexpr uint32_t kExchangesMax = 64;
  static constexpr uint32_t kCreditsMax = 64;
};
/// INVALID_ARGUMENT for what no endpoint takes.
absl::Status CheckOptions(const EndpointOptions& options);

/// A group of each member alone.
std::vector<TransmissionGroup> RepartitionAmong(uint32_t members);
/// One group of all.
std::vector<TransmissionGroup> BroadcastAmong(uint32_t members);

/// The payload of an endpoint's error if a member is lost, be it dead, silent or dishonest.
inline constexpr char kExchangeMemberLost[] = "nam/exchange-member-lost";

/// One thread's end of all exchanges of a stage. Used by one thread at a time. After an error it is of no
/// use.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual const EndpointOptions& options() const = 0;

  /// Where the other members' endpoints find this one.
  virtual std::string address() const = 0;
  /// Meets the endpoints of all other members, by the addresses of all (its own is not looked at). All do so
  /// at the same time. Once, before all else. Errors name the member.
  virtual absl::Status Connect(std::span<const std::string> addresses, Deadline deadline,
                               const std::atomic<bool>& cancel) = 0;

  /// Registered memory for one message. The caller's until it is sent.
  struct Buffer {
    std::span<std::byte> payload;
    uint16_t exchange = 0;
    uint16_t group = 0;
    uint32_t number = 0;  // the endpoint's
  };
  /// Nothing if all buffers of the group are taken, or on their way.
  virtual std::optional<Buffer> GetFree(uint32_t exchange, uint32_t group) = 0;

  struct Contents {
    uint32_t payload_bytes = 0;
    uint32_t rows = 0;
    /// The group gets no more from this sender.
    bool last = false;
  };
  /// False: a member of the group lacks credit, and the buffer is still the caller's.
  virtual absl::StatusOr<bool> Send(const Buffer& buffer, const Contents& contents) = 0;

  /// Takes completions. With `wait`: at least one, unless it was woken or `cancel` is set. CANCELLED soon
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
  /// The next message of the highest of the exchanges [first, end) that has one. Those of a sender come in
  /// the order in which they were sent. The caller's until it is released.
  virtual std::optional<Message> GetData(uint32_t first, uint32_t end) = 0;
  /// The message's memory is received into again, and its sender gets credit for it.
  virtual absl::Status Release(const Message& message) = 0;
  /// The last messages of all senders have been released.
  virtual bool Ended(uint32_t exchange) const = 0;
  /// Nothing that was sent is on its way any more. Before that an endpoint that has done all is not
  /// destroyed: its members would miss it. Afterwards it may be, whatever the others still do.
  virtual bool Idle() const = 0;

  /// Goes on with another attempt: what has come and was not taken is dropped, buffers are the caller's no
  /// more, and from now on messages of other attempts are discarded. The caller has released what it took.
  /// Not before all members have ceased to send, and no member sends before all have begun: whoever starts
  /// attempts sees to that.
  virtual absl::Status Begin(uint32_t stage, uint64_t attempt) = 0;

  /// Completions that have been taken so far. Unchanged since it was last looked at whether something comes
  /// or goes: nothing does.
  virtual uint64_t completions() const = 0;
  virtual uint64_t sent_bytes() const = 0;     // over the fabric, with headers, without credits
  virtual uint64_t sent_messages() const = 0;  // likewise
  virtual uint64_t discarded() const = 0;      // messages of other attempts
};

}  // namespace nam::execution
