#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "txn/timestamps.h"

namespace nam::txn {

/// Timestamps that are taken when a commit needs one.
///
///     next ──FETCH_ADD──▶ t ──CAS of its entry──▶ claimed ──────▶ done
///                                └ skipped by somebody whom it held up: take another
class LeasedTimestamps final : public Timestamps {
 public:
  LeasedTimestamps(ExtentSpace& state, StateGeometry geometry, uint32_t client, Clock& clock)
      : Timestamps(state, geometry, client, clock) {}

  uint32_t Suspect() const override;
  bool Crowded() const override { return next_ > snapshot_ + kRingEntries / 2; }
  bool Held() const override { return next_ > snapshot_; }
  bool HeldByIdle() const override { return false; }
  absl::Status AddTake(storage::VerbBatch& batch) override;
  absl::Status AddClaim(storage::VerbBatch& batch) override;
  uint64_t taken() const override { return *taken_ + 1; }
  absl::Status AddSkip(storage::VerbBatch& batch) override;
  absl::StatusOr<bool> Settle(storage::VerbBatch& batch) override;
  absl::StatusOr<uint64_t> Newest(storage::VerbBatch& batch) override;
  absl::Status AddDone(storage::VerbBatch& batch, uint64_t timestamp) override;
  absl::Status AddLeave(storage::VerbBatch&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<uint64_t>> ClaimedBy(storage::VerbBatch& batch, uint32_t client) override;
  absl::Status Finish(storage::VerbBatch& batch, uint32_t client,
                      const std::vector<uint64_t>& claimed) override;

 private:
  absl::StatusOr<uint64_t> Floor(storage::VerbBatch&) override { return snapshot_; }
  absl::Status Advance(storage::VerbBatch& batch, const StateHead& head) override;
  bool claimed() const { return *claim_ == RingEntry::Before(taken()).word(); }
  absl::Status ReadEntries(storage::VerbBatch& batch, uint64_t count);
  absl::Status JumpToWatermark(storage::VerbBatch& batch);
  absl::Status RaiseWatermark(storage::VerbBatch& batch);
  absl::Status LookAhead(storage::VerbBatch& batch);

  uint64_t next_ = 0;                  // the last that was given out, as last seen
  uint64_t watermark_ = 0;             // as last seen
  uint64_t first_read_ = 64;           // entries that the next Advance begins with
  std::span<const uint64_t> entries_;  // just READ, those from snapshot_ + 1 on
  // What the snapshot waits for: the entry after it, and since when.
  uint64_t waits_at_ = 0;
  uint64_t waits_for_ = 0;
  int64_t waits_since_ns_ = 0;
  uint64_t* taken_ = nullptr;
  uint64_t* claim_ = nullptr;
};

}  // namespace nam::txn
