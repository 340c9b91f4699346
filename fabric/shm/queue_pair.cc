#include "fabric/shm/queue_pair.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/process_barriers.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/service.h"

namespace nam::fabric::shm {
namespace {

/// The operations of a batch whose remote memory is prefetched while one executes: about as many cache misses
/// as a processor has in flight. Without prefetching, every atomic would wait for its own miss.
constexpr size_t kFetchedAhead = 16;
/// Prefetched bytes per operation; the processor's own prefetcher continues from there.
constexpr uint32_t kFetchedBytesMax = 256;

}  // namespace

ShmQueuePair::ShmQueuePair(const Environment& environment, ShmCompletionQueue* completions,
                           const QueuePairOptions& options, std::shared_ptr<Link> link,
                           Established established, std::string peer_name)
    : id_(NextQueuePairId()),
      environment_(environment),
      completions_(*completions),
      options_(options),
      peer_name_(std::move(peer_name)),
      link_(std::move(link)),
      peer_(std::move(established.peer)),
      channel_(std::move(established.channel)),
      executing_(channel_.own().executing),
      revoked_(channel_.own().revoked),
      rights_(established.rights),
      runs_own_barriers_(!JoinBarriers() || !peer_->runs_barriers()),
      outbox_(&channel_.own(), &channel_.peer(), peer_.get()),
      inbox_(&channel_.own(), &channel_.peer(), peer_.get()),
      deregistrations_seen_(peer_->deregistrations()),
      pending_(options.send_depth),
      receives_(options.receive_depth) {
  completions_.Attach(this, options_);
  channel_.own().bell.store(completions_.bell_index(), std::memory_order_release);
  link_->set_bell(&completions_.bell());
  environment_.live_objects->fetch_add(1);
}

ShmQueuePair::~ShmQueuePair() {
  environment_.service->RemoveLink(*link_);
  link_->Shutdown();
  completions_.Detach(this, options_);
  environment_.live_objects->fetch_sub(1);
}

absl::Status ShmQueuePair::Admit(std::span<const WorkRequest> batch) const {
  NAM_RETURN_IF_ERROR(CheckSendRoom(batch.size(), sends_used_, options_.send_depth, peer_name_));
  for (const WorkRequest& request : batch) {
    if (IsPlain(request)) [[likely]]
      continue;
    NAM_RETURN_IF_ERROR(CheckWorkRequest(request, options_.inline_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status ShmQueuePair::Post(std::span<const WorkRequest> batch) {
  NAM_RETURN_IF_ERROR(Admit(batch));
  Attend();
  sends_used_ += static_cast<uint32_t>(batch.size());
  // Prefetches the request's remote memory. Checks nothing and waits for nothing.
  const auto fetch = [this](const WorkRequest& request) {
    const uint32_t slot = SlotOf(request.remote.rkey.value);
    if (slot >= cache_.size()) return;
    const auto start = reinterpret_cast<uintptr_t>(cache_[slot].data) + request.remote.offset;
    const auto* const from = reinterpret_cast<const void*>(start);
    if (request.opcode == Opcode::kRead) {
      Prefetch<false>(from, std::min(request.local.bytes, kFetchedBytesMax));
    } else {
      Prefetch<true>(from, std::min(request.local.bytes, kFetchedBytesMax));
    }
  };
  const size_t ahead = std::min(batch.size(), kFetchedAhead);
  for (size_t i = 0; i < ahead; ++i) fetch(batch[i]);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (i + kFetchedAhead < batch.size()) [[unlikely]]
      fetch(batch[i + kFetchedAhead]);
    const WorkRequest& request = batch[i];
    if (IsOneSided(request.opcode) && pending_count_ == 0 && !failed_) [[likely]] {
      Finish(request, Execute(request));
    } else {
      Enqueue(request);
    }
  }
  return absl::OkStatus();
}

void ShmQueuePair::Complete(const WorkRequest& request, CompletionStatus status) {
  completions_.Push({.id = request.id, .queue_pair = id_, .status = status, .opcode = request.opcode},
                    &sends_used_, unsignaled_ + 1);
  unsignaled_ = 0;
  if (status != CompletionStatus::kOk && !failed_) Fail(CompletionStatus::kFlushed);
}

absl::Status ShmQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), receives_used_, options_.receive_depth));
  for (const ReceiveRequest& receive : batch) {
    ++receives_used_;
    receives_[(receives_head_ + receives_count_) % receives_.size()] = receive;
    ++receives_count_;
    if (failed_) {
      FinishReceive(CompletionStatus::kFlushed, nullptr);
    } else if (receive.into.bytes > 0 && !environment_.regions->Contains(receive.into)) {
      // Earlier receives are flushed with the queue pair; this one must say why.
      --receives_count_;
      Fail(CompletionStatus::kFlushed);
      receives_[receives_head_] = receive;
      ++receives_count_;
      FinishReceive(CompletionStatus::kLocalError, nullptr);
    } else {
      inbox_.Post(receive.into.bytes);
    }
  }
  if (!failed_) {
    inbox_.Publish();
    ReceiveMessages();
  }
  return absl::OkStatus();
}

// Post has executed all operations, or never will.
absl::Status ShmQueuePair::Disconnect(Deadline /*deadline*/) {
  if (!failed_) Fail(CompletionStatus::kFlushed);
  return absl::OkStatus();
}

void ShmQueuePair::Progress() {
  // First check whether the peer is lost, then its messages: so everything that it sent is seen.
  const bool lost = link_->lost();
  if (failed_) return;
  ReceiveMessages();
  Advance();
  if (lost && !failed_) {
    loss_untold_ = pending_count_ == 0;
    Fail(CompletionStatus::kPeerLost);
  }
}

}  // namespace nam::fabric::shm
