#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/timestamps/client_slot.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// The word of a client's slot that decides its transactions (SlotWord), written by that client. One thread,
/// whose batch it shares.
///
///     AddClaim ─Execute─▶ Claimed ─▶ all is written ─▶ Commit ─▶ true: it has happened
///      ▲                     └──────▶ all is taken back ─▶ GiveUp ◀── false: another client has skipped it
///      └ much is written ◀─ Claimed ◀─Execute─ AddPrepare
class CommitPoint {
 public:
  /// `state` outlives it.
  CommitPoint(ExtentSpace& state, StateGeometry geometry, const ClientSlot& slot)
      : state_(state), geometry_(geometry), client_(slot.client), word_(slot.word) {}

  /// Sets how long others wait before they skip the next claims: enough for a transaction with so many
  /// writes.
  void Expect(size_t writes);
  /// Says that the client prepares a transaction, which has no timestamp yet.
  absl::Status AddPrepare(storage::VerbBatch& batch) { return AddSwap(batch, SlotWord::Preparing()); }
  /// Claims `timestamp` when the batch is executed. May be repeated if the timestamp before was not used.
  absl::Status AddClaim(storage::VerbBatch& batch, uint64_t timestamp);
  /// After that: an error if another client has changed the word because it took this one for dead.
  absl::Status Claimed();
  /// Called again and again during a long claim, and before it: moves the word from time to time, so that no
  /// client takes this one for stalled. Executes the batch then. False: another client has skipped the claim.
  absl::StatusOr<bool> GoOn(storage::VerbBatch& batch, Clock& clock);
  /// True if the commit has happened.
  absl::StatusOr<bool> Commit(storage::VerbBatch& batch);
  /// Called once everything claimed has been undone.
  absl::Status GiveUp(storage::VerbBatch& batch);

 private:
  absl::Status AddSwap(storage::VerbBatch& batch, SlotWord to);
  absl::Status LostError() const;

  ExtentSpace& state_;
  const StateGeometry geometry_;
  const uint32_t client_;
  SlotWord word_;                  // as known
  SlotWord next_;                  // its next value
  const uint64_t* old_ = nullptr;  // scratch: the CAS's result
  uint32_t skips_ = 0;             // in a row
  uint32_t patience_ = 0;          // for the next claim
  int64_t move_ns_ = 0;            // when the claim's word moves next; 0: it is new
};

/// A transaction that may still write: its client has claimed a timestamp, or was skipped and has not undone
/// everything.
struct UnderWay {
  uint32_t client = 0;
  SlotWord word;
  bool operator==(const UnderWay&) const = default;
};
/// The transactions under way of all clients. Executes the batch.
absl::StatusOr<std::vector<UnderWay>> FindUnderWay(ExtentSpace& state, StateGeometry geometry,
                                                   storage::VerbBatch& batch);
/// Keeps those of `under_way` that are not over, with their words as of now.
absl::Status RemoveOver(ExtentSpace& state, storage::VerbBatch& batch, std::vector<UnderWay>& under_way);

}  // namespace nam::txn
