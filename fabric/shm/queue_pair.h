#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/shm/completion_queue.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/link.h"
#include "fabric/shm/message_ring.h"
#include "fabric/shm/peer_process.h"
#include "fabric/shm/region_registry.h"

namespace nam::fabric::shm {

class Service;

/// Executes one-sided operations inside Post. Keeps a work request only when its completion has to wait:
///
///     Post ──▶ executed ──────────────────────────────────▶ completion queue
///        └───▶ pending_:  [ placed, waiting for its receive | executed behind one | not placed yet ]
///                         └── completes in order ──▶           └── ring full: nothing passes it
///
/// A one-sided operation behind a SEND that waits for its receive executes at once and completes after the
/// SEND. All of this runs on the completion queue's thread; only `link_` is shared.
class ShmQueuePair final : public QueuePair, public ImmediateOperations {
 public:
  /// The parts of its fabric that it uses; must outlive it.
  struct Environment {
    RegionRegistry* regions = nullptr;
    Service* service = nullptr;
    int64_t peer_timeout_us = 0;
    std::atomic<int>* live_objects = nullptr;
  };

  /// Requires valid options that fit `completions`, and that the service watches `link`.
  ShmQueuePair(const Environment& environment, ShmCompletionQueue* completions,
               const QueuePairOptions& options, std::shared_ptr<Link> link, Established established,
               std::string peer_name);
  ~ShmQueuePair() override;

  uint64_t id() const override { return id_; }
  QueuePairState state() const override {
    return failed_ || link_->lost() ? QueuePairState::kError : QueuePairState::kReady;
  }
  std::string peer() const override { return peer_name_; }
  absl::Status Post(std::span<const WorkRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;
  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  absl::Status Disconnect(Deadline deadline) override;

  // one_sided.cc
  const std::byte* ViewNow(RemoteAddress from, size_t bytes) override;
  CompletionStatus ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) override;
  CompletionStatus WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) override;
  CompletionStatus CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                     uint64_t* old) override;
  CompletionStatus FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) override;

  // -- For the completion queue --
  /// Receives messages, completes waiting requests, detects a lost peer.
  void Progress();

 private:
  struct CachedRegion {
    uint32_t rkey = 0;  // 0: none
    Access access = Access::kNone;
    bool viewed = false;
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    const std::atomic<uint32_t>* live_key = nullptr;
  };
  static_assert(sizeof(CachedRegion) == 32);
  struct Pending {
    WorkRequest request;
    std::vector<std::byte> inlined;
    MessageHeader header;
    uint64_t message = 0;
    bool executed = false;  // one-sided, with `result`
    CompletionStatus result = CompletionStatus::kOk;
  };

  absl::Status Admit(std::span<const WorkRequest> batch) const;
  /// Detects, before work is posted, that the peer died or deregistered regions.
  void Attend() {
    if (link_->lost() && !failed_) [[unlikely]]
      Progress();
    if (peer_->deregistrations() != deregistrations_seen_) [[unlikely]]
      DropStaleRegions();
  }
  void Finish(const WorkRequest& request, CompletionStatus status) {
    if (status == CompletionStatus::kOk && request.signal == Signal::kUnsignaled) [[likely]] {
      ++unsignaled_;
    } else {
      Complete(request, status);
    }
  }
  void Complete(const WorkRequest& request, CompletionStatus status);

  // one_sided.cc
  CompletionStatus Execute(const WorkRequest& request);
  template <typename Operation>
  CompletionStatus ExecuteNow(const Operation& operation);
  CompletionStatus FromRemote(const RemoteAddress& from, std::byte* into, uint32_t bytes);
  CompletionStatus ToRemote(const std::byte* from, uint32_t bytes, const RemoteAddress& to);
  template <typename Change>
  CompletionStatus ChangeWord(const RemoteAddress& at, const Change& change);
  template <typename Change>
  CompletionStatus ChangeRemote(const RemoteAddress& at, uint64_t bytes, Access wanted, const Change& change);
  /// True if the region is cached, even if stale; Good tells whether it may be used now.
  bool Cached(uint32_t rkey) const {
    const uint32_t slot = SlotOf(rkey);
    return slot < cache_.size() && cache_[slot].rkey == rkey && rkey != 0;
  }
  static bool Good(const CachedRegion& region, const RemoteAddress& at, uint64_t bytes, Access wanted) {
    return region.live_key->load(std::memory_order_acquire) == at.rkey.value &&
           Allows(region.access, wanted) && at.offset <= region.bytes && bytes <= region.bytes - at.offset;
  }
  CompletionStatus Resolve(const RemoteAddress& at, uint64_t bytes, Access wanted, std::byte** remote) {
    if (!Cached(at.rkey.value)) [[unlikely]] {
      if (const CompletionStatus mapped = MapRegion(at.rkey.value); mapped != CompletionStatus::kOk)
        return mapped;
    }
    const CachedRegion& region = cache_[SlotOf(at.rkey.value)];
    if (!Good(region, at, bytes, wanted)) [[unlikely]]
      return CompletionStatus::kRemoteAccessError;
    *remote = region.data + at.offset;
    return CompletionStatus::kOk;
  }
  absl::Status ViewError(RemoteAddress from, size_t bytes);
  CompletionStatus MapRegion(uint32_t rkey);
  void DropStaleRegions();

  // messages.cc
  void Enqueue(const WorkRequest& request);
  void Advance();
  bool PlaceNext();
  bool CompleteOldest();
  void ReceiveMessages();
  void FinishReceive(CompletionStatus status, const MessageHeader* header);
  void Fail(CompletionStatus pending_status);
  Pending& pending(uint32_t i) { return pending_[(pending_head_ + i) % pending_.size()]; }

  const uint64_t id_;
  const Environment environment_;
  ShmCompletionQueue& completions_;
  const QueuePairOptions options_;
  const std::string peer_name_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<PeerProcess> peer_;
  const ChannelEnd channel_;
  std::atomic<uint32_t>& executing_;      // in channel_: the key of the region being accessed; 0: none
  const std::atomic<uint32_t>& revoked_;  // in channel_: not 0 once the peer has ended the connection
  const Access rights_;                   // the most that this side may do in the peer's regions
  const bool runs_own_barriers_;
  Outbox outbox_;
  Inbox inbox_;

  bool failed_ = false;
  bool loss_untold_ = false;  // the peer is lost, and no work request has reported it yet
  uint32_t sends_used_ = 0;
  uint32_t receives_used_ = 0;
  uint32_t unsignaled_ =
      0;  // completed since the last completion, which did not free them; the next one will

  // Indexed by slot. `regions_` owns the targets of cache_; `viewed_` owns regions that spans may still point
  // to.
  std::vector<CachedRegion> cache_;
  std::vector<std::shared_ptr<const RemoteRegion>> regions_;
  std::vector<std::shared_ptr<const RemoteRegion>> viewed_;
  uint32_t deregistrations_seen_ = 0;

  std::vector<Pending> pending_;  // a ring of send_depth
  uint32_t pending_head_ = 0;
  uint32_t pending_count_ = 0;
  uint32_t placed_count_ = 0;  // prefix of pending_ that is placed or executed
  bool broken_ = false;        // an executed operation failed: nothing behind it executes
  bool starved_ = false;       // last value told to the peer

  std::vector<ReceiveRequest> receives_;  // a ring of receive_depth
  uint32_t receives_head_ = 0;
  uint32_t receives_count_ = 0;
};

}  // namespace nam::fabric::shm
