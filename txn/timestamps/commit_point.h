#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/timestamps/client_slot.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// The word of a client's slot that decides its transactions (SlotWord), as its client writes it. One thread,
/// whose batch it shares.
///
///     AddClaim ─Execute─▶ Claimed ─▶ all is written ─▶ Commit ─▶ true: it has happened
///                            └──────▶ all is taken back ─▶ GiveUp ◀── false: somebody has skipped it
class CommitPoint {
 public:
  /// `state` outlives it.
  CommitPoint(ExtentSpace& state, StateGeometry geometry, const ClientSlot& slot)
      : state_(state), geometry_(geometry), client_(slot.client), word_(slot.word) {}

  /// The next claims are of a transaction with so many writes: how long others wait for it before they skip
  /// it.
  void Expect(size_t writes);
  /// Claims `timestamp` when the batch is executed; again, if the one before was not used.
  absl::Status AddClaim(storage::VerbBatch& batch, uint64_t timestamp);
  /// Behind that: an error if somebody else has changed the word, since this client was believed to be gone.
  absl::Status Claimed();
  /// Whether the commit has happened.
  absl::StatusOr<bool> Commit(storage::VerbBatch& batch);
  /// Nothing of what was claimed is left to be taken back.
  absl::Status GiveUp(storage::VerbBatch& batch);

 private:
  absl::Status AddSwap(storage::VerbBatch& batch, SlotWord to);
  absl::Status LostError() const;

  ExtentSpace& state_;
  const StateGeometry geometry_;
  const uint32_t client_;
  SlotWord word_;                  // as we know it
  SlotWord next_;                  // what it becomes
  const uint64_t* old_ = nullptr;  // scratch: what it was instead
  uint32_t skips_ = 0;             // in a row
  uint32_t patience_ = 0;          // of the next claim
};

/// A transaction that may still write: its client has claimed a timestamp, or was skipped and has not taken
/// back everything.
struct UnderWay {
  uint32_t client = 0;
  SlotWord word;
};
/// Of all clients. Executes the batch.
absl::StatusOr<std::vector<UnderWay>> FindUnderWay(ExtentSpace& state, StateGeometry geometry,
                                                   storage::VerbBatch& batch);
/// Those of `under_way` whose slots have not changed.
absl::Status RemoveOver(ExtentSpace& state, storage::VerbBatch& batch, std::vector<UnderWay>& under_way);

}  // namespace nam::txn
