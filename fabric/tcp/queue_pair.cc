#include "fabric/tcp/queue_pair.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"
#include "fabric/request_rules.h"

namespace nam::fabric::tcp {
namespace {

constexpr size_t kPartsMax = 256;  // per sendmsg or recvmsg

/// Appends the wire bytes of an operation from `done` on; they are `header`, then `payload`.
size_t AppendParts(std::span<iovec> parts, std::span<std::byte> header, std::span<std::byte> payload,
                   size_t done) {
  size_t count = 0;
  if (done < header.size()) parts[count++] = {header.data() + done, header.size() - done};
  const size_t payload_done = done > header.size() ? done - header.size() : 0;
  if (payload_done < payload.size()) {
    parts[count++] = {payload.data() + payload_done, payload.size() - payload_done};
  }
  return count;
}

template <typename Header>
std::span<std::byte> BytesOf(Header& header) {
  return {reinterpret_cast<std::byte*>(&header), sizeof(header)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueuePair>> TcpQueuePair::Create(std::shared_ptr<Core> core,
                                                                TcpCompletionQueue& queue,
                                                                const QueuePairOptions& options,
                                                                net::Stream requests, net::Stream served,
                                                                std::string peer) {
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
  std::unique_ptr<TcpQueuePair> pair(
      new TcpQueuePair(std::move(core), queue, options, std::move(requests), std::move(peer)));
  NAM_RETURN_IF_ERROR(queue.Attach(*pair));
  if (served.valid()) {
    NicThread& nic = pair->core_->AssignNic();
    pair->nic_ = &nic;
    pair->receives_->SetResume([&nic, id = pair->id_] { nic.Resume(id); });
    if (!nic.Add(pair->id_, std::move(served), {.receives = pair->receives_})) {
      return absl::FailedPreconditionError("the fabric is being destroyed");
    }
  }
  return pair;
}

TcpQueuePair::TcpQueuePair(std::shared_ptr<Core> core, TcpCompletionQueue& queue,
                           const QueuePairOptions& options, net::Stream requests, std::string peer)
    : core_(std::move(core)),
      queue_(queue),
      options_(options),
      id_(core_->NextId()),
      peer_(std::move(peer)),
      requests_(std::move(requests)),
      receives_(std::make_shared<ReceiveQueue>(id_, options.receive_depth, queue.doorbell())),
      places_(options.send_depth),
      inline_bytes_(std::make_unique<std::byte[]>(size_t{options.send_depth} * options.inline_bytes_max)) {}

TcpQueuePair::~TcpQueuePair() {
  queue_.Detach(*this);
  if (nic_ != nullptr) nic_->Remove(id_, CompletionStatus::kFlushed);
}

std::string TcpQueuePair::peer() const {
  return requests_.forged() ? peer_ + " (what came from there was forged, or damaged on the way)" : peer_;
}

absl::Status TcpQueuePair::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    NAM_RETURN_IF_ERROR(CheckWorkRequest(request, options_.inline_bytes_max));
  }
  NAM_RETURN_IF_ERROR(CheckSendRoom(batch.size(), posted_ - freed_, options_.send_depth, peer_));
  if (answered_ == posted_) StayAlive();
  for (const WorkRequest& request : batch) Enqueue(request);
  SendPending();
  FailAtUnsendable();
  return absl::OkStatus();
}

void TcpQueuePair::Enqueue(const WorkRequest& request) {
  Place& place = PlaceOf(posted_);
  place.id = request.id;
  place.signal = request.signal;
  place.status = CompletionStatus::kOk;
  place.local = request.local;
  place.payload = request.local.data;
  place.request = {.opcode = request.opcode,
                   .sequence = static_cast<uint32_t>(posted_),
                   .rkey = request.remote.rkey.value,
                   .bytes = request.local.bytes,
                   .immediate = request.immediate,
                   .offset = request.remote.offset,
                   .compare = request.compare,
                   .swap_or_add = request.swap_or_add};
  if (state_ == QueuePairState::kError || sendable_ < posted_) {
    place.status = CompletionStatus::kFlushed;
  } else if (request.inlined) {
    std::byte* copy = inline_bytes_.get() + (posted_ % places_.size()) * options_.inline_bytes_max;
    if (request.local.bytes > 0) std::memcpy(copy, request.local.data, request.local.bytes);
    place.payload = copy;
  } else if (!core_->regions().Contains(request.local)) {
    place.status = CompletionStatus::kLocalError;
  }
  if (place.status == CompletionStatus::kOk) ++sendable_;
  ++posted_;
  if (state_ == QueuePairState::kError) answered_ = sendable_ = sent_ = posted_;
}

void TcpQueuePair::SendPending() {
  while (wants_output()) {
    std::array<iovec, kPartsMax> parts;
    size_t count = 0;
    size_t total = 0;
    for (uint64_t at = sent_; at < sendable_ && count + 2 <= kPartsMax; ++at) {
      Place& place = PlaceOf(at);
      const size_t done = at == sent_ ? sent_bytes_ : 0;
      const std::span payload(const_cast<std::byte*>(place.payload),
                              place.request_bytes() - sizeof(place.request));
      count += AppendParts(std::span(parts).subspan(count), BytesOf(place.request), payload, done);
      total += place.request_bytes() - done;
    }
    const net::IoResult sent = requests_.Send(std::span(parts).first(count));
    output_lost_ = sent.lost;
    end_unclear_ = end_unclear_ || sent.unclear;
    if (sent.bytes == 0) return;
    StayAlive();
    sent_bytes_ += sent.bytes;
    while (sent_ < sendable_ && sent_bytes_ >= PlaceOf(sent_).request_bytes()) {
      sent_bytes_ -= PlaceOf(sent_++).request_bytes();
    }
    if (sent.bytes < total) return;
  }
}

void TcpQueuePair::Progress() {
  if (state_ == QueuePairState::kError) return;
  EndReceivesIfPeerLost();
  if (answered_ == posted_) return;
  SendPending();
  ReceiveReplies();
  FailAtUnsendable();
  CheckPeer();
}

void TcpQueuePair::OnSocketEvent() {
  if (state_ == QueuePairState::kError) return;
  SendPending();
  if (answered_ < answerable()) {
    ReceiveReplies();
    FailAtUnsendable();
    return;
  }
  // No request is unanswered, so input is the end of the connection, or invalid.
  std::byte unexpected;
  iovec part{&unexpected, 1};
  const net::IoResult received = requests_.Receive({&part, 1});
  end_unclear_ = end_unclear_ || received.unclear;
  if (received.lost || received.bytes > 0) Fail(CompletionStatus::kPeerLost);
}

void TcpQueuePair::ReceiveReplies() {
  while (state_ == QueuePairState::kReady && answered_ < answerable()) {
    std::array<iovec, kPartsMax> parts;
    size_t count = 0;
    size_t total = 0;
    for (uint64_t at = answered_; at < answerable() && count + 2 <= kPartsMax; ++at) {
      Place& place = PlaceOf(at);
      const size_t done = at == answered_ ? answered_bytes_ : 0;
      const std::span payload(place.local.data, place.reply_bytes() - sizeof(place.reply));
      count += AppendParts(std::span(parts).subspan(count), BytesOf(place.reply), payload, done);
      total += place.reply_bytes() - done;
    }
    const net::IoResult received = requests_.Receive(std::span(parts).first(count));
    end_unclear_ = end_unclear_ || received.unclear;
    if (received.lost) Fail(CompletionStatus::kPeerLost);
    if (received.bytes == 0) return;
    StayAlive();
    if (!ConsumeReplies(received.bytes) || received.bytes < total) return;
  }
}

// Accounts for bytes already in headers and buffers. False if the queue pair has failed.
bool TcpQueuePair::ConsumeReplies(size_t bytes) {
  while (bytes > 0) {
    Place& place = PlaceOf(answered_);
    const size_t before = answered_bytes_;
    const size_t consumed = std::min(bytes, place.reply_bytes() - before);
    answered_bytes_ += consumed;
    bytes -= consumed;
    if (before < sizeof(place.reply) && answered_bytes_ >= sizeof(place.reply)) {
      const auto reply = DecodeReply(BytesOf(place.reply).first<sizeof(ReplyHeader)>(), place.request);
      if (!reply || reply->status != CompletionStatus::kOk) {
        Fail(reply ? reply->status : CompletionStatus::kPeerLost);
        return false;
      }
      if (IsAtomic(reply->opcode)) std::memcpy(place.local.data, &reply->value, sizeof(reply->value));
    }
    if (answered_bytes_ == place.reply_bytes()) {
      ++answered_;
      answered_bytes_ = 0;
    }
  }
  return true;
}

void TcpQueuePair::EndReceivesIfPeerLost() {
  if (receives_ended_ || !receives_->peer_lost()) return;
  receives_ended_ = true;
  receives_->Fail(CompletionStatus::kPeerLost);
  // Replies may still be in flight on the other connection, whose end will follow.
  ReceiveReplies();
  if (state_ == QueuePairState::kReady && answered_ == posted_) Fail(CompletionStatus::kPeerLost);
}

void TcpQueuePair::CheckPeer() {
  if (state_ == QueuePairState::kError || answered_ == posted_) return;
  const int64_t now_ns = RealClock().NowNs();
  if (now_ns < check_at_ns_) return;
  const Opcode oldest = PlaceOf(answered_).request.opcode;
  // These wait for a receive as long as the peer's application likes.
  const bool may_wait = oldest == Opcode::kSend || oldest == Opcode::kWriteWithImmediate;
  if (!may_wait || receives_ended_ || net::PeerHostVanished(fd(), core_->options().peer_timeout_us)) {
    Fail(CompletionStatus::kPeerLost);
  } else {
    StayAlive();
  }
}

void TcpQueuePair::StayAlive() {
  check_at_ns_ = RealClock().NowNs() + core_->options().peer_timeout_us * 1000;
}

void TcpQueuePair::FailAtUnsendable() {
  if (state_ == QueuePairState::kReady && answered_ == sendable_ && sendable_ < posted_) {
    Fail(PlaceOf(answered_).status);
  }
}

void TcpQueuePair::Fail(CompletionStatus status) {
  state_ = QueuePairState::kError;
  const bool lost = status == CompletionStatus::kPeerLost;
  for (uint64_t at = answered_; at < posted_; ++at) {
    Place& place = PlaceOf(at);
    if (place.status != CompletionStatus::kOk) continue;  // never sent
    place.status = at == answered_ || lost ? status : CompletionStatus::kFlushed;
  }
  answered_ = sendable_ = sent_ = posted_;
  sent_bytes_ = answered_bytes_ = 0;
  queue_.Unwatch(*this);
  // Both connections end, so the peer's side of this queue pair does too. Closes only the outgoing direction,
  // because Disconnect waits for the peer's end.
  shutdown(fd(), SHUT_WR);
  const CompletionStatus receives = lost ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed;
  if (nic_ != nullptr) nic_->Remove(id_, receives);
  receives_->Fail(receives);
  receives_ended_ = true;
}

// The peer's NIC thread executes everything received before it sees this end, and only then closes its side.
absl::Status TcpQueuePair::Disconnect(Deadline deadline) {
  if (state_ == QueuePairState::kReady) Fail(CompletionStatus::kFlushed);
  if (!ended_by_peer_ && !end_unclear_) ended_by_peer_ = net::AwaitEnd(fd(), deadline);
  if (ended_by_peer_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("%s has not confirmed the end of the connection and may still serve requests", peer_));
}

size_t TcpQueuePair::Pop(std::span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size() && taken_ < answered_) {
    const Place& place = PlaceOf(taken_++);
    if (place.status == CompletionStatus::kOk && place.signal == Signal::kUnsignaled) continue;
    completions[count++] = {
        .id = place.id, .queue_pair = id_, .status = place.status, .opcode = place.request.opcode};
    freed_ = taken_;
  }
  const size_t received = receives_->Pop(completions.subspan(count));
  for (const Completion& completion : completions.subspan(count, received)) {
    // For a lost peer, Progress decides: replies may still be in flight.
    const bool broken =
        !completion.ok() && completion.status != CompletionStatus::kPeerLost && !receives_ended_;
    if (broken && state_ == QueuePairState::kReady) Fail(CompletionStatus::kFlushed);
  }
  return count + received;
}

absl::Status TcpQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  return receives_->Post(batch);
}

absl::StatusOr<std::span<const std::byte>> TcpQueuePair::View(RemoteAddress, size_t) {
  return absl::FailedPreconditionError("the tcp fabric has no view of a peer's memory: READ it instead");
}

}  // namespace nam::fabric::tcp
