#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/process_limits.h"
#include "fabric/request_rules.h"
#include "fabric/shm/queue_pair.h"
#include "fabric/word_copy.h"

/// The part of a queue pair that reaches into the peer's regions.
namespace nam::fabric::shm {

/// Runs change(the peer's bytes) while the peer can see under which key; layout.h has the protocol.
template <typename Change>
CompletionStatus ShmQueuePair::ChangeRemote(const RemoteAddress& at, uint64_t bytes, Access wanted,
                                            const Change& change) {
  if (!Cached(at.rkey.value)) [[unlikely]] {
    if (const CompletionStatus mapped = MapRegion(at.rkey.value); mapped != CompletionStatus::kOk)
      return mapped;
  }
  const CachedRegion& region = cache_[SlotOf(at.rkey.value)];
  executing_.store(at.rkey.value, std::memory_order_relaxed);
  if (runs_own_barriers_) [[unlikely]] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's part of the barrier
  }
  const bool revoked = revoked_.load(std::memory_order_acquire) != 0;
  const bool good = !revoked && Good(region, at, bytes, wanted);
  if (good) [[likely]]
    change(region.data + at.offset);
  executing_.store(0, std::memory_order_release);
  if (good) [[likely]]
    return CompletionStatus::kOk;
  return revoked ? CompletionStatus::kPeerLost : CompletionStatus::kRemoteAccessError;
}

inline CompletionStatus ShmQueuePair::FromRemote(const RemoteAddress& from, std::byte* into, uint32_t bytes) {
  std::byte* remote = nullptr;
  if (const CompletionStatus status = Resolve(from, bytes, Access::kRead, &remote);
      status != CompletionStatus::kOk) {
    return status;
  }
  CopyFromShared(into, remote, bytes);
  // So that a later READ sees memory no older. Costs nothing on x86.
  std::atomic_thread_fence(std::memory_order_acquire);
  return CompletionStatus::kOk;
}

inline CompletionStatus ShmQueuePair::ToRemote(const std::byte* from, uint32_t bytes,
                                               const RemoteAddress& to) {
  return ChangeRemote(to, bytes, Access::kWrite, [=](std::byte* remote) {
    // Orders this after earlier writes.
    std::atomic_thread_fence(std::memory_order_release);
    if (CanStream(remote, from, bytes)) {
      StreamToShared(remote, from, bytes);
    } else {
      CopyToShared(remote, from, bytes);
    }
  });
}

template <typename Change>
inline CompletionStatus ShmQueuePair::ChangeWord(const RemoteAddress& at, const Change& change) {
  if (at.offset % kWordBytes != 0) [[unlikely]] {
    std::byte* remote = nullptr;
    const CompletionStatus status = Resolve(at, kWordBytes, Access::kAtomic, &remote);
    return status == CompletionStatus::kOk ? CompletionStatus::kRemoteInvalidRequest : status;
  }
  return ChangeRemote(at, kWordBytes, Access::kAtomic, [&change](std::byte* remote) {
    change(std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(remote)));
    FenceAfterAtomic();
  });
}

CompletionStatus ShmQueuePair::Execute(const WorkRequest& request) {
  const LocalBuffer& local = request.local;
  if (local.bytes > 0 && !request.inlined && !environment_.regions->Contains(local)) [[unlikely]] {
    return CompletionStatus::kLocalError;
  }
  if (request.opcode == Opcode::kRead) return FromRemote(request.remote, local.data, local.bytes);
  if (!IsAtomic(request.opcode)) return ToRemote(local.data, local.bytes, request.remote);
  return ChangeWord(request.remote, [&request](std::atomic_ref<uint64_t> word) {
    uint64_t old = request.compare;
    if (request.opcode == Opcode::kCompareAndSwap) {
      word.compare_exchange_strong(old, request.swap_or_add);
    } else {
      old = word.fetch_add(request.swap_or_add);
    }
    std::memcpy(request.local.data, &old, sizeof(old));
  });
}

template <typename Operation>
inline CompletionStatus ShmQueuePair::ExecuteNow(const Operation& operation) {
  Attend();
  if (failed_) [[unlikely]] {
    return std::exchange(loss_untold_, false) ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed;
  }
  NAM_CHECK(pending_count_ == 0, "a message waits on this queue pair");
  const CompletionStatus status = operation();
  if (status != CompletionStatus::kOk) [[unlikely]]
    Fail(CompletionStatus::kFlushed);
  return status;
}

CompletionStatus ShmQueuePair::ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) {
  return ExecuteNow([&] { return FromRemote(from, into, bytes); });
}

CompletionStatus ShmQueuePair::WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) {
  return ExecuteNow([&] { return ToRemote(from, bytes, to); });
}

CompletionStatus ShmQueuePair::CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                                 uint64_t* old) {
  return ExecuteNow([&] {
    return ChangeWord(at, [&](std::atomic_ref<uint64_t> word) {
      *old = compare;
      word.compare_exchange_strong(*old, swap);
    });
  });
}

CompletionStatus ShmQueuePair::FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) {
  return ExecuteNow(
      [&] { return ChangeWord(at, [&](std::atomic_ref<uint64_t> word) { *old = word.fetch_add(add); }); });
}

/// Maps a region on first use. Waits for the peer's service thread, at most the peer timeout.
CompletionStatus ShmQueuePair::MapRegion(uint32_t rkey) {
  const uint32_t slot = SlotOf(rkey);
  const std::atomic<uint32_t>& live_key = peer_->live_key(slot);
  if (rkey == 0 || live_key.load(std::memory_order_acquire) != rkey)
    return CompletionStatus::kRemoteAccessError;
  std::shared_ptr<const RemoteRegion> region = peer_->Find(rkey, rights_);
  if (region == nullptr) {
    const absl::StatusOr<Packet> reply =
        link_->RequestRegion(rkey, RealClock().After(environment_.peer_timeout_us));
    if (absl::IsPermissionDenied(reply.status())) return CompletionStatus::kRemoteAccessError;
    if (!reply.ok()) return CompletionStatus::kPeerLost;
    absl::StatusOr<std::shared_ptr<const RemoteRegion>> mapped = peer_->Insert(rkey, rights_, *reply);
    if (absl::IsResourceExhausted(mapped.status())) return CompletionStatus::kNoMemory;
    if (!mapped.ok()) return CompletionStatus::kLocalError;
    region = *std::move(mapped);
  }
  if (cache_.size() <= slot) {
    cache_.resize(slot + 1);
    regions_.resize(slot + 1);
  }
  cache_[slot] = {rkey, region->access, false, region->data, region->bytes, &live_key};
  regions_[slot] = std::move(region);
  return CompletionStatus::kOk;
}

/// Releases the memory of deregistered regions.
void ShmQueuePair::DropStaleRegions() {
  deregistrations_seen_ = peer_->deregistrations();
  for (size_t slot = 0; slot < cache_.size(); ++slot) {
    if (cache_[slot].rkey == 0 || cache_[slot].live_key->load(std::memory_order_acquire) == cache_[slot].rkey)
      continue;
    cache_[slot] = {};
    regions_[slot].reset();
  }
}

const std::byte* ShmQueuePair::ViewNow(RemoteAddress from, size_t bytes) {
  Attend();
  std::byte* remote = nullptr;
  if (failed_ || Resolve(from, bytes, Access::kRead, &remote) != CompletionStatus::kOk) [[unlikely]]
    return nullptr;
  CachedRegion& region = cache_[SlotOf(from.rkey.value)];
  if (!region.viewed) [[unlikely]] {
    region.viewed = true;
    viewed_.push_back(regions_[SlotOf(from.rkey.value)]);
  }
  return remote;
}

absl::StatusOr<std::span<const std::byte>> ShmQueuePair::View(RemoteAddress from, size_t bytes) {
  const std::byte* const data = ViewNow(from, bytes);
  if (data == nullptr) [[unlikely]]
    return ViewError(from, bytes);
  return std::span<const std::byte>(data, bytes);
}

absl::Status ShmQueuePair::ViewError(RemoteAddress from, size_t bytes) {
  if (failed_) return absl::UnavailableError(absl::StrFormat("the connection to %s has failed", peer_name_));
  std::byte* remote = nullptr;
  switch (Resolve({from.rkey, 0}, 0, Access::kRead, &remote)) {
    case CompletionStatus::kOk:
      return absl::OutOfRangeError(absl::StrFormat("%d bytes at offset %d are outside a region of %d bytes",
                                                   bytes, from.offset,
                                                   cache_[SlotOf(from.rkey.value)].bytes));
    case CompletionStatus::kPeerLost:
      return absl::UnavailableError(absl::StrFormat("%s does not answer", peer_name_));
    case CompletionStatus::kNoMemory:
      return NoAddressesLeft("a region of another process");
    case CompletionStatus::kLocalError:
      return absl::ResourceExhaustedError(absl::StrFormat("cannot map a region of %s", peer_name_));
    default:
      return absl::PermissionDeniedError(
          absl::StrFormat("%s has no readable region with this key", peer_name_));
  }
}

}  // namespace nam::fabric::shm
