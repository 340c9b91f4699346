#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// A slot of the transaction state. It makes a session a client with a number of its own.
///
///     free, or recovered ──Claim──▶ used ──Release──▶ free
///                                     ├── its member is gone: Recovery ──────────────────▶ recovered
///                                     └── its connections were lost ─▶ lost: Recovery ───▶ recovered
struct ClientSlot {
  uint32_t client = 0;
  SlotOwner owner;               // as in the slot
  SlotWord word;                 // the former client's
  bool nearly_all_used = false;  // of all slots, when this one was claimed

  /// Claims a free slot, one of the lowest; a recovered one only if no other is left. `owner`: the new owner;
  /// `start` spreads concurrent claims. RESOURCE_EXHAUSTED: all are used; recovery frees those of members
  /// that are gone. After another error *slot may have been claimed if it has a client.
  static absl::Status Claim(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                            SlotOwner owner, uint64_t start, ClientSlot* slot);
  /// Frees the slot. Nothing is locked or claimed any more.
  absl::Status Release(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch) const;
};

/// READs the slots that were ever used, piece by piece. Each is as of a moment of its own, after the call
/// began. Executes the batch; `visit` does not use it.
absl::Status VisitSlots(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                        const std::function<void(uint32_t client, const SlotWords& slot)>& visit);

}  // namespace nam::txn
