#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/shared_timestamps.h"
#include "txn/timestamps/commit_point.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// One client's commit timestamps and snapshots. One thread. Shares the thread's batch, and has it to itself
/// in calls that execute it.
///
///     Snapshot ─▶ … ─▶ AddTake ─▶ AddClaim ─▶ ConfirmClaim ─▶ CommitPoint: committed, or given up ─▶ AddDone
///         └ AddRelease   round 1    round 2     └ it is ours; or another, if a client has passed over it
///
/// A snapshot is the largest timestamp up to which all are done, or will never be claimed. `Done` says that a
/// transaction is decided, not that its headers are flipped.
class Timestamps {
 public:
  /// After this time a client is checked, or passed over.
  static constexpr int64_t kPatienceUs = 1'000;

  /// `commit_point` is the client's; `shared` is the process's, null: nothing is shared. All outlive it.
  static std::unique_ptr<Timestamps> Make(TimestampKind kind, ExtentSpace& state, StateGeometry geometry,
                                          uint32_t client, CommitPoint& commit_point, Clock& clock,
                                          SharedTimestamps* shared);
  virtual ~Timestamps() = default;

  /// Takes the snapshot, or a newer one. From then to Release no row that it sees is reclaimed.
  absl::StatusOr<uint64_t> Snapshot(storage::VerbBatch& batch);
  /// Releases the snapshot.
  absl::Status AddRelease(storage::VerbBatch& batch);
  /// The client whose commit has held the snapshot back for longer than kPatienceUs; 0: none.
  virtual uint32_t Suspect() const = 0;
  /// True if so many timestamps are beyond the snapshot that another commit may get none.
  virtual bool Crowded() const = 0;

  /// True if a timestamp that was claimed or given out, and is not done, holds the snapshot back.
  virtual bool Held() const = 0;
  /// How often a client that holds the snapshot back was seen to go on with its commit.
  uint64_t moves() const { return moves_; }
  /// True if only clients without a claim hold the snapshot back.
  virtual bool HeldByIdle() const = 0;

  /// A commit's first round trip asks for a timestamp; its second claims it, after the slot's word.
  virtual absl::Status AddTake(storage::VerbBatch& batch) = 0;
  virtual absl::Status AddClaim(storage::VerbBatch& batch) = 0;
  virtual uint64_t taken() const = 0;
  /// Replaces AddClaim if the timestamp is not used.
  virtual absl::Status AddSkip(storage::VerbBatch& batch) = 0;
  /// Called once both are executed. OK: this client has claimed taken(); false if taken() has changed since
  /// AddTake. ABORTED if no timestamp is free; the commit may be retried.
  virtual absl::StatusOr<bool> ConfirmClaim(storage::VerbBatch& batch) = 0;
  /// An upper bound of all timestamps claimed by now.
  virtual absl::StatusOr<uint64_t> Newest(storage::VerbBatch& batch) = 0;
  /// Marks a claimed timestamp done, after a commit or after it was given up. Another client may already have
  /// done so.
  virtual absl::Status AddDone(storage::VerbBatch& batch, uint64_t timestamp) = 0;
  /// Called when the session ends in order: no client waits for this one.
  virtual absl::Status AddLeave(storage::VerbBatch& batch) = 0;

  /// Called for a fenced client whose last transaction is decided: no client waits for it.
  virtual absl::Status Finish(storage::VerbBatch& batch, uint32_t client, uint64_t timestamp) = 0;

  /// Every snapshot, in use or later, is at least `value`.
  struct Horizon {
    uint64_t value = 0;
    uint32_t held_by = 0;  // the client with the oldest snapshot; 0: this one
  };
  /// During a transaction: raises the horizon as far as possible.
  absl::StatusOr<Horizon> RaiseHorizon(storage::VerbBatch& batch);

 protected:
  Timestamps(ExtentSpace& state, StateGeometry geometry, uint32_t client, CommitPoint& commit_point,
             Clock& clock)
      : state_(state), geometry_(geometry), client_(client), commit_point_(commit_point), clock_(clock) {}

  /// During a transaction: a lower bound of all later snapshots.
  virtual absl::StatusOr<uint64_t> Floor(storage::VerbBatch& batch) = 0;
  /// Advances snapshot_. The batch holds a READ of `head`, which precedes any request added here.
  virtual absl::Status Advance(storage::VerbBatch& batch, const StateHead& head) = 0;

  absl::StatusOr<storage::Channel::Target> At(uint64_t offset) { return state_.Resolve(offset); }
  /// READs the head into scratch memory when the batch is executed.
  absl::StatusOr<const StateHead*> AddReadHead(storage::VerbBatch& batch);
  absl::Status AddSwap(storage::VerbBatch& batch, uint64_t offset, uint64_t from, uint64_t to, uint64_t* old);

  ExtentSpace& state_;
  const StateGeometry geometry_;
  const uint32_t client_;
  CommitPoint& commit_point_;
  Clock& clock_;
  uint64_t snapshot_ = 0;
  uint64_t moves_ = 0;

 private:
  absl::Status AddPublish(storage::VerbBatch& batch);

  uint64_t published_ = 0;  // in our slot
};

}  // namespace nam::txn
