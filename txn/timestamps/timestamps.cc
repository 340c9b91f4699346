#include "txn/timestamps/timestamps.h"

#include <algorithm>

#include "base/status_macros.h"
#include "txn/timestamps/bit_vector_timestamps.h"
#include "txn/timestamps/leased_timestamps.h"

namespace nam::txn {

std::unique_ptr<Timestamps> Timestamps::Make(TimestampKind kind, ExtentSpace& state, StateGeometry geometry,
                                             uint32_t client, CommitPoint& commit_point, Clock& clock,
                                             SharedTimestamps* shared) {
  if (kind == TimestampKind::kBitVector) {
    return std::make_unique<BitVectorTimestamps>(state, geometry, client, commit_point, clock);
  }
  return std::make_unique<LeasedTimestamps>(state, geometry, client, commit_point, clock, shared);
}

absl::StatusOr<const StateHead*> Timestamps::AddReadHead(storage::VerbBatch& batch) {
  std::byte* const head = batch.Scratch(sizeof(StateHead));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(0));
  batch.Read(target, head, sizeof(StateHead));
  return reinterpret_cast<const StateHead*>(head);
}

absl::Status Timestamps::AddSwap(storage::VerbBatch& batch, uint64_t offset, uint64_t from, uint64_t to,
                                 uint64_t* old) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(offset));
  batch.CompareAndSwap(target, from, to, old);
  return absl::OkStatus();
}

// Everything lies on one server, so on one queue pair, so in this order: our slot publishes what we saw last;
// only then is the rest READ.
absl::StatusOr<uint64_t> Timestamps::Snapshot(storage::VerbBatch& batch) {
  if (published_ == 0) NAM_RETURN_IF_ERROR(AddPublish(batch));
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(Advance(batch, *head));
  if (snapshot_ < head->horizon) return absl::InternalError("the horizon is beyond what is done");
  return snapshot_;
}

// An atomic, since it must not pass the READs after it; a WRITE might, over shared memory.
absl::Status Timestamps::AddPublish(storage::VerbBatch& batch) {
  published_ = std::max<uint64_t>(snapshot_, 1);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target slot,
                       At(geometry_.slot(client_) + kSlotSnapshotOffset));
  batch.FetchAdd(slot, published_, batch.Word());
  return absl::OkStatus();
}

absl::Status Timestamps::AddRelease(storage::VerbBatch& batch) {
  if (published_ == 0) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target slot,
                       At(geometry_.slot(client_) + kSlotSnapshotOffset));
  batch.FetchAdd(slot, ~published_ + 1, batch.Word());
  published_ = 0;
  return absl::OkStatus();
}

// A client that publishes after the slots were READ takes its snapshot later still, so it reaches the floor.
absl::StatusOr<Timestamps::Horizon> Timestamps::RaiseHorizon(storage::VerbBatch& batch) {
  const size_t kept = batch.scratch_used();
  Horizon horizon;
  NAM_ASSIGN_OR_RETURN(horizon.value, Floor(batch));
  NAM_RETURN_IF_ERROR(VisitSlots(state_, geometry_, batch, [&](uint32_t client, const SlotWords& slot) {
    if (client == client_ || slot.snapshot == 0 || slot.snapshot >= horizon.value) return;
    horizon = {slot.snapshot, client};
  }));
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(batch.Execute());
  // Another client may be ahead.
  uint64_t known = head->horizon;
  while (known < horizon.value) {
    uint64_t* const old = batch.Word();
    NAM_RETURN_IF_ERROR(AddSwap(batch, kHorizonOffset, known, horizon.value, old));
    NAM_RETURN_IF_ERROR(batch.Execute());
    known = *old == known ? horizon.value : *old;
  }
  horizon.value = known;
  batch.Reset(kept);
  return horizon;
}

}  // namespace nam::txn
