#include "fabric/sim/queue_pair.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"

namespace nam::fabric::sim {

absl::Status SimQueuePair::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    NAM_RETURN_IF_ERROR(CheckWorkRequest(request, end_->options().inline_bytes_max));
  }
  NAM_RETURN_IF_ERROR(
      CheckSendRoom(batch.size(), end_->sends_used(), end_->options().send_depth, end_->peer_name()));
  end_->Post(batch);
  return absl::OkStatus();
}

absl::Status SimQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), end_->receives_used(), end_->options().receive_depth));
  end_->PostReceive(batch);
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> SimQueuePair::View(RemoteAddress, size_t) {
  return absl::FailedPreconditionError(
      "this simulated world shows no peer's memory in place: READ it instead");
}

absl::StatusOr<std::span<const std::byte>> InPlaceQueuePair::View(RemoteAddress from, size_t bytes) {
  const std::byte* const data = end_->View(from, bytes);
  if (data != nullptr) return std::span<const std::byte>(data, bytes);
  if (!end_->connected()) {
    return absl::UnavailableError(absl::StrFormat("the connection to %s has failed", peer()));
  }
  if (end_->View({from.rkey, 0}, 0) == nullptr) {
    return absl::PermissionDeniedError(absl::StrFormat("%s has no readable region with this key", peer()));
  }
  return absl::OutOfRangeError(
      absl::StrFormat("%d bytes at offset %d are outside a region of %s", bytes, from.offset, peer()));
}

const std::byte* InPlaceQueuePair::ViewNow(RemoteAddress from, size_t bytes) {
  scheduler_.Charge(1);
  scheduler_.Sync();
  return end_->View(from, bytes);
}

CompletionStatus InPlaceQueuePair::ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) {
  return end_->ExecuteNow(WorkRequest::Read(0, {into, bytes, {}}, from), nullptr);
}

CompletionStatus InPlaceQueuePair::WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) {
  return end_->ExecuteNow(WorkRequest::Write(0, {const_cast<std::byte*>(from), bytes, {}}, to), nullptr);
}

CompletionStatus InPlaceQueuePair::CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                                     uint64_t* old) {
  return end_->ExecuteNow(WorkRequest::CompareAndSwap(0, {nullptr, sizeof(*old), {}}, at, compare, swap),
                          old);
}

CompletionStatus InPlaceQueuePair::FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) {
  return end_->ExecuteNow(WorkRequest::FetchAdd(0, {nullptr, sizeof(*old), {}}, at, add), old);
}

std::unique_ptr<QueuePair> MakeQueuePair(Scheduler& scheduler, std::shared_ptr<Endpoint> end, bool in_place) {
  if (in_place) return std::make_unique<InPlaceQueuePair>(scheduler, std::move(end));
  return std::make_unique<SimQueuePair>(std::move(end));
}

}  // namespace nam::fabric::sim
