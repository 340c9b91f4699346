#include "bench/two_phase/transport.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "bench/two_phase/send_transport.h"
#include "bench/two_phase/socket_transport.h"
#include "bench/two_phase/wire.h"

namespace nam::bench::two_phase {

absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(fabric::Fabric& fabric,
                                                         const TransportOptions& options) {
  if (options.kind == TransportOptions::Kind::kSend) return SendTransport::Open(fabric, options);
  if (fabric.capabilities().simulated) {
    return absl::FailedPreconditionError("sockets are real: the simulator has SEND/RECEIVE only");
  }
  return SocketTransport::Open(options);
}

ConnectionId Transport::Add(std::unique_ptr<Stream> stream) {
  stream->id = ConnectionId(++last_id_);
  return streams_.emplace(stream->id, std::move(stream)).first->first;
}

Transport::Stream* Transport::Find(ConnectionId connection) {
  const auto found = streams_.find(connection);
  return found == streams_.end() || found->second->lost || found->second->closed ? nullptr
                                                                                 : found->second.get();
}

std::vector<std::byte>& Transport::Output(ConnectionId connection) {
  Stream* const stream = Find(connection);
  if (stream == nullptr) {
    nowhere_.clear();
    return nowhere_;
  }
  if (!std::exchange(stream->dirty, true)) dirty_.push_back(connection);
  return stream->output;
}

void Transport::Close(ConnectionId connection) {
  Stream* const stream = Find(connection);
  if (stream == nullptr) return;
  stream->closed = true;
  dead_.push_back(connection);
}

void Transport::MarkLost(Stream& stream) {
  if (stream.lost || stream.closed) return;
  stream.lost = true;
  dead_.push_back(stream.id);
}

void Transport::Receive(FrameSink& sink, Deadline deadline) {
  PushAll();
  if (dead_.empty()) Await(sink, deadline);
  DestroyDead(sink);
}

void Transport::PushAll() {
  for (const ConnectionId connection : dirty_) {
    Stream* const stream = Find(connection);
    if (stream == nullptr) continue;
    stream->dirty = false;
    if (!Push(*stream)) MarkLost(*stream);
  }
  dirty_.clear();
}

void Transport::DestroyDead(FrameSink& sink) {
  while (!dead_.empty()) {
    const std::vector<ConnectionId> dead = std::exchange(dead_, {});
    for (const ConnectionId connection : dead) {
      const auto found = streams_.find(connection);
      const bool untold = found->second->lost;
      streams_.erase(found);
      if (untold) sink.OnLost(connection);
    }
  }
}

void Transport::Deliver(Stream& stream, std::span<const std::byte> arrived, FrameSink& sink) {
  if (stream.input.empty()) {
    const size_t taken = DeliverWhole(stream, arrived, sink);
    stream.input.assign(arrived.begin() + static_cast<ptrdiff_t>(taken), arrived.end());
    return;
  }
  stream.input.insert(stream.input.end(), arrived.begin(), arrived.end());
  const size_t taken = DeliverWhole(stream, stream.input, sink);
  stream.input.erase(stream.input.begin(), stream.input.begin() + static_cast<ptrdiff_t>(taken));
}

/// The bytes of the whole frames at the beginning of `bytes`.
size_t Transport::DeliverWhole(Stream& stream, std::span<const std::byte> bytes, FrameSink& sink) {
  size_t at = 0;
  uint32_t length = 0;
  while (!stream.closed && !stream.lost && bytes.size() - at >= sizeof(length)) {
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    if (length < sizeof(MessageHead) || length > kFrameBytesMax) {
      MarkLost(stream);
      break;
    }
    if (bytes.size() - at - sizeof(length) < length) break;
    frames_received_.store(frames_received() + 1, std::memory_order_relaxed);
    sink.OnFrame(stream.id, bytes.subspan(at + sizeof(length), length));
    at += sizeof(length) + length;
  }
  return at;
}

}  // namespace nam::bench::two_phase
