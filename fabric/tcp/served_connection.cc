#include "fabric/tcp/served_connection.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fabric/net/socket.h"
#include "fabric/word_copy.h"

namespace nam::fabric::tcp {
namespace {

// Bytes that a connection may move before the NIC thread serves the next one.
constexpr uint64_t kTurnBytes = 1u << 20;

}  // namespace

ServedConnection::ServedConnection(net::Stream stream, const Regions& regions,
                                   std::shared_ptr<ReceiveQueue> receives, Access rights)
    : stream_(std::move(stream)),
      regions_(regions),
      receives_(std::move(receives)),
      rights_(rights),
      input_(std::make_unique_for_overwrite<std::byte[]>(kInputBytes)),
      output_(std::make_unique_for_overwrite<std::byte[]>(kOutputBytes)) {}

ServedConnection::Want ServedConnection::Serve() {
  turn_ends_at_ = bytes_moved_ + kTurnBytes;
  drained_ = false;
  std::optional<Want> want;
  if (out_begin_ < out_end_) want = Flush();
  while (!want) want = Advance();
  return want_ = *want;
}

std::optional<ServedConnection::Want> ServedConnection::Advance() {
  switch (step_) {
    case Step::kHeader:
      return Available() < sizeof(RequestHeader) ? FlushThenFill() : BeginRequest();
    case Step::kMatch:
      return Match();
    case Step::kPayload:
      return PlacePayload();
    case Step::kReadReply:
      return CopyReadReply();
    case Step::kFailed:
      in_begin_ = in_end_;
      return FlushThenFill();
  }
  return Want::kClose;
}

// Everything received has been executed: its replies leave together before more is read.
std::optional<ServedConnection::Want> ServedConnection::FlushThenFill() {
  if (const auto want = Flush()) return want;
  if (bytes_moved_ >= turn_ends_at_) return Want::kTurn;
  return Fill();
}

std::optional<ServedConnection::Want> ServedConnection::Flush() {
  while (out_begin_ < out_end_) {
    iovec part{output_.get() + out_begin_, out_end_ - out_begin_};
    const net::IoResult sent = stream_.Send({&part, 1});
    if (sent.lost) return Want::kClose;
    if (sent.bytes == 0) return Want::kOutput;
    out_begin_ += sent.bytes;
    bytes_moved_ += sent.bytes;
  }
  out_begin_ = out_end_ = 0;
  return std::nullopt;
}

std::optional<ServedConnection::Want> ServedConnection::Fill() {
  if (drained_) return Want::kInput;
  // At most part of a header or a word: a few bytes.
  if (in_begin_ > 0) std::memmove(input_.get(), input_.get() + in_begin_, Available());
  in_end_ = Available();
  in_begin_ = 0;
  iovec part{input_.get() + in_end_, kInputBytes - in_end_};
  const net::IoResult received = stream_.Receive({&part, 1});
  if (received.lost) return Want::kClose;
  if (received.bytes == 0) return Want::kInput;
  drained_ = received.bytes < part.iov_len;
  in_end_ += received.bytes;
  bytes_moved_ += received.bytes;
  return std::nullopt;
}

std::optional<ServedConnection::Want> ServedConnection::BeginRequest() {
  if (OutputRoom() < sizeof(ReplyHeader)) {
    if (const auto want = Flush()) return want;
  }
  const std::span<const std::byte, sizeof(RequestHeader)> bytes(input_.get() + in_begin_,
                                                                sizeof(RequestHeader));
  const auto request = DecodeRequest(bytes, sequence_);
  if (!request) return Want::kClose;
  request_ = *request;
  ++sequence_;
  in_begin_ += sizeof(RequestHeader);
  BeginTransfer();
  return std::nullopt;
}

CompletionStatus ServedConnection::Resolve(uint32_t bytes, Access wanted) {
  if (!Allows(rights_, wanted)) return CompletionStatus::kRemoteAccessError;
  return regions_.Resolve({{request_.rkey}, request_.offset}, bytes, wanted, at_);
}

void ServedConnection::BeginTransfer() {
  CompletionStatus status = CompletionStatus::kOk;
  left_ = request_.bytes;
  switch (request_.opcode) {
    case Opcode::kRead:
      status = Resolve(request_.bytes, Access::kRead);
      if (status == CompletionStatus::kOk) {
        Reply(CompletionStatus::kOk, request_.bytes);
        step_ = Step::kReadReply;
      }
      break;
    case Opcode::kWrite:
      status = Resolve(request_.bytes, Access::kWrite);
      step_ = Step::kPayload;
      break;
    case Opcode::kWriteWithImmediate:
    case Opcode::kSend:
      // A passive connection has no receives: the message would wait forever.
      if (receives_ == nullptr) {
        if (request_.opcode == Opcode::kWriteWithImmediate) {
          status = Resolve(request_.bytes, Access::kWrite);
        }
        if (status == CompletionStatus::kOk) status = CompletionStatus::kRemoteInvalidRequest;
      }
      step_ = Step::kMatch;
      break;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAdd:
      status = Resolve(sizeof(uint64_t), Access::kAtomic);
      if (status == CompletionStatus::kOk) ExecuteAtomic(at_);
      break;
    case Opcode::kReceive:
      NAM_CHECK(false, "never decoded");
  }
  if (status != CompletionStatus::kOk) Fail(status);
}

void ServedConnection::ExecuteAtomic(std::byte* word) {
  const std::atomic_ref<uint64_t> shared(*reinterpret_cast<uint64_t*>(word));
  uint64_t old = request_.compare;
  if (request_.opcode == Opcode::kCompareAndSwap) {
    shared.compare_exchange_strong(old, request_.swap_or_add);
  } else {
    old = shared.fetch_add(request_.swap_or_add);
  }
  FenceAfterAtomic();
  Reply(CompletionStatus::kOk, old);
}

std::optional<ServedConnection::Want> ServedConnection::Match() {
  const bool write = request_.opcode == Opcode::kWriteWithImmediate;
  // Resolved again after every wait, because the region may have gone.
  if (write) {
    const CompletionStatus status = Resolve(request_.bytes, Access::kWrite);
    if (status != CompletionStatus::kOk) {
      Fail(status);
      return std::nullopt;
    }
  }
  receive_ = receives_->Match();
  if (!receive_) {
    if (const auto want = Flush()) return want;
    return Want::kReceive;
  }
  step_ = Step::kPayload;
  if (write) return std::nullopt;
  at_ = receive_->into.data;
  if (!regions_.Contains(receive_->into)) {
    Abort(CompletionStatus::kLocalError);
    Fail(CompletionStatus::kRemoteInvalidRequest);
  } else if (request_.bytes > receive_->into.bytes) {
    Abort(CompletionStatus::kRemoteInvalidRequest);
    Fail(CompletionStatus::kRemoteInvalidRequest);
  }
  return std::nullopt;
}

std::optional<ServedConnection::Want> ServedConnection::PlacePayload() {
  const size_t placed = Available() >= left_ ? left_ : WholeWords(at_, Available());
  // Ordered after everything placed before, for observers.
  std::atomic_thread_fence(std::memory_order_release);
  CopyToShared(at_, input_.get() + in_begin_, placed);
  in_begin_ += placed;
  at_ += placed;
  left_ -= placed;
  if (left_ > 0) return FlushThenFill();
  FinishPayload();
  return std::nullopt;
}

void ServedConnection::FinishPayload() {
  if (receive_) {
    const bool immediate = request_.opcode == Opcode::kWriteWithImmediate;
    receives_->Complete({.id = receive_->id,
                         .opcode = Opcode::kReceive,
                         .has_immediate = immediate,
                         .immediate = immediate ? request_.immediate : 0,
                         .bytes = request_.bytes});
    receive_.reset();
  }
  Reply(CompletionStatus::kOk, 0);
}

std::optional<ServedConnection::Want> ServedConnection::CopyReadReply() {
  const size_t copied = std::min(left_, OutputRoom());
  CopyFromShared(output_.get() + out_end_, at_, copied);
  // So that a later READ sees memory no older.
  std::atomic_thread_fence(std::memory_order_acquire);
  out_end_ += copied;
  at_ += copied;
  left_ -= copied;
  if (left_ > 0) return Flush();
  snapshot_ = {};
  step_ = Step::kHeader;
  if (bytes_moved_ < turn_ends_at_) return std::nullopt;
  if (const auto want = Flush()) return want;
  return Want::kTurn;
}

void ServedConnection::Reply(CompletionStatus status, uint64_t value) {
  const ReplyHeader header{
      .opcode = request_.opcode, .status = status, .sequence = request_.sequence, .value = value};
  NAM_CHECK(OutputRoom() >= sizeof(header), "room was made before the request began");
  std::memcpy(output_.get() + out_end_, &header, sizeof(header));
  out_end_ += sizeof(header);
  step_ = Step::kHeader;
}

void ServedConnection::Fail(CompletionStatus status) {
  Reply(status, 0);
  step_ = Step::kFailed;
}

void ServedConnection::Abort(CompletionStatus status) {
  if (!receive_) return;
  receives_->Complete({.id = receive_->id, .status = status, .opcode = Opcode::kReceive});
  receive_.reset();
}

void ServedConnection::NotifyPeerLost() {
  if (receives_ != nullptr) receives_->OnPeerLost();
}

bool ServedConnection::ReleaseRegion(uint32_t key) {
  const bool to_region = step_ == Step::kPayload && request_.opcode != Opcode::kSend && request_.rkey == key;
  const bool to_receive =
      step_ == Step::kPayload && request_.opcode == Opcode::kSend && receive_->into.lkey.value == key;
  if (to_region || to_receive) {
    Abort(to_region ? CompletionStatus::kRemoteAccessError : CompletionStatus::kLocalError);
    Fail(to_region ? CompletionStatus::kRemoteAccessError : CompletionStatus::kRemoteInvalidRequest);
    return true;
  }
  if (step_ == Step::kReadReply && request_.rkey == key && snapshot_.empty()) {
    // The READ has begun and succeeds; the region need not wait for a slow peer.
    snapshot_.resize(left_);
    CopyFromShared(snapshot_.data(), at_, left_);
    at_ = snapshot_.data();
  }
  return false;
}

}  // namespace nam::fabric::tcp
