#include "storage/verb_batch.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {
namespace {

constexpr size_t kBufferBytesMax = size_t{64} << 20;  // unless a single request needs more
constexpr size_t kUnpostedMax = 8'192;

}  // namespace

// Every request carries its queue's index in `id`. Only the last of a posting is signaled; its completion
// covers all before it on that queue pair.
VerbBatch::VerbBatch(Channel& channel, uint64_t scratch_bytes_max)
    : channel_(channel), scratch_bytes_max_(std::max(scratch_bytes_max, channel.buffer().bytes())) {
  UseBuffer(0, 0);
}

void VerbBatch::UseBuffer(size_t number, size_t begin) {
  const fabric::MemoryRegion& buffer = channel_.buffer(number);
  buffer_number_ = number;
  buffer_ = buffer.data();
  buffer_begin_ = begin;
  buffer_end_ = begin + buffer.bytes();
}

// Returns the next buffer with this many bytes, or a new one. Each is larger than the one before, so they are
// few.
std::byte* VerbBatch::ScratchBeyond(size_t bytes) {
  while (bytes > buffer_end_ - scratch_used_) {
    const size_t next = buffer_number_ + 1;
    if (next == channel_.buffers()) {
      const size_t larger = std::min<size_t>(2 * channel_.buffer(next - 1).bytes(), kBufferBytesMax);
      absl::Status added = channel_.AddBuffer(std::max(larger, bytes));
      if (!added.ok()) {
        channel_.Break();
        refused_ = std::move(added);
        return unregistered_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
      }
    }
    scratch_used_ = buffer_end_;
    UseBuffer(next, buffer_end_);
  }
  std::byte* const data = buffer_ + (scratch_used_ - buffer_begin_);
  scratch_used_ += bytes;
  return data;
}

void VerbBatch::Reset(size_t kept) {
  NAM_CHECK(idle(), "requests are in flight");
  NAM_CHECK(kept <= scratch_used_, "what is kept has been taken");
  scratch_used_ = kept;
  if (kept >= buffer_begin_) [[likely]]
    return;
  for (size_t begin = buffer_begin_, number = buffer_number_; kept < begin; UseBuffer(number, begin)) {
    begin -= channel_.buffer(--number).bytes();
  }
  if (kept == 0) channel_.DropAddedBuffers();
}

size_t VerbBatch::AddQueue(fabric::QueuePair* queue_pair) {
  const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const Queue& candidate) { return candidate.queue_pair == queue_pair; });
  const auto number = static_cast<size_t>(queue - queues_.begin());
  if (queue == queues_.end()) queues_.push_back({.queue_pair = queue_pair});
  return number;
}

// Posts when a bounded number is collected, so that a large transaction's first requests are in flight before
// Execute. Builds the request in its place: one assembled elsewhere would be copied before its parts have
// arrived.
fabric::WorkRequest& VerbBatch::Add(const Channel::Target& at, fabric::Opcode opcode, const std::byte* local,
                                    size_t bytes) {
  if (unposted_ >= kUnpostedMax && refused_.ok()) [[unlikely]]
    refused_.Update(PostAll());
  fabric::WorkRequest& request = QueueOf(at).requests.emplace_back();
  ++unposted_;
  request.id = last_;
  request.opcode = opcode;
  request.signal = fabric::Signal::kUnsignaled;
  request.local = {const_cast<std::byte*>(local), static_cast<uint32_t>(bytes), channel_.KeyOf(local)};
  request.remote = at.address;
  return request;
}

void VerbBatch::Refuse(const Channel::Target& at, fabric::Opcode opcode, fabric::CompletionStatus status) {
  if (!refused_.ok()) return;
  refused_ = channel_.Error({.queue_pair = at.queue_pair->id(), .status = status, .opcode = opcode});
}

// After an error nothing is executed, not even requests on another queue pair.
fabric::WorkRequest* VerbBatch::AddLater(const Channel::Target& at, fabric::Opcode opcode,
                                         const std::byte* local, size_t bytes) {
  if (!Current(at)) {
    Refuse(at, opcode, fabric::CompletionStatus::kRemoteAccessError);
    return nullptr;
  }
  return at.now == nullptr ? &Add(at, opcode, local, bytes) : nullptr;
}

absl::Status VerbBatch::PostSome(Queue& queue) {
  const size_t room = channel_.options().queue_depth - queue.in_flight;
  const size_t count = std::min(queue.requests.size() - queue.posted, room);
  if (count == 0) return absl::OkStatus();
  const std::span<fabric::WorkRequest> batch = std::span(queue.requests).subspan(queue.posted, count);
  batch.back().signal = fabric::Signal::kSignaled;
  if (absl::Status status = queue.queue_pair->Post(batch); !status.ok()) {
    channel_.Break();
    return status;
  }
  queue.posted += count;
  queue.in_flight += count;
  ++queue.signaled;
  ++signaled_;
  return absl::OkStatus();
}

absl::Status VerbBatch::PostAll() {
  if (!refused_.ok()) [[unlikely]]
    return refused_;
  NAM_RETURN_IF_ERROR(channel_.CheckBurials());
  if (unposted_ == 0) return absl::OkStatus();
  for (Queue& queue : queues_) {
    while (true) {
      NAM_RETURN_IF_ERROR(PostSome(queue));
      if (queue.posted == queue.requests.size()) break;
      NAM_RETURN_IF_ERROR(PollCompletions());
    }
    queue.requests.clear();
    queue.posted = 0;
  }
  unposted_ = 0;
  return absl::OkStatus();
}

absl::Status VerbBatch::Post() {
  if (parked_) [[unlikely]]
    Resume();
  const absl::Status posted = PostAll();
  LeaveSection();
  return posted;
}

absl::Status VerbBatch::Execute() {
  if (parked_) [[unlikely]]
    Resume();
  absl::Status status = PostAll();
  while (status.ok() && signaled_ > 0) status = PollCompletions();
  LeaveSection();
  return status;
}

absl::Status VerbBatch::PollCompletions() {
  NAM_ASSIGN_OR_RETURN(const size_t count, channel_.WaitSome(done_));
  return Account(count);
}

absl::Status VerbBatch::Account(size_t completions) {
  for (const fabric::Completion& completion : std::span(done_).first(completions)) {
    if (!completion.ok()) return channel_.Error(completion);
    // If there were several postings, an earlier one may still be in flight; then the count drops late rather
    // than early.
    Queue& queue = queues_[completion.id];
    if (--queue.signaled == 0) queue.in_flight = 0;
    --signaled_;
  }
  return absl::OkStatus();
}

void VerbBatch::LeaveSection() {
  fabric::Gate& gate = channel_.gate();
  if (!gate.inside()) return;
  if (channel_.broken()) [[unlikely]] {
    channel_.ParkBroken();
  } else if (signaled_ == 0) [[likely]] {
    gate.Leave();
  } else {
    gate.Park([this] { return DrainParked(); });
    parked_ = true;
  }
}

// Runs on another thread. Does not wait.
bool VerbBatch::DrainParked() {
  while (signaled_ > 0) {
    const size_t count = channel_.completions().Poll(done_);
    if (count == 0) return false;
    refused_ = Account(count);
    if (!refused_.ok()) return channel_.EndNow();
  }
  return true;
}

void VerbBatch::Resume() {
  channel_.gate().Enter();
  parked_ = false;
  if (signaled_ == 0) channel_.gate().Leave();
}

void VerbBatch::GiveUp() {
  if (std::exchange(given_up_, true)) return;
  if (parked_) Resume();
  if (!channel_.gate().inside()) return;
  if (signaled_ > 0) channel_.Break();
  LeaveSection();
}

// Requests still in flight end with the channel's connections.
VerbBatch::~VerbBatch() {
  GiveUp();
}

}  // namespace nam::storage
