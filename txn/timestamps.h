#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// One client's timestamps, taken when a commit needs one (`leased`), and the snapshots of its transactions.
/// One thread; has the batch to itself in calls that execute it.
///
///     next ──FETCH_ADD──▶ t ──CAS of its entry──▶ claimed ──all headers written, or given up──▶ done
///                                └ skipped by somebody whom it held up: take another
class Timestamps {
 public:
  /// Somebody who is waited for this long is looked at, or skipped.
  static constexpr int64_t kPatienceUs = 1'000;

  Timestamps(ExtentSpace& state, StateGeometry geometry, uint32_t client, Clock& clock)
      : state_(state), geometry_(geometry), client_(client), clock_(clock) {}

  /// Takes the snapshot: the largest timestamp up to which all are done. From then to Release no row that it
  /// sees is reclaimed.
  absl::StatusOr<uint64_t> Snapshot(storage::VerbBatch& batch);
  /// The snapshot is not used any more.
  absl::Status AddRelease(storage::VerbBatch& batch);
  /// The client whose commit holds the snapshot back since before kPatienceUs; 0: nobody.
  uint32_t Suspect() const;

  /// The first round trip of a commit asks for a timestamp, its second claims it.
  absl::Status AddTake(storage::VerbBatch& batch);
  absl::Status AddClaim(storage::VerbBatch& batch);
  uint64_t taken() const { return *taken_ + 1; }
  /// Instead of AddClaim: what was taken is not used.
  absl::Status AddSkip(storage::VerbBatch& batch);
  /// Whether it is ours. Otherwise begin anew.
  bool claimed() const { return *claim_ == RingEntry::Before(taken()).word(); }
  /// All timestamps that were taken before the batch is executed are at most *word: scratch memory.
  absl::StatusOr<const uint64_t*> AddReadTaken(storage::VerbBatch& batch);
  /// A claimed timestamp becomes done.
  absl::Status AddDone(storage::VerbBatch& batch, uint64_t timestamp);

 private:
  absl::Status ReadEntries(storage::VerbBatch& batch, uint64_t count);
  absl::Status JumpToWatermark(storage::VerbBatch& batch);
  absl::Status RaiseWatermark(storage::VerbBatch& batch);
  absl::Status LookAhead(storage::VerbBatch& batch);
  absl::StatusOr<storage::Channel::Target> At(uint64_t offset) { return state_.Resolve(offset); }

  ExtentSpace& state_;
  const StateGeometry geometry_;
  const uint32_t client_;
  Clock& clock_;
  uint64_t snapshot_ = 0;
  uint64_t first_read_ = 64;           // entries that the next Snapshot begins with
  uint64_t watermark_ = 0;             // as last seen
  uint64_t published_ = 0;             // in our slot
  std::span<const uint64_t> entries_;  // just READ, those from snapshot_ + 1 on
  // What the snapshot waits for: the entry after it, and since when.
  uint64_t waits_at_ = 0;
  uint64_t waits_for_ = 0;
  int64_t waits_since_ns_ = 0;
  uint64_t* taken_ = nullptr;
  uint64_t* claim_ = nullptr;
};

}  // namespace nam::txn
