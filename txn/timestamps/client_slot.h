#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// A slot of the transaction state: what makes a session a client with a number of its own.
///
///     free, or recovered ──Claim──▶ used ──Release──▶ free
///                                     ├── its member is gone: Recovery ──────────────────▶ recovered
///                                     └── its connections were lost ─▶ lost: Recovery ───▶ recovered
struct ClientSlot {
  uint32_t client = 0;
  SlotOwner owner;               // as the slot says
  SlotWord word;                 // what the slot's former client has left there
  bool nearly_all_used = false;  // when it was claimed, of all slots

  /// A free slot, one of the lowest; one that was recovered only if no other is left. `owner`: of whom it is
  /// to be; `start` spreads those who look. RESOURCE_EXHAUSTED: all are used; those of members that are gone
  /// can be recovered. After another error *slot is one that may have been claimed, if it has a client.
  static absl::Status Claim(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                            SlotOwner owner, uint64_t start, ClientSlot* slot);
  /// Nothing is locked or claimed any more.
  absl::Status Release(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch) const;
};

/// READs the slots that were ever used, piece by piece. Each is one of a moment of its own, but no older than
/// the call. Executes the batch; `visit` does not use it.
absl::Status VisitSlots(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                        const std::function<void(uint32_t client, const SlotWords& slot)>& visit);

}  // namespace nam::txn
