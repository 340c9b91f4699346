#include <cstring>
#include <utility>

#include "fabric/shm/queue_pair.h"

/// The part of a queue pair that sends and receives messages, and how it fails.
namespace nam::fabric::shm {

void ShmQueuePair::Enqueue(const WorkRequest& request) {
  if (failed_) {
    Finish(request,
           std::exchange(loss_untold_, false) ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed);
    return;
  }
  Pending& added = pending(pending_count_++);
  added.request = request;
  added.executed = false;
  if (request.inlined && request.local.bytes > 0) {
    added.inlined.assign(request.local.data, request.local.data + request.local.bytes);
    added.request.local.data = added.inlined.data();
  }
  Advance();
}

/// Places and completes as many as possible.
void ShmQueuePair::Advance() {
  do {
    while (!failed_ && placed_count_ < pending_count_ && PlaceNext()) {
    }
    while (!failed_ && placed_count_ > 0 && CompleteOldest()) {
    }
    if (failed_ || pending_count_ == 0) break;
    // Once the peer knows about the waiting request, its earlier progress must be checked again.
    if (std::exchange(starved_, true)) return;
    outbox_.SetStarved(true);
  } while (true);
  if (std::exchange(starved_, false)) outbox_.SetStarved(false);
}

/// False if it must wait for room in the ring.
bool ShmQueuePair::PlaceNext() {
  Pending& next = pending(placed_count_);
  const WorkRequest& request = next.request;
  const bool message = request.opcode == Opcode::kSend || request.opcode == Opcode::kWriteWithImmediate;
  const uint32_t payload_bytes = request.opcode == Opcode::kSend ? request.local.bytes : 0;
  if (message && !broken_ && !outbox_.HasRoom(payload_bytes)) return false;
  if (broken_) {
    next.result = CompletionStatus::kFlushed;
  } else if (request.opcode != Opcode::kSend) {
    next.result = Execute(request);
  } else {
    const bool valid =
        request.local.bytes == 0 || request.inlined || environment_.regions->Contains(request.local);
    next.result = valid ? CompletionStatus::kOk : CompletionStatus::kLocalError;
  }
  next.executed = !message || next.result != CompletionStatus::kOk;
  broken_ = next.result != CompletionStatus::kOk;
  if (!next.executed) {
    next.header = {.bytes = request.local.bytes,
                   .kind = request.opcode == Opcode::kSend ? MessageKind::kSend : MessageKind::kImmediate,
                   .immediate = request.immediate};
    next.message = outbox_.Place(next.header, request.local.data);
  }
  ++placed_count_;
  return true;
}

/// False if it must wait for the peer's receive.
bool ShmQueuePair::CompleteOldest() {
  const Pending& oldest = pending(0);
  CompletionStatus status = oldest.result;
  if (!oldest.executed) {
    switch (outbox_.Check(oldest.message, oldest.header)) {
      case Outbox::Fate::kWaiting:
        return false;
      case Outbox::Fate::kReceived:
        break;
      case Outbox::Fate::kTooLong:
        status = CompletionStatus::kRemoteInvalidRequest;
        break;
    }
  }
  pending_head_ = (pending_head_ + 1) % static_cast<uint32_t>(pending_.size());
  --pending_count_;
  --placed_count_;
  Finish(oldest.request, status);
  return true;
}

void ShmQueuePair::ReceiveMessages() {
  bool took = false;
  MessageHeader header;
  while (receives_count_ > 0 && !failed_) {
    const Inbox::Next next = inbox_.Peek(header);
    if (next == Inbox::Next::kNone) break;
    const LocalBuffer& into = receives_[receives_head_].into;
    if (next == Inbox::Next::kGarbage) {
      Fail(CompletionStatus::kPeerLost);
    } else if (header.kind == MessageKind::kSend && header.bytes > into.bytes) {
      FinishReceive(CompletionStatus::kRemoteInvalidRequest, nullptr);
      Fail(CompletionStatus::kFlushed);
    } else if (into.bytes > 0 && !environment_.regions->Contains(into)) {  // deregistered after it was posted
      FinishReceive(CompletionStatus::kLocalError, nullptr);
      Fail(CompletionStatus::kFlushed);
    } else {
      inbox_.Consume(header, into.data);
      took = true;
      FinishReceive(CompletionStatus::kOk, &header);
    }
  }
  if (took) inbox_.RingIfStarved();
}

/// Completes the oldest receive.
void ShmQueuePair::FinishReceive(CompletionStatus status, const MessageHeader* header) {
  Completion completion{
      .id = receives_[receives_head_].id, .queue_pair = id_, .status = status, .opcode = Opcode::kReceive};
  if (header != nullptr) {
    completion.bytes = header->bytes;
    completion.has_immediate = header->kind == MessageKind::kImmediate;
    completion.immediate = header->immediate;
  }
  receives_head_ = (receives_head_ + 1) % static_cast<uint32_t>(receives_.size());
  --receives_count_;
  completions_.Push(completion, &receives_used_, 1);
}

/// Enters the error state. The peer sees the end of the connection.
void ShmQueuePair::Fail(CompletionStatus pending_status) {
  failed_ = true;
  link_->Shutdown();
  while (pending_count_ > 0) {
    const Pending& oldest = pending(0);
    // An operation that failed on its own keeps its reason.
    const bool own = oldest.executed && oldest.result != CompletionStatus::kOk;
    pending_head_ = (pending_head_ + 1) % static_cast<uint32_t>(pending_.size());
    --pending_count_;
    Finish(oldest.request, own ? oldest.result : pending_status);
  }
  placed_count_ = 0;
  while (receives_count_ > 0) FinishReceive(pending_status, nullptr);
}

}  // namespace nam::fabric::shm
