#include "bench/shuffle_exchange.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr int64_t kConnectUs = 10'000'000;
constexpr int64_t kCancelCheckUs = 20'000;

/// A completion's id: the peer, what it was, and which buffer or channel.
enum class What : uint64_t { kReceived, kSent, kCreditSent };
constexpr uint64_t IdOf(What what, uint32_t peer, uint32_t number) {
  return uint64_t{peer} << 40 | static_cast<uint64_t>(what) << 32 | number;
}
constexpr What WhatOf(uint64_t id) {
  return static_cast<What>(id >> 32 & 0xFF);
}
constexpr uint32_t PeerOf(uint64_t id) {
  return static_cast<uint32_t>(id >> 40);
}
constexpr uint32_t NumberOf(uint64_t id) {
  return static_cast<uint32_t>(id);
}

}  // namespace

Exchange::Exchange(fabric::Fabric& fabric, uint32_t self, uint32_t peers, const ExchangeOptions& options)
    : fabric_(fabric), self_(self), options_(options), peers_(peers) {
  for (auto& kind : inbox_) kind.resize(options.channels);
}

Exchange::~Exchange() = default;

absl::StatusOr<std::unique_ptr<Exchange>> Exchange::Open(fabric::Fabric& fabric, uint32_t self,
                                                         uint32_t peers, const ExchangeOptions& options) {
  if (self >= peers || options.channels < 1 || options.channels > 64 || options.credits < 2 ||
      options.credits % 2 != 0 || options.credits > 64 || options.batch_bytes < 1024 ||
      options.batch_bytes > fabric::kMaxSendBytes || options.batch_bytes % 64 != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a shuffle of batches of %d bytes (1024 to %d in steps of 64) with %d credits (2 to "
                        "64, even) on %d channels (1 to 64)",
                        options.batch_bytes, fabric::kMaxSendBytes, options.credits, options.channels));
  }
  std::unique_ptr<Exchange> exchange(new Exchange(fabric, self, peers, options));
  const size_t bytes = size_t{peers} * exchange->buffers() * options.batch_bytes;
  NAM_ASSIGN_OR_RETURN(exchange->region_, fabric.Allocate(bytes, {.access = fabric::Access::kNone}));
  const fabric::QueuePairOptions pair = exchange->PairOptions();
  NAM_ASSIGN_OR_RETURN(exchange->completions_,
                       fabric.CreateCompletionQueue(peers * (pair.send_depth + pair.receive_depth)));
  // A simulated process has one host.
  const std::string host = fabric.kind() == fabric::Kind::kSim ? "" : "127.0.0.1";
  NAM_ASSIGN_OR_RETURN(exchange->listener_,
                       fabric.Listen({.address = AnyAddress(fabric.kind(), host), .passive = false}));
  for (uint32_t peer = 0; peer < peers; ++peer) {
    auto& channels = exchange->peers_[peer].channels;
    channels.resize(options.channels);
    for (uint32_t c = 0; c < options.channels; ++c) {
      channels[c].credits = options.credits;
      channels[c].outgoing.data = exchange->BufferOf(peer, exchange->receives() + 2 * c, 0).data;
    }
  }
  return exchange;
}

fabric::QueuePairOptions Exchange::PairOptions() const {
  // Two batches and all credit messages of each channel, and as many that are over but not seen yet.
  return {.send_depth = 4 * options_.channels * (options_.credits + 2), .receive_depth = receives()};
}

fabric::LocalBuffer Exchange::BufferOf(uint32_t peer, uint32_t buffer, uint32_t bytes) const {
  return region_->Slice((size_t{peer} * buffers() + buffer) * options_.batch_bytes, bytes);
}

absl::Status Exchange::Connect(Exchange& from, Exchange& to) {
  const Deadline deadline = from.fabric_.clock().After(kConnectUs);
  NAM_ASSIGN_OR_RETURN(auto there, from.fabric_.Connect(to.listener_->address(), *from.completions_,
                                                        from.PairOptions(), deadline));
  NAM_RETURN_IF_ERROR(from.Adopt(to.self_, std::move(there)));
  NAM_ASSIGN_OR_RETURN(auto here, to.listener_->Accept(*to.completions_, to.PairOptions(), deadline));
  return to.Adopt(from.self_, std::move(here));
}

absl::Status Exchange::Adopt(uint32_t peer, std::unique_ptr<fabric::QueuePair> queue_pair) {
  peers_[peer].queue_pair = std::move(queue_pair);
  for (uint32_t i = 0; i < receives(); ++i) NAM_RETURN_IF_ERROR(PostReceive(peer, i));
  return absl::OkStatus();
}

absl::Status Exchange::PostReceive(uint32_t peer, uint32_t buffer) {
  const fabric::ReceiveRequest request{.id = IdOf(What::kReceived, peer, buffer),
                                       .into = BufferOf(peer, buffer, options_.batch_bytes)};
  return peers_[peer].queue_pair->PostReceive({&request, 1});
}

absl::Status Exchange::Send(uint32_t peer, const ShuffleHeader& header, uint32_t bytes) {
  Channel& channel = ChannelOf(header.channel, peer);
  NAM_CHECK(peer != self_ && channel.credits > 0 && bytes <= options_.batch_bytes);
  std::memcpy(channel.outgoing.data, &header, sizeof(header));
  const uint32_t first = receives() + 2 * header.channel;
  const fabric::WorkRequest request =
      fabric::WorkRequest::Send(IdOf(What::kSent, peer, uint32_t{header.channel} << 1 | channel.filling),
                                BufferOf(peer, first + channel.filling, bytes));
  NAM_RETURN_IF_ERROR(peers_[peer].queue_pair->Post({&request, 1}));
  --channel.credits;
  channel.under_way[channel.filling] = true;
  channel.filling ^= 1;
  channel.outgoing = {BufferOf(peer, first + channel.filling, 0).data, 0};
  sent_bytes_ += bytes;
  ++sent_messages_;
  return absl::OkStatus();
}

absl::Status Exchange::Poll(bool wait, const std::atomic<bool>& cancel) {
  size_t n = completions_->Poll(done_);
  if (n == 0 && wait) {
    Clock& clock = fabric_.clock();
    const Deadline give_up = clock.After(options_.timeout_us);
    while (n == 0) {
      if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
      if (clock.Passed(give_up)) return absl::UnavailableError("the shuffle's peers do not go on");
      n = completions_->Wait(done_, clock.After(kCancelCheckUs));
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const fabric::Completion& completion = done_[i];
    const uint32_t peer = PeerOf(completion.id), number = NumberOf(completion.id);
    if (!completion.ok()) return CompletionError(completion, *peers_[peer].queue_pair);
    if (WhatOf(completion.id) == What::kSent) {
      ChannelOf(number >> 1, peer).under_way[number & 1] = false;
    } else if (WhatOf(completion.id) == What::kReceived) {
      NAM_RETURN_IF_ERROR(Received(completion));
    }
  }
  return absl::OkStatus();
}

absl::Status Exchange::Received(const fabric::Completion& completion) {
  Message message{.peer = PeerOf(completion.id), .buffer = NumberOf(completion.id)};
  message.data = BufferOf(message.peer, message.buffer, 0).data;
  if (completion.bytes < sizeof(ShuffleHeader))
    return absl::DataLossError("a shuffle's message is too short");
  std::memcpy(&message.header, message.data, sizeof(ShuffleHeader));
  const ShuffleHeader& header = message.header;
  if (header.channel >= options_.channels || header.kind > ShuffleHeader::kCredit)
    return absl::DataLossError("a shuffle's message is of no channel");
  if (header.kind != ShuffleHeader::kCredit) {
    inbox_[header.kind][header.channel].push_back(message);
    return absl::OkStatus();
  }
  ChannelOf(header.channel, message.peer).credits += header.rows;
  return PostReceive(message.peer, message.buffer);
}

std::optional<Exchange::Message> Exchange::Take(uint16_t kind, uint32_t least) {
  for (uint32_t channel = options_.channels; channel-- > least;) {
    std::deque<Message>& waiting = inbox_[kind][channel];
    if (waiting.empty()) continue;
    const Message message = waiting.front();
    waiting.pop_front();
    return message;
  }
  return std::nullopt;
}

absl::Status Exchange::Done(const Message& message) {
  NAM_RETURN_IF_ERROR(PostReceive(message.peer, message.buffer));
  Channel& channel = ChannelOf(message.header.channel, message.peer);
  if (++channel.owed < returned_at_once()) return absl::OkStatus();
  return ReturnCredits(message.peer, message.header.channel);
}

absl::Status Exchange::ReturnCredits(uint32_t peer, uint32_t channel) {
  ShuffleHeader header{.kind = ShuffleHeader::kCredit,
                       .channel = static_cast<uint16_t>(channel),
                       .rows = std::exchange(ChannelOf(channel, peer).owed, 0)};
  // Inline: the bytes are taken at once.
  fabric::WorkRequest request = fabric::WorkRequest::Send(
      IdOf(What::kCreditSent, peer, channel),
      {.data = reinterpret_cast<std::byte*>(&header), .bytes = sizeof(header), .lkey = region_->lkey()});
  request.inlined = true;
  return peers_[peer].queue_pair->Post({&request, 1});
}

}  // namespace nam::bench
