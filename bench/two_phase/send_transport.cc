#include "bench/two_phase/send_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "bench/two_phase/wire.h"

namespace nam::bench::two_phase {
namespace {

// Listeners have no completions: a server polls for connections between its messages.
constexpr int64_t kAcceptEveryNs = 1'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> SendTransport::Open(fabric::Fabric& fabric,
                                                               const TransportOptions& options) {
  if (options.buffer_bytes == 0 || options.buffer_bytes > fabric::kMaxSendBytes || options.send_depth < 2 ||
      options.receive_depth == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "SEND/RECEIVE transport: buffer_bytes %d (1 to %d), send_depth %d (2 or more), receive_depth %d "
        "(1 or more)",
        options.buffer_bytes, fabric::kMaxSendBytes, options.send_depth, options.receive_depth));
  }
  std::unique_ptr<SendTransport> transport(new SendTransport(fabric, options));
  NAM_ASSIGN_OR_RETURN(
      transport->completions_,
      fabric.CreateCompletionQueue(options.connections_max * (options.send_depth + options.receive_depth)));
  if (!options.host.empty()) {
    NAM_ASSIGN_OR_RETURN(
        transport->listener_,
        fabric.Listen({.address = fabric::AnyAddress(fabric.kind(), options.host), .passive = false}));
    transport->address_ = transport->listener_->address();
  }
  return transport;
}

SendTransport::~SendTransport() {
  DestroyStreams();  // before their completion queue
}

fabric::QueuePairOptions SendTransport::PairOptions() const {
  return {.send_depth = options_.send_depth, .receive_depth = options_.receive_depth};
}

fabric::LocalBuffer SendTransport::ReceiveBuffer(const Pair& pair, uint32_t buffer, uint32_t bytes) const {
  return pair.region->Slice(size_t{buffer} * options_.buffer_bytes, bytes);
}

fabric::LocalBuffer SendTransport::SendBuffer(const Pair& pair, uint64_t number, uint32_t bytes) const {
  const size_t buffer = options_.receive_depth + number % options_.send_depth;
  return pair.region->Slice(buffer * options_.buffer_bytes, bytes);
}

absl::StatusOr<ConnectionId> SendTransport::Connect(const std::string& address, Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<fabric::QueuePair> queue_pair,
                       fabric_.Connect(address, *completions_, PairOptions(), deadline));
  return Attach(std::move(queue_pair));
}

absl::StatusOr<ConnectionId> SendTransport::Attach(std::unique_ptr<fabric::QueuePair> queue_pair) {
  auto pair = std::make_unique<Pair>();
  const size_t buffers = size_t{options_.receive_depth} + options_.send_depth;
  NAM_ASSIGN_OR_RETURN(pair->region,
                       fabric_.Allocate(buffers * options_.buffer_bytes,
                                        {.access = fabric::Access::kNone, .huge_pages = false}));
  std::vector<fabric::ReceiveRequest> receives;
  for (uint32_t i = 0; i < options_.receive_depth; ++i) {
    receives.push_back({.id = i, .into = ReceiveBuffer(*pair, i, options_.buffer_bytes)});
  }
  NAM_RETURN_IF_ERROR(queue_pair->PostReceive(receives));
  const uint64_t queue_pair_id = queue_pair->id();
  pair->queue_pair = std::move(queue_pair);
  const ConnectionId id = Add(std::move(pair));
  connections_[queue_pair_id] = id;
  return id;
}

void SendTransport::AcceptAll() {
  while (true) {
    auto queue_pair = listener_->Accept(*completions_, PairOptions(), Deadline{0});
    if (!queue_pair.ok()) return;  // no peer is there, or one too many
    Attach(*std::move(queue_pair)).IgnoreError();
  }
}

/// The size of the next SEND: as much as fits, or one frame (or the next part of one).
uint32_t SendTransport::NextMessageBytes(Pair& pair) const {
  if (options_.coalesce) {
    return static_cast<uint32_t>(std::min<size_t>(pair.output.size() - pair.sent, options_.buffer_bytes));
  }
  if (pair.frame_left == 0) {
    uint32_t length = 0;
    std::memcpy(&length, pair.output.data() + pair.sent, sizeof(length));
    pair.frame_left = sizeof(length) + length;
  }
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(pair.frame_left, options_.buffer_bytes));
  pair.frame_left -= bytes;
  return bytes;
}

bool SendTransport::Push(Stream& stream) {
  auto& pair = static_cast<Pair&>(stream);
  batch_.clear();
  while (pair.sent < pair.output.size() && pair.posted - pair.completed < options_.send_depth) {
    const uint32_t bytes = NextMessageBytes(pair);
    const fabric::LocalBuffer buffer = SendBuffer(pair, pair.posted, bytes);
    std::memcpy(buffer.data, pair.output.data() + pair.sent, bytes);
    pair.sent += bytes;
    // Half of the ring comes back at once.
    const bool signaled = ++pair.posted % (options_.send_depth / 2) == 0;
    fabric::WorkRequest request = fabric::WorkRequest::Send(
        pair.posted, buffer, signaled ? fabric::Signal::kSignaled : fabric::Signal::kUnsignaled);
    request.inlined = bytes <= fabric::QueuePairOptions().inline_bytes_max;
    batch_.push_back(request);
  }
  if (pair.sent == pair.output.size()) {
    pair.output.clear();
    pair.sent = 0;
  }
  if (batch_.empty()) return true;
  if (options_.message_cpu_ns > 0) {
    fabric_.clock().Charge(options_.message_cpu_ns * static_cast<int64_t>(batch_.size()));
  }
  return pair.queue_pair->Post(batch_).ok();
}

void SendTransport::Await(FrameSink& sink, Deadline deadline) {
  if (listener_ != nullptr) {
    const int64_t now_ns = fabric_.clock().NowNs();
    if (now_ns >= accept_ns_) {
      AcceptAll();
      accept_ns_ = now_ns + kAcceptEveryNs;
    }
    deadline.ns = std::min(deadline.ns, accept_ns_);
  }
  if (!held_.empty()) deadline.ns = std::min(deadline.ns, held_.front().due_ns);
  std::array<fabric::Completion, 64> completions;
  const size_t count = completions_->Wait(completions, deadline);
  for (const fabric::Completion& completion : std::span(completions).first(count))
    HandleCompletion(completion);
  LetIn(sink);
}

void SendTransport::HandleCompletion(const fabric::Completion& completion) {
  const auto found = connections_.find(completion.queue_pair);
  if (found == connections_.end()) return;
  Stream* const stream = Find(found->second);
  if (stream == nullptr) {
    connections_.erase(found);
    return;
  }
  auto& pair = static_cast<Pair&>(*stream);
  const int64_t due_ns =
      options_.extra_latency_ns == 0 ? 0 : fabric_.clock().NowNs() + options_.extra_latency_ns;
  if (!completion.ok()) {
    held_.push_back({.due_ns = due_ns, .connection = pair.id, .lost = true});
  } else if (completion.opcode == fabric::Opcode::kReceive) {
    held_.push_back({due_ns, pair.id, static_cast<uint32_t>(completion.id), completion.bytes});
  } else {
    pair.completed = completion.id;
    if (!Push(pair)) MarkLost(pair);
  }
}

void SendTransport::LetIn(FrameSink& sink) {
  while (!held_.empty() && (held_.front().due_ns == 0 || held_.front().due_ns <= fabric_.clock().NowNs())) {
    const Held held = held_.front();
    held_.pop_front();
    Stream* const stream = Find(held.connection);
    if (stream == nullptr) continue;
    auto& pair = static_cast<Pair&>(*stream);
    if (held.lost) {
      MarkLost(pair);
      continue;
    }
    if (options_.message_cpu_ns > 0) fabric_.clock().Charge(options_.message_cpu_ns);
    Deliver(pair, {ReceiveBuffer(pair, held.buffer, held.bytes).data, held.bytes}, sink);
    const fabric::ReceiveRequest again{.id = held.buffer,
                                       .into = ReceiveBuffer(pair, held.buffer, options_.buffer_bytes)};
    if (!pair.queue_pair->PostReceive({&again, 1}).ok()) MarkLost(pair);
  }
}

}  // namespace nam::bench::two_phase
