#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "txn/timestamps/timestamps.h"

namespace nam::txn {

/// Timestamps that a commit takes when it needs one.
///
///     next ──FETCH_ADD──▶ t ──CAS of the slot's word, CAS of its entry──▶ claimed ──CAS──▶ done
///                                └ passed over by a client that it held up: take another
///
/// A client that takes a snapshot checks and times all entries that keep the snapshot from growing, not only
/// the first:
///
///     given out, unclaimed for kPatienceUs         CAS of the entry to done: a claim that comes late fails
///     claimed, and the slot says committing        CAS of the entry to done: it has happened
///     claimed for longer than the slot's patience  CAS of the slot to skipped, then of the entry to done
///     claimed, and the slot has left t             CAS of the entry to done: it is decided
///
/// So a stalled client hides others' commits no longer than its patience.
class LeasedTimestamps final : public Timestamps {
 public:
  LeasedTimestamps(ExtentSpace& state, StateGeometry geometry, uint32_t client, CommitPoint& commit_point,
                   Clock& clock, SharedTimestamps* shared)
      : Timestamps(state, geometry, client, commit_point, clock), shared_(shared) {}

  /// None: clients that need a dead client's locks recover them.
  uint32_t Suspect() const override { return 0; }
  bool Crowded() const override { return next_ > snapshot_ + kRingEntries / 2; }
  bool Held() const override { return next_ > snapshot_; }
  bool HeldByIdle() const override { return false; }
  absl::Status AddTake(storage::VerbBatch& batch) override;
  absl::Status AddClaim(storage::VerbBatch& batch) override;
  uint64_t taken() const override { return *taken_ + 1; }
  absl::Status AddSkip(storage::VerbBatch& batch) override;
  absl::StatusOr<bool> ConfirmClaim(storage::VerbBatch& batch) override;
  absl::StatusOr<uint64_t> Newest(storage::VerbBatch& batch) override;
  absl::Status AddDone(storage::VerbBatch& batch, uint64_t timestamp) override;
  absl::Status AddLeave(storage::VerbBatch&) override { return absl::OkStatus(); }
  absl::Status Finish(storage::VerbBatch& batch, uint32_t client, uint64_t timestamp) override;

 private:
  /// An entry that keeps the snapshot from growing.
  struct Waiting {
    uint64_t timestamp = 0;
    uint64_t word = 0;
    int64_t since_ns = 0;
    int64_t patience_us = kPatienceUs;
    uint64_t seen = 0;               // its client's word, as READ last; 0: it was not
    const uint64_t* slot = nullptr;  // scratch: its client's word
    uint64_t* old = nullptr;         // scratch: that word when it was to be skipped
  };

  absl::StatusOr<uint64_t> Floor(storage::VerbBatch&) override { return snapshot_; }
  absl::Status Advance(storage::VerbBatch& batch, const StateHead& head) override;
  absl::Status AddReadEntries(storage::VerbBatch& batch, uint64_t count);
  void AdvanceOverDone();
  bool RaisesWatermark() const;
  absl::Status AddRaiseWatermark(storage::VerbBatch& batch);
  absl::Status LookAhead(storage::VerbBatch& batch);
  bool TimeEntries();
  absl::Status PassOver(storage::VerbBatch& batch);
  absl::Status AddEntrySwap(storage::VerbBatch& batch, uint64_t timestamp, uint64_t from) {
    return AddSwap(batch, geometry_.entry(timestamp), from, RingEntry::Done(timestamp).word(), batch.Word());
  }
  bool claimed() const { return *claim_ == RingEntry::Before(taken()).word(); }

  SharedTimestamps* const shared_;     // the process's; null: nothing is shared
  uint64_t next_ = 0;                  // the last one given out, as last seen
  uint64_t watermark_ = 0;             // likewise
  uint64_t first_read_ = 64;           // entries that the next Advance READs first
  uint64_t entries_at_ = 0;            // timestamp of the first in entries_
  std::span<const uint64_t> entries_;  // just READ; after AdvanceOverDone those from snapshot_ + 1 on
  std::vector<Waiting> waiting_;       // ascending
  std::vector<Waiting> waiting_now_;   // kept for its memory
  uint64_t* taken_ = nullptr;
  uint64_t* claim_ = nullptr;
};

}  // namespace nam::txn
