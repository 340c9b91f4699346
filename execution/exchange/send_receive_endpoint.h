#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/exchange/endpoint.h"
#include "fabric/fabric.h"

namespace nam::execution {

/// The exchange by SEND and RECEIVE over a reliable queue pair to each other member.
///
///     member i                                        member j > i
///     Open: listens                                   Open: listens
///     Connect: accepts             ◀── connects ────  Connect
///              receives of a hello  ◀──── HELLO ────  posts all receives; its number, its credit
///              checks the number
///              posts all receives   ───── HELLO ───▶  may send now, as j does
///
/// The fabric has authenticated every connecting peer as a process of the cluster. The endpoint rejects a
/// peer whose hello names another attempt, or a member that it does not wait for. It also rejects silent
/// peers once more come than the lobby holds.
///
/// A receive is posted before its credit is given, so messages never wait for receives. A misbehaving member
/// can only end the endpoint with an error: messages have the receives' size at most, and those beyond the
/// sender's credit, after its last one, or with a header that does not fit their bytes are errors.
///
/// Open registers the memory of both directions: for each other member, (credits + 2) messages for each
/// exchange, and two for each of its transmission groups.
class SendReceiveEndpoint final : public Endpoint {
 public:
  /// Listens at `host` if the kind of fabric has hosts; at an address of the fabric's choice.
  static absl::StatusOr<std::unique_ptr<SendReceiveEndpoint>> Open(fabric::Fabric& fabric,
                                                                   EndpointOptions options,
                                                                   const std::string& host);
  /// The memory that Open registers.
  static uint64_t RegisteredBytes(const EndpointOptions& options);
  ~SendReceiveEndpoint() override;

  std::string address() const override { return address_; }
  absl::Status Connect(std::span<const std::string> addresses, Deadline deadline,
                       const std::atomic<bool>& cancel) override;

  const EndpointOptions& options() const override { return options_; }
  std::optional<Buffer> GetFree(uint32_t exchange, uint32_t group) override;
  absl::StatusOr<bool> Send(const Buffer& buffer, const Contents& contents) override;
  absl::Status Poll(bool wait, const std::atomic<bool>& cancel) override;
  std::optional<Message> GetData(uint32_t first, uint32_t end) override;
  absl::Status Release(const Message& message) override;
  bool Ended(uint32_t exchange) const override { return exchanges_[exchange].ended == members(); }
  bool Idle() const override;
  absl::Status Begin(uint32_t stage, uint64_t attempt) override;
  uint64_t completions() const override { return taken_; }
  uint64_t sent_bytes() const override { return sent_bytes_; }
  uint64_t sent_messages() const override { return sent_messages_; }
  uint64_t discarded() const override { return discarded_; }

 private:
  static constexpr uint32_t kBuffersOfGroup = 2;
  static constexpr uint32_t kLobby = 4;

  /// What one member and this one have exchanged by one exchange, in this attempt.
  struct Flow {
    uint64_t sent = 0, may_send = 0;
    uint64_t received = 0, released = 0;
    uint64_t credited = 0;  // as told to the sender
    bool last_sent = false, last_received = false;
    bool owes_credit = false;  // the send queue had no room for it
  };
  struct Member {
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool met = false;
    uint32_t posted = 0;      // SENDs without a completion yet
    std::vector<Flow> flows;  // by exchange
  };
  struct SendBuffer {
    uint16_t exchange = 0, group = 0;
    bool taken = false;
    uint32_t under_way = 0;  // members that it is in flight to
  };
  struct Exchange {
    uint32_t first_buffer = 0;  // its groups', two each
    uint32_t ended = 0;         // senders whose last message was released
    std::deque<Message> inbox;
  };

  SendReceiveEndpoint(fabric::Fabric& fabric, EndpointOptions options);
  uint32_t members() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t exchanges() const { return static_cast<uint32_t>(exchanges_.size()); }
  uint32_t returned_at_once() const { return options_.credits / 2; }
  /// The receives posted for one member: messages of all exchanges, the credits for what was sent to it, its
  /// hello.
  static uint32_t ReceivesOf(const EndpointOptions& options) {
    return static_cast<uint32_t>(options.exchanges.size()) * (options.credits + 2) + 1;
  }
  uint32_t receives() const { return ReceivesOf(options_); }
  fabric::QueuePairOptions PairOptions() const;
  void ResetFlows();

  // Memory: receives of each member, then send buffers, then the lobby.
  fabric::LocalBuffer ReceiveBuffer(uint32_t member, uint32_t number, uint32_t bytes) const;
  fabric::LocalBuffer BufferToSend(uint32_t number, uint32_t bytes) const;
  fabric::LocalBuffer LobbyBuffer(uint32_t number) const;

  // Connecting.
  absl::Status ConnectTo(uint32_t member, const std::string& address, Deadline deadline);
  absl::Status AcceptSome(Deadline until);
  absl::Status Adopt(uint32_t member, std::unique_ptr<fabric::QueuePair> queue_pair);
  absl::Status Greeted(const fabric::Completion& completion, uint32_t visitor);
  bool IsExpected(const MessageHeader& hello) const;
  absl::Status SayHello(uint32_t member);
  bool MetAllAbove() const;
  bool MetAll() const;

  // Messages.
  absl::Status PostReceive(uint32_t member, uint32_t number);
  absl::Status PostHeader(uint32_t member, const MessageHeader& header);
  absl::Status HandleCompletions(std::span<const fabric::Completion> completions);
  absl::Status HandleCompletion(const fabric::Completion& completion);
  void ChargeMessage(uint32_t bytes);
  absl::Status Received(const fabric::Completion& completion, uint32_t member, uint32_t number);
  absl::Status ReceivedRows(const MessageHeader& header, uint32_t member, uint32_t number);
  absl::Status ReceivedCredit(const MessageHeader& header, uint32_t member);
  absl::Status ReturnCredit(uint32_t member, uint32_t exchange);
  absl::Status ReturnOwedCredits();
  /// It needs nothing of this member, and has sent it all.
  bool HasParted(uint32_t member) const;
  absl::Status Lost(uint32_t member, const absl::Status& why) const;
  absl::Status Dishonest(uint32_t member, const char* what) const;

  fabric::Fabric& fabric_;
  EndpointOptions options_;
  // Destroyed in reverse: queue pairs, their completion queue, the memory.
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::Listener> listener_;  // until all have connected
  std::string address_;
  std::vector<Member> members_;
  /// Connections whose peers have not said hello.
  std::array<std::unique_ptr<fabric::QueuePair>, kLobby> lobby_;
  uint32_t next_in_lobby_ = 0;
  std::vector<Exchange> exchanges_;
  std::vector<SendBuffer> buffers_;
  std::vector<std::pair<uint32_t, uint32_t>> owed_;  // credits to send, by member and exchange
  uint64_t taken_ = 0, sent_bytes_ = 0, sent_messages_ = 0, discarded_ = 0;
};

}  // namespace nam::execution
