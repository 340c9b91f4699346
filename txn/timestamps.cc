#include "txn/timestamps.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "txn/bit_vector_timestamps.h"
#include "txn/leased_timestamps.h"

namespace nam::txn {

std::unique_ptr<Timestamps> Timestamps::Make(TimestampKind kind, ExtentSpace& state, StateGeometry geometry,
                                             uint32_t client, CommitPoint& commit_point,
                                             ProcessSnapshots::Pin* pin, Clock& clock) {
  if (kind == TimestampKind::kBitVector) {
    return std::make_unique<BitVectorTimestamps>(state, geometry, client, commit_point, pin, clock);
  }
  return std::make_unique<LeasedTimestamps>(state, geometry, client, commit_point, pin, clock);
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

// Everything lies on one server, so one queue pair, so in this order: the process's floor is there; only then
// is the rest READ.
absl::StatusOr<uint64_t> Timestamps::Snapshot(storage::VerbBatch& batch) {
  NAM_CHECK(pin_ != nullptr, "this client takes no snapshots");
  do {
    NAM_RETURN_IF_ERROR(pin_->AddEnter(batch, state_));
    NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
    NAM_RETURN_IF_ERROR(Advance(batch, *head));
    if (snapshot_ < head->horizon) return absl::InternalError("the horizon is beyond what is done");
  } while (!pin_->Entered());
  pin_->SetSnapshot(snapshot_, Reached());
  return snapshot_;
}

absl::Status Timestamps::AddRelease(storage::VerbBatch& batch) {
  return pin_->AddLeave(batch, state_);
}

// A process that publishes after the slots were READ takes its snapshot later still, so that reaches our
// floor. What our own process needs its sessions have said here, and more exactly than in its slot.
absl::StatusOr<Timestamps::Horizon> Timestamps::RaiseHorizon(storage::VerbBatch& batch) {
  const size_t kept = batch.scratch_used();
  Horizon horizon;
  NAM_ASSIGN_OR_RETURN(horizon.value, Floor(batch));
  const uint32_t own = pin_->process().client();
  NAM_RETURN_IF_ERROR(VisitSlots(state_, geometry_, batch, [&](uint32_t client, const SlotWords& slot) {
    const uint64_t floor = FloorWord(slot.floor).floor();
    if (client == own || floor == 0 || floor >= horizon.value) return;
    horizon = {floor, client};
  }));
  if (const uint64_t least = pin_->process().Least(horizon.value); least < horizon.value)
    horizon = {least, 0};
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(batch.Execute());
  // Somebody else may be ahead.
  uint64_t known = head->horizon;
  while (known < horizon.value) {
    uint64_t* const old = Word(batch);
    NAM_RETURN_IF_ERROR(AddSwap(batch, kHorizonOffset, known, horizon.value, old));
    NAM_RETURN_IF_ERROR(batch.Execute());
    known = *old == known ? horizon.value : *old;
  }
  horizon.value = known;
  batch.Reset(kept);
  return horizon;
}

}  // namespace nam::txn
