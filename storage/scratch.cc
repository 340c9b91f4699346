#include "storage/scratch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::storage {
namespace {

/// WRITEs posted together.
constexpr size_t kWritesAtOnce = 4;
/// Pages begin at cache lines, in the channel's buffer and in slabs.
constexpr uint64_t kPageAlignment = 64;

absl::Status Full() {
  return absl::ResourceExhaustedError("scratch memory is full");
}

/// True if another server may succeed.
bool PassesOver(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

// ─── Slabs

void ScratchSpace::GiveBack(const ScratchSlab& slab) {
  if (slab.left() == 0) return;
  const MutexLock lock(mutex_);
  rests_.push_back(slab);
}

std::optional<ScratchSlab> ScratchSpace::AllocateRest(uint64_t bytes_least) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(rests_.begin(), rests_.end(),
                                  [&](const ScratchSlab& rest) { return rest.left() >= bytes_least; });
  if (found == rests_.end()) return std::nullopt;
  const ScratchSlab rest = *found;
  rests_.erase(found);
  return rest;
}

absl::StatusOr<ScratchSlab> ScratchSpace::NextSlab(uint64_t bytes, uint64_t bytes_least,
                                                   const std::atomic<bool>& cancel) {
  if (const std::optional<ScratchSlab> rest = AllocateRest(bytes_least)) return *rest;
  bytes_least = std::max(bytes_least, kLeastSlabBytes);
  bytes = std::max(bytes_least, std::min(bytes, most_.load(std::memory_order_relaxed)));
  while (true) {
    NAM_ASSIGN_OR_RETURN(const std::vector<MemoryServerId> servers, Servers());
    absl::StatusOr<ScratchSlab> slab = Ask(servers, bytes, cancel);
    if (slab.ok()) slab_bytes_.fetch_add(slab->bytes, std::memory_order_relaxed);
    if (!absl::IsResourceExhausted(slab.status())) return slab;
    if (bytes == bytes_least) return Full();
    bytes = std::max(bytes_least, bytes / 2 / kPageAlignment * kPageAlignment);
    most_.store(bytes, std::memory_order_relaxed);
  }
}

absl::StatusOr<std::vector<MemoryServerId>> ScratchSpace::Servers() {
  {
    const MutexLock lock(mutex_);
    if (!servers_.empty()) return servers_;
  }
  // Without the lock, because it is a call. Concurrent callers find the same.
  NAM_ASSIGN_OR_RETURN(std::vector<MemoryServerId> servers, find_servers_());
  if (servers.empty()) return absl::UnavailableError("no memory server has scratch memory");
  const MutexLock lock(mutex_);
  if (servers_.empty()) servers_ = std::move(servers);
  return servers_;
}

void ScratchSpace::PassOver(MemoryServerId server) {
  const MutexLock lock(mutex_);
  if (servers_.size() > 1) std::erase(servers_, server);
}

absl::StatusOr<ScratchSlab> ScratchSpace::Ask(const std::vector<MemoryServerId>& servers, uint64_t bytes,
                                              const std::atomic<bool>& cancel) {
  const uint32_t first = next_.fetch_add(1, std::memory_order_relaxed);
  absl::Status refused;
  for (size_t i = 0; i < servers.size(); ++i) {
    if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
    const MemoryServerId server = servers[(first + i) % servers.size()];
    asked_.store(true, std::memory_order_relaxed);
    absl::StatusOr<ScratchSlab> slab = allocate_(server, bytes, cancel);
    if (slab.ok() || !PassesOver(slab.status())) return slab;
    if (!absl::IsResourceExhausted(slab.status())) PassOver(server);
    // A server without room is a better reason than an unreachable one.
    if (refused.ok() || absl::IsResourceExhausted(slab.status())) refused = slab.status();
  }
  return refused;
}

// ─── Writing

ScratchWriter::ScratchWriter(ScratchSpace& space, Channel& channel, uint32_t page_bytes_max,
                             const std::atomic<bool>& cancel)
    : space_(space), channel_(channel), slot_bytes_(page_bytes_max), cancel_(cancel) {
  const uint64_t slots =
      std::min<uint64_t>(channel.buffer().bytes() / slot_bytes_, channel.options().queue_depth);
  NAM_CHECK(page_bytes_max % kPageAlignment == 0 && slots >= 1,
            "pages that the channel's buffer cannot hold");
  for (uint32_t slot = 0; slot < slots; ++slot) free_.push_back(slot);
}

ScratchWriter::~ScratchWriter() {
  if (in_flight_ > 0 || channel_.broken()) channel_.Abandon(std::move(use_));
}

/// A new slab is no larger than the bytes written so far, but at least kFirstSlabBytes: otherwise many short
/// writers would leave most of their slabs unused.
absl::StatusOr<ScratchStretch> ScratchWriter::Reserve(uint32_t bytes) {
  NAM_CHECK(bytes % kPageAlignment == 0, "a stretch that ends within a cache line");
  if (slab_.left() < bytes) {
    const uint64_t bytes_wanted =
        std::clamp(std::bit_floor(bytes_), ScratchSpace::kFirstSlabBytes, ScratchSpace::kMostSlabBytes);
    NAM_ASSIGN_OR_RETURN(slab_, space_.NextSlab(bytes_wanted, bytes, cancel_));
    if (slab_.left() < bytes) return absl::InternalError("a slab is smaller than what was asked for");
    NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, UseOf(slab_.grant));
    use_ = std::move(use);  // all slabs of a space have one grant
  }
  const ScratchStretch stretch{{slab_.begin.Plus(slab_.used), 0}, bytes};
  slab_.used += bytes;
  return stretch;
}

absl::StatusOr<ScratchPage> ScratchWriter::Write(std::span<const std::byte> page) {
  NAM_CHECK(!page.empty() && page.size() <= slot_bytes_, "a page of another size");
  const uint64_t bytes = (page.size() + kPageAlignment - 1) / kPageAlignment * kPageAlignment;
  NAM_ASSIGN_OR_RETURN(ScratchStretch stretch, Reserve(static_cast<uint32_t>(bytes)));
  NAM_RETURN_IF_ERROR(Append(page, stretch));
  return stretch.pages;
}

absl::StatusOr<std::vector<ScratchPage>> ScratchWriter::WriteLong(std::span<const std::byte> page) {
  std::vector<ScratchPage> pieces;
  while (!page.empty()) {
    const std::span<const std::byte> piece = page.first(std::min<size_t>(page.size(), slot_bytes_));
    NAM_ASSIGN_OR_RETURN(ScratchPage place, Write(piece));
    place.continues = !pieces.empty();
    pieces.push_back(place);
    page = page.subspan(piece.size());
  }
  return pieces;
}

absl::Status ScratchWriter::Append(std::span<const std::byte> page, ScratchStretch& stretch) {
  NAM_CHECK(page.size() <= slot_bytes_ && page.size() <= stretch.left() &&
                stretch.pages.bytes % kPageAlignment == 0,
            "a page that has no room");
  const auto bytes = static_cast<uint32_t>(page.size());
  NAM_RETURN_IF_ERROR(channel_.CheckBurials());
  NAM_ASSIGN_OR_RETURN(const Channel::Target target,
                       channel_.Resolve(stretch.pages.at.Plus(stretch.pages.bytes), bytes));
  stretch.pages.bytes += bytes;
  ++pages_;
  bytes_ += bytes;
  if (target.now != nullptr) {
    const fabric::CompletionStatus status = target.now->WriteNow(page.data(), bytes, target.address);
    if (status == fabric::CompletionStatus::kOk) return absl::OkStatus();
    return channel_.Error(
        {.queue_pair = target.queue_pair->id(), .status = status, .opcode = fabric::Opcode::kWrite});
  }
  NAM_ASSIGN_OR_RETURN(const uint32_t slot, FreeSlot());
  const fabric::LocalBuffer local = channel_.buffer().Slice(uint64_t{slot} * slot_bytes_, bytes);
  std::memcpy(local.data, page.data(), bytes);
  Queue& queue = QueueOf(target.queue_pair);
  queue.requests.push_back(fabric::WorkRequest::Write(0, local, target.address, fabric::Signal::kUnsignaled));
  queue.slots.push_back(slot);
  return queue.requests.size() >= kWritesAtOnce ? Post(queue) : absl::OkStatus();
}

ScratchWriter::Queue& ScratchWriter::QueueOf(fabric::QueuePair* queue_pair) {
  for (Queue& queue : queues_) {
    if (queue.queue_pair == queue_pair) return queue;
  }
  queues_.push_back({.queue_pair = queue_pair, .requests = {}, .slots = {}});
  return queues_.back();
}

absl::Status ScratchWriter::Post(Queue& queue) {
  uint32_t batch = static_cast<uint32_t>(posted_.size());
  if (!free_batches_.empty()) {
    batch = free_batches_.back();
    free_batches_.pop_back();
  } else {
    posted_.emplace_back();
  }
  for (fabric::WorkRequest& request : queue.requests) request.id = batch;
  queue.requests.back().signal = fabric::Signal::kSignaled;
  NAM_RETURN_IF_ERROR(queue.queue_pair->Post(queue.requests));
  posted_[batch].swap(queue.slots);
  queue.requests.clear();
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status ScratchWriter::PostAll() {
  for (Queue& queue : queues_) {
    if (!queue.requests.empty()) NAM_RETURN_IF_ERROR(Post(queue));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ScratchWriter::FreeSlot() {
  if (free_.empty()) NAM_RETURN_IF_ERROR(PostAll());
  while (free_.empty()) NAM_RETURN_IF_ERROR(PollCompletions());
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

absl::Status ScratchWriter::PollCompletions() {
  std::array<fabric::Completion, 64> done;
  NAM_ASSIGN_OR_RETURN(const size_t n, channel_.WaitSome(done, &cancel_));
  for (size_t i = 0; i < n; ++i) {
    if (!done[i].ok()) return channel_.Error(done[i]);
    std::vector<uint32_t>& slots = posted_[done[i].id];
    free_.insert(free_.end(), slots.begin(), slots.end());
    slots.clear();
    free_batches_.push_back(static_cast<uint32_t>(done[i].id));
    --in_flight_;
  }
  return absl::OkStatus();
}

absl::Status ScratchWriter::Flush() {
  NAM_RETURN_IF_ERROR(PostAll());
  while (in_flight_ > 0) NAM_RETURN_IF_ERROR(PollCompletions());
  space_.GiveBack(std::exchange(slab_, {}));
  return absl::OkStatus();
}

}  // namespace nam::storage
