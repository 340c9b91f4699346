#include "execution/exchange/send_receive_endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

constexpr int64_t kCancelCheckUs = 20'000;
/// Hellos and connections arrive at different places: waits so long at each by turns.
constexpr int64_t kMeetingTurnUs = 1'000;
constexpr uint32_t kHeaderBytes = sizeof(MessageHeader);

/// A completion's id: its kind, the member, and the buffer.
enum class What : uint8_t { kReceived, kSent, kHeaderSent, kGreeting };
constexpr uint64_t IdOf(What what, uint32_t member, uint32_t number) {
  return uint64_t{member} << 40 | uint64_t{static_cast<uint8_t>(what)} << 32 | number;
}
constexpr What WhatOf(uint64_t id) {
  return static_cast<What>(id >> 32 & 0xFF);
}
constexpr uint32_t MemberOf(uint64_t id) {
  return static_cast<uint32_t>(id >> 40);
}
constexpr uint32_t NumberOf(uint64_t id) {
  return static_cast<uint32_t>(id);
}

MessageHeader HeaderAt(const std::byte* data) {
  MessageHeader header;
  std::memcpy(&header, data, kHeaderBytes);
  return header;
}

}  // namespace

SendReceiveEndpoint::SendReceiveEndpoint(fabric::Fabric& fabric, EndpointOptions options)
    : fabric_(fabric),
      options_(std::move(options)),
      members_(options_.members.size()),
      exchanges_(options_.exchanges.size()) {
  for (Member& member : members_) member.flows.resize(exchanges_.size());
  for (size_t e = 0; e < exchanges_.size(); ++e) {
    exchanges_[e].first_buffer = static_cast<uint32_t>(buffers_.size());
    for (size_t group = 0; group < options_.exchanges[e].size(); ++group) {
      for (uint32_t i = 0; i < kBuffersOfGroup; ++i)
        buffers_.push_back({static_cast<uint16_t>(e), static_cast<uint16_t>(group)});
    }
  }
}

SendReceiveEndpoint::~SendReceiveEndpoint() = default;

uint64_t SendReceiveEndpoint::RegisteredBytes(const EndpointOptions& options) {
  uint64_t messages = uint64_t{options.members.size()} * ReceivesOf(options);
  for (const std::vector<TransmissionGroup>& groups : options.exchanges)
    messages += groups.size() * kBuffersOfGroup;
  return messages * options.message_bytes + kLobby * uint64_t{64};
}

absl::StatusOr<std::unique_ptr<SendReceiveEndpoint>> SendReceiveEndpoint::Open(fabric::Fabric& fabric,
                                                                               EndpointOptions options,
                                                                               const std::string& host) {
  NAM_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<SendReceiveEndpoint> endpoint(new SendReceiveEndpoint(fabric, std::move(options)));
  NAM_ASSIGN_OR_RETURN(endpoint->region_, fabric.Allocate(RegisteredBytes(endpoint->options_),
                                                          {.access = fabric::Access::kNone}));
  const fabric::QueuePairOptions pair = endpoint->PairOptions();
  NAM_ASSIGN_OR_RETURN(
      endpoint->completions_,
      fabric.CreateCompletionQueue((endpoint->members() + kLobby) * (pair.send_depth + pair.receive_depth)));
  NAM_ASSIGN_OR_RETURN(endpoint->listener_,
                       fabric.Listen({.address = AnyAddress(fabric.kind(), host), .passive = false}));
  endpoint->address_ = endpoint->listener_->address();
  return endpoint;
}

fabric::QueuePairOptions SendReceiveEndpoint::PairOptions() const {
  // The buffers and the credits of each exchange, and completed ones that were not polled yet. If it is full
  // nevertheless, sends and credits wait.
  return {.send_depth = 4 * exchanges() * (options_.credits + kBuffersOfGroup),
          .receive_depth = receives(),
          .inline_bytes_max = kHeaderBytes};
}

void SendReceiveEndpoint::ResetFlows() {
  for (Member& member : members_)
    member.flows.assign(exchanges(), {.may_send = options_.credits, .credited = options_.credits});
}

fabric::LocalBuffer SendReceiveEndpoint::ReceiveBuffer(uint32_t member, uint32_t number,
                                                       uint32_t bytes) const {
  return region_->Slice((size_t{member} * receives() + number) * options_.message_bytes, bytes);
}

fabric::LocalBuffer SendReceiveEndpoint::BufferToSend(uint32_t number, uint32_t bytes) const {
  return region_->Slice((size_t{members()} * receives() + number) * options_.message_bytes, bytes);
}

fabric::LocalBuffer SendReceiveEndpoint::LobbyBuffer(uint32_t number) const {
  const size_t messages = size_t{members()} * receives() + buffers_.size();
  return region_->Slice(messages * options_.message_bytes + size_t{number} * 64, kHeaderBytes);
}

// -- Meeting.

absl::Status SendReceiveEndpoint::Connect(std::span<const std::string> addresses, Deadline deadline,
                                          const std::atomic<bool>& cancel) {
  if (addresses.size() != members())
    return absl::InvalidArgumentError("an exchange among members without an address each");
  ResetFlows();
  for (uint32_t member = 0; member < options_.self; ++member)
    NAM_RETURN_IF_ERROR(ConnectTo(member, addresses[member], deadline));
  Clock& clock = fabric_.clock();
  std::array<fabric::Completion, 32> done;
  for (bool accepts = true; !MetAll(); accepts = !accepts) {
    if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
    if (clock.Passed(deadline)) {
      const auto missing = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
        return !member.met && &member != &members_[options_.self];
      });
      return Lost(static_cast<uint32_t>(missing - members_.begin()),
                  absl::DeadlineExceededError("it has not connected in time"));
    }
    const Deadline until{std::min(deadline.ns, clock.After(kMeetingTurnUs).ns)};
    if (accepts && !MetAllAbove()) NAM_RETURN_IF_ERROR(AcceptSome(until));
    const size_t n = accepts ? completions_->Poll(done) : completions_->Wait(done, until);
    NAM_RETURN_IF_ERROR(HandleCompletions({done.data(), n}));
  }
  listener_.reset();
  for (std::unique_ptr<fabric::QueuePair>& visitor : lobby_) visitor.reset();
  return absl::OkStatus();
}

absl::Status SendReceiveEndpoint::ConnectTo(uint32_t member, const std::string& address, Deadline deadline) {
  auto connected = fabric_.Connect(address, *completions_, PairOptions(), deadline);
  if (!connected.ok()) return Lost(member, connected.status());
  NAM_RETURN_IF_ERROR(Adopt(member, *std::move(connected)));
  return SayHello(member);
}

absl::Status SendReceiveEndpoint::AcceptSome(Deadline until) {
  auto accepted = listener_->Accept(*completions_, PairOptions(), until);
  if (absl::IsDeadlineExceeded(accepted.status())) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(accepted.status());
  const uint32_t visitor = next_in_lobby_++ % kLobby;
  lobby_[visitor] = *std::move(accepted);
  const fabric::ReceiveRequest request{.id = IdOf(What::kGreeting, 0, visitor), .into = LobbyBuffer(visitor)};
  // A visitor that has left again is ignored.
  if (!lobby_[visitor]->PostReceive({&request, 1}).ok()) lobby_[visitor].reset();
  return absl::OkStatus();
}

absl::Status SendReceiveEndpoint::Greeted(const fabric::Completion& completion, uint32_t visitor) {
  // The completion belongs to a visitor that was rejected meanwhile.
  if (lobby_[visitor] == nullptr || lobby_[visitor]->id() != completion.queue_pair) return absl::OkStatus();
  std::unique_ptr<fabric::QueuePair> queue_pair = std::move(lobby_[visitor]);
  if (!completion.ok() || completion.bytes != kHeaderBytes) return absl::OkStatus();
  const MessageHeader hello = HeaderAt(LobbyBuffer(visitor).data);
  if (!IsExpected(hello) || hello.sender <= options_.self || members_[hello.sender].queue_pair != nullptr)
    return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Adopt(hello.sender, std::move(queue_pair)));
  members_[hello.sender].met = true;
  return SayHello(hello.sender);
}

bool SendReceiveEndpoint::IsExpected(const MessageHeader& hello) const {
  return hello.magic == MessageHeader::kMagic && hello.kind == MessageHeader::kHello &&
         hello.attempt == options_.attempt && hello.stage == options_.stage && hello.sender < members() &&
         hello.payload_bytes == options_.message_bytes && hello.credit == options_.credits;
}

absl::Status SendReceiveEndpoint::Adopt(uint32_t member, std::unique_ptr<fabric::QueuePair> queue_pair) {
  members_[member].queue_pair = std::move(queue_pair);
  for (uint32_t i = 0; i < receives(); ++i) NAM_RETURN_IF_ERROR(PostReceive(member, i));
  return absl::OkStatus();
}

absl::Status SendReceiveEndpoint::SayHello(uint32_t member) {
  return PostHeader(
      member,
      {.kind = MessageHeader::kHello, .payload_bytes = options_.message_bytes, .credit = options_.credits});
}

bool SendReceiveEndpoint::MetAllAbove() const {
  return std::all_of(members_.begin() + options_.self + 1, members_.end(),
                     [](const Member& member) { return member.met; });
}

bool SendReceiveEndpoint::MetAll() const {
  return MetAllAbove() && std::all_of(members_.begin(), members_.begin() + options_.self,
                                      [](const Member& member) { return member.met; });
}

// -- Sending.

std::optional<Endpoint::Buffer> SendReceiveEndpoint::GetFree(uint32_t exchange, uint32_t group) {
  const uint32_t first = exchanges_[exchange].first_buffer + group * kBuffersOfGroup;
  for (uint32_t number = first; number < first + kBuffersOfGroup; ++number) {
    SendBuffer& buffer = buffers_[number];
    if (buffer.taken || buffer.under_way > 0) continue;
    buffer.taken = true;
    const fabric::LocalBuffer memory = BufferToSend(number, options_.message_bytes);
    return Buffer{.payload = {memory.data + kHeaderBytes, options_.message_bytes - kHeaderBytes},
                  .exchange = buffer.exchange,
                  .group = buffer.group,
                  .number = number};
  }
  return std::nullopt;
}

void SendReceiveEndpoint::ChargeMessage(uint32_t bytes) {
  if (options_.message_cost.message_ps > 0) fabric_.clock().Charge(options_.message_cost.Ns(bytes));
}

absl::StatusOr<bool> SendReceiveEndpoint::Send(const Buffer& buffer, const Contents& contents) {
  SendBuffer& own = buffers_[buffer.number];
  const TransmissionGroup& group = options_.exchanges[own.exchange][own.group];
  NAM_CHECK(own.taken && contents.payload_bytes <= buffer.payload.size(), "a buffer of the caller's");
  for (const uint32_t to : group) {
    const Flow& flow = members_[to].flows[own.exchange];
    NAM_CHECK(!flow.last_sent, "nothing follows the last message");
    if (to == options_.self) continue;
    if (flow.sent >= flow.may_send || members_[to].posted >= PairOptions().send_depth) return false;
  }
  const MessageHeader header{.kind = MessageHeader::kRows,
                             .exchange = own.exchange,
                             .attempt = options_.attempt,
                             .stage = options_.stage,
                             .rows = contents.rows,
                             .payload_bytes = contents.payload_bytes,
                             .sender = static_cast<uint16_t>(options_.self),
                             .last = contents.last};
  const fabric::LocalBuffer memory = BufferToSend(buffer.number, kHeaderBytes + contents.payload_bytes);
  std::memcpy(memory.data, &header, kHeaderBytes);
  own.taken = false;
  for (const uint32_t to : group) {
    Flow& flow = members_[to].flows[own.exchange];
    flow.last_sent = contents.last;
    ++own.under_way;
    if (to == options_.self) {
      exchanges_[own.exchange].inbox.push_back({.payload = buffer.payload.first(contents.payload_bytes),
                                                .rows = contents.rows,
                                                .exchange = own.exchange,
                                                .sender = static_cast<uint16_t>(options_.self),
                                                .last = contents.last,
                                                .number = buffer.number});
      continue;
    }
    ++flow.sent;
    ChargeMessage(memory.bytes);
    const auto request = fabric::WorkRequest::Send(IdOf(What::kSent, to, buffer.number), memory);
    const absl::Status posted = members_[to].queue_pair->Post({&request, 1});
    if (!posted.ok()) return Lost(to, posted);
    ++members_[to].posted;
    sent_bytes_ += memory.bytes;
    ++sent_messages_;
  }
  return true;
}

bool SendReceiveEndpoint::Idle() const {
  return std::all_of(buffers_.begin(), buffers_.end(),
                     [](const SendBuffer& buffer) { return buffer.under_way == 0; });
}

// -- Completions.

absl::Status SendReceiveEndpoint::Poll(bool wait, const std::atomic<bool>& cancel) {
  std::array<fabric::Completion, 32> done;
  size_t n = completions_->Poll(done);
  if (n == 0 && wait) {
    Clock& clock = fabric_.clock();
    const Deadline give_up = clock.After(options_.timeout_us);
    while (n == 0) {
      if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
      if (clock.Passed(give_up)) {
        absl::Status silence = absl::UnavailableError(absl::StrFormat(
            "no member of the exchange has sent or taken anything for %d ms", options_.timeout_us / 1000));
        // The member is arbitrary: to this endpoint they are all silent.
        silence.SetPayload(kExchangeMemberLost, absl::Cord());
        return silence;
      }
      n = completions_->Wait(done, clock.After(kCancelCheckUs));
    }
  }
  return HandleCompletions({done.data(), n});
}

absl::Status SendReceiveEndpoint::HandleCompletions(std::span<const fabric::Completion> completions) {
  taken_ += completions.size();
  for (const fabric::Completion& completion : completions) NAM_RETURN_IF_ERROR(HandleCompletion(completion));
  return owed_.empty() ? absl::OkStatus() : ReturnOwedCredits();
}

absl::Status SendReceiveEndpoint::HandleCompletion(const fabric::Completion& completion) {
  const uint32_t member = MemberOf(completion.id), number = NumberOf(completion.id);
  const What what = WhatOf(completion.id);
  if (what == What::kGreeting) return Greeted(completion, number);
  if (what == What::kSent) --buffers_[number].under_way;
  if (what != What::kReceived) --members_[member].posted;
  if (!completion.ok()) {
    if (HasParted(member)) return absl::OkStatus();
    return Lost(member, CompletionError(completion, *members_[member].queue_pair));
  }
  return what == What::kReceived ? Received(completion, member, number) : absl::OkStatus();
}

bool SendReceiveEndpoint::HasParted(uint32_t member) const {
  const std::vector<Flow>& flows = members_[member].flows;
  return std::all_of(flows.begin(), flows.end(),
                     [](const Flow& flow) { return flow.last_sent && flow.last_received; });
}

absl::Status SendReceiveEndpoint::Received(const fabric::Completion& completion, uint32_t member,
                                           uint32_t number) {
  if (completion.bytes < kHeaderBytes) return Dishonest(member, "a message without a header");
  const MessageHeader header = HeaderAt(ReceiveBuffer(member, number, kHeaderBytes).data);
  if (header.magic != MessageHeader::kMagic) return Dishonest(member, "a malformed message");
  if (header.attempt != options_.attempt || header.stage != options_.stage) {
    ++discarded_;
    return PostReceive(member, number);
  }
  const uint32_t payload_bytes = completion.bytes - kHeaderBytes;
  if (header.sender != member) return Dishonest(member, "a message of another member");
  switch (header.kind) {
    case MessageHeader::kRows:
      if (header.payload_bytes != payload_bytes) return Dishonest(member, "a message of another size");
      return ReceivedRows(header, member, number);
    case MessageHeader::kCredit:
      if (payload_bytes != 0) return Dishonest(member, "a message of another size");
      NAM_RETURN_IF_ERROR(PostReceive(member, number));
      return ReceivedCredit(header, member);
    case MessageHeader::kHello:
      // The answer of a member that this one has connected to.
      if (payload_bytes != 0 || member > options_.self || members_[member].met || !IsExpected(header))
        return Dishonest(member, "another greeting");
      members_[member].met = true;
      return PostReceive(member, number);
  }
  return Dishonest(member, "a message of an unknown kind");
}

absl::Status SendReceiveEndpoint::ReceivedRows(const MessageHeader& header, uint32_t member,
                                               uint32_t number) {
  if (header.exchange >= exchanges()) return Dishonest(member, "a message of an unknown exchange");
  Flow& flow = members_[member].flows[header.exchange];
  if (flow.last_received) return Dishonest(member, "a message after its last one");
  if (flow.received >= flow.credited) return Dishonest(member, "more messages than it has credit for");
  ++flow.received;
  ChargeMessage(kHeaderBytes + header.payload_bytes);
  flow.last_received = header.last != 0;
  const fabric::LocalBuffer memory = ReceiveBuffer(member, number, kHeaderBytes + header.payload_bytes);
  exchanges_[header.exchange].inbox.push_back({.payload = {memory.data + kHeaderBytes, header.payload_bytes},
                                               .rows = header.rows,
                                               .exchange = header.exchange,
                                               .sender = static_cast<uint16_t>(member),
                                               .last = header.last != 0,
                                               .number = number});
  return absl::OkStatus();
}

absl::Status SendReceiveEndpoint::ReceivedCredit(const MessageHeader& header, uint32_t member) {
  if (header.exchange >= exchanges()) return Dishonest(member, "credit for an unknown exchange");
  Flow& flow = members_[member].flows[header.exchange];
  if (header.credit < flow.may_send || header.credit > flow.sent + options_.credits)
    return Dishonest(member, "credit that it cannot give");
  flow.may_send = header.credit;
  return absl::OkStatus();
}

// -- Receiving.

std::optional<Endpoint::Message> SendReceiveEndpoint::GetData(uint32_t first, uint32_t end) {
  while (end > first) {
    std::deque<Message>& inbox = exchanges_[--end].inbox;
    if (inbox.empty()) continue;
    const Message message = inbox.front();
    inbox.pop_front();
    return message;
  }
  return std::nullopt;
}

absl::Status SendReceiveEndpoint::Release(const Message& message) {
  if (message.last) ++exchanges_[message.exchange].ended;
  if (message.sender == options_.self) {
    --buffers_[message.number].under_way;
    return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(PostReceive(message.sender, message.number));
  Flow& flow = members_[message.sender].flows[message.exchange];
  ++flow.released;
  const bool enough = flow.released + options_.credits - flow.credited >= returned_at_once();
  if (!enough || flow.last_received) return absl::OkStatus();
  return ReturnCredit(message.sender, message.exchange);
}

absl::Status SendReceiveEndpoint::ReturnCredit(uint32_t member, uint32_t exchange) {
  Flow& flow = members_[member].flows[exchange];
  if (members_[member].posted >= PairOptions().send_depth) {
    if (!std::exchange(flow.owes_credit, true)) owed_.emplace_back(member, exchange);
    return absl::OkStatus();
  }
  flow.credited = flow.released + options_.credits;
  return PostHeader(
      member,
      {.kind = MessageHeader::kCredit, .exchange = static_cast<uint16_t>(exchange), .credit = flow.credited});
}

absl::Status SendReceiveEndpoint::ReturnOwedCredits() {
  for (const auto& [member, exchange] : std::exchange(owed_, {})) {
    members_[member].flows[exchange].owes_credit = false;
    if (!members_[member].flows[exchange].last_received) NAM_RETURN_IF_ERROR(ReturnCredit(member, exchange));
  }
  return absl::OkStatus();
}

absl::Status SendReceiveEndpoint::PostReceive(uint32_t member, uint32_t number) {
  const fabric::ReceiveRequest request{.id = IdOf(What::kReceived, member, number),
                                       .into = ReceiveBuffer(member, number, options_.message_bytes)};
  const absl::Status posted = members_[member].queue_pair->PostReceive({&request, 1});
  return posted.ok() || HasParted(member) ? absl::OkStatus() : Lost(member, posted);
}

absl::Status SendReceiveEndpoint::PostHeader(uint32_t member, const MessageHeader& contents) {
  MessageHeader header = contents;
  header.attempt = options_.attempt;
  header.stage = options_.stage;
  header.sender = static_cast<uint16_t>(options_.self);
  // Inline: the bytes are copied at once.
  fabric::WorkRequest request = fabric::WorkRequest::Send(
      IdOf(What::kHeaderSent, member, 0),
      {.data = reinterpret_cast<std::byte*>(&header), .bytes = kHeaderBytes, .lkey = region_->lkey()});
  request.inlined = true;
  const absl::Status posted = members_[member].queue_pair->Post({&request, 1});
  if (!posted.ok()) return Lost(member, posted);
  ++members_[member].posted;
  return absl::OkStatus();
}

// -- Attempts.

absl::Status SendReceiveEndpoint::Begin(uint32_t stage, uint64_t attempt) {
  for (SendBuffer& buffer : buffers_) buffer.taken = false;
  for (Exchange& exchange : exchanges_) {
    exchange.ended = 0;
    for (const Message& message : std::exchange(exchange.inbox, {})) {
      if (message.sender == options_.self) {
        --buffers_[message.number].under_way;
      } else {
        NAM_RETURN_IF_ERROR(PostReceive(message.sender, message.number));
      }
    }
  }
  owed_.clear();
  ResetFlows();
  options_.stage = stage;
  options_.attempt = attempt;
  return absl::OkStatus();
}

// -- Errors.

absl::Status SendReceiveEndpoint::Lost(uint32_t member, const absl::Status& why) const {
  absl::Status error = absl::UnavailableError(
      absl::StrCat(options_.members[member], " is lost to the exchange: ", std::string(why.message())));
  error.SetPayload(kExchangeMemberLost, absl::Cord(absl::StrCat(member)));
  return error;
}

absl::Status SendReceiveEndpoint::Dishonest(uint32_t member, const char* what) const {
  absl::Status error =
      absl::DataLossError(absl::StrCat(options_.members[member], " sends ", what, " by an exchange"));
  error.SetPayload(kExchangeMemberLost, absl::Cord(absl::StrCat(member)));
  return error;
}

}  // namespace nam::execution
