#include "storage/verb_batch.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {

// Every request names its queue in `id`; only the last of a posting is signaled, and its completion says that
// all before it on that queue pair are complete too.
VerbBatch::VerbBatch(Channel& channel) : channel_(channel) {}

std::byte* VerbBatch::Scratch(size_t bytes) {
  NAM_CHECK(bytes <= scratch_left(), "more scratch memory than the channel's buffer has");
  std::byte* const data = channel_.buffer().data() + scratch_used_;
  scratch_used_ += (bytes + 63) / 64 * 64;
  return data;
}

size_t VerbBatch::scratch_left() const {
  const size_t bytes = channel_.buffer().bytes();
  return scratch_used_ < bytes ? bytes - scratch_used_ : 0;
}

void VerbBatch::Reset(size_t kept) {
  NAM_CHECK(idle(), "requests are in flight");
  NAM_CHECK(kept <= scratch_used_, "what is kept has been taken");
  scratch_used_ = kept;
}

fabric::LocalBuffer VerbBatch::Local(const std::byte* data, size_t bytes) const {
  return {const_cast<std::byte*>(data), static_cast<uint32_t>(bytes), channel_.buffer().lkey()};
}

void VerbBatch::Add(fabric::QueuePair* queue_pair, const fabric::WorkRequest& request) {
  auto queue = std::find_if(queues_.begin(), queues_.end(),
                            [&](const Queue& candidate) { return candidate.queue_pair == queue_pair; });
  if (queue == queues_.end()) queue = queues_.insert(queues_.end(), Queue{.queue_pair = queue_pair});
  queue->requests.push_back(request);
  queue->requests.back().id = static_cast<uint64_t>(queue - queues_.begin());
}

void VerbBatch::Read(const Channel::Target& from, std::byte* into, uint32_t bytes) {
  Add(from.queue_pair,
      fabric::WorkRequest::Read(0, Local(into, bytes), from.address, fabric::Signal::kUnsignaled));
}

void VerbBatch::Write(const std::byte* from, uint32_t bytes, const Channel::Target& to) {
  Add(to.queue_pair,
      fabric::WorkRequest::Write(0, Local(from, bytes), to.address, fabric::Signal::kUnsignaled));
}

void VerbBatch::CompareAndSwap(const Channel::Target& at, uint64_t compare, uint64_t swap, uint64_t* old) {
  Add(at.queue_pair,
      fabric::WorkRequest::CompareAndSwap(0, Local(reinterpret_cast<std::byte*>(old), sizeof(*old)),
                                          at.address, compare, swap, fabric::Signal::kUnsignaled));
}

void VerbBatch::FetchAdd(const Channel::Target& at, uint64_t add, uint64_t* old) {
  Add(at.queue_pair, fabric::WorkRequest::FetchAdd(0, Local(reinterpret_cast<std::byte*>(old), sizeof(*old)),
                                                   at.address, add, fabric::Signal::kUnsignaled));
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

absl::Status VerbBatch::Post() {
  for (Queue& queue : queues_) {
    while (true) {
      NAM_RETURN_IF_ERROR(PostSome(queue));
      if (queue.posted == queue.requests.size()) break;
      NAM_RETURN_IF_ERROR(TakeCompletions());
    }
    queue.requests.clear();
    queue.posted = 0;
  }
  return absl::OkStatus();
}

absl::Status VerbBatch::Execute() {
  NAM_RETURN_IF_ERROR(Post());
  while (signaled_ > 0) NAM_RETURN_IF_ERROR(TakeCompletions());
  return absl::OkStatus();
}

absl::Status VerbBatch::TakeCompletions() {
  std::array<fabric::Completion, 16> done;
  NAM_ASSIGN_OR_RETURN(const size_t count, channel_.WaitSome(done));
  for (const fabric::Completion& completion : std::span(done).first(count)) {
    if (!completion.ok()) return channel_.Error(completion);
    // An earlier posting of the queue may still be in flight if there were several; then the count drops late
    // rather than early.
    Queue& queue = queues_[completion.id];
    if (--queue.signaled == 0) queue.in_flight = 0;
    --signaled_;
  }
  return absl::OkStatus();
}

}  // namespace nam::storage
