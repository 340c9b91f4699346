#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "txn/timestamps/timestamps.h"

namespace nam::txn {

/// The paper's bit vector: timestamps are assigned in advance, one of every row to every client, whose bit
/// marks it done.
///
///              lane 1  2  3 … 511
///     row 1      ■  ■  ■            a row is complete when every present lane's bit is set; a snapshot holds
///     row 2      ■  □  ■            complete rows, and the first incomplete row's lanes before the gap
///     row 3      □  □  ■  ◀ top: no row beyond it is claimed
///
///     lane    absent ──join──▶ present at row k ──CAS──▶ claims row k + 1 ──FETCH_ADD of its bit──▶ done
///               ▲                 │    └──CAS, FETCH_ADDs──▶ gives rows up to top up, when it takes a
///               snapshot └── leaves; made absent by a client that it held up while it had claimed nothing
///
/// Why no snapshot passes a claim: a snapshot READs top, then bits, then the lanes' words. A lane that it
/// does not see present has joined later, and its client READs top after joining and claims above it, so
/// above the snapshot too. A lane that it sees present had set its bits right before it joined; then each is
/// `not done` until its row is. At most 120 rows have valid bits, and no row is claimed more than 119 above
/// the watermark.
///
/// Only the client changes its bits, so a client that stalls in mid-commit is not skipped: it holds others'
/// snapshots back until it is fenced.
class BitVectorTimestamps final : public Timestamps {
 public:
  BitVectorTimestamps(ExtentSpace& state, StateGeometry geometry, uint32_t client, CommitPoint& commit_point,
                      Clock& clock)
      : Timestamps(state, geometry, client, commit_point, clock) {}

  uint32_t Suspect() const override { return suspect_; }
  bool Crowded() const override { return top_ > complete_ + kBitRows / 2; }
  bool Held() const override { return held_; }
  bool HeldByIdle() const override { return held_by_idle_; }
  absl::Status AddTake(storage::VerbBatch& batch) override;
  absl::Status AddClaim(storage::VerbBatch& batch) override { return commit_point_.AddClaim(batch, taken()); }
  uint64_t taken() const override { return BitRow::TimestampOf(claims_, client_); }
  absl::Status AddSkip(storage::VerbBatch& batch) override;
  absl::StatusOr<bool> ConfirmClaim(storage::VerbBatch& batch) override;
  absl::StatusOr<uint64_t> Newest(storage::VerbBatch& batch) override;
  absl::Status AddDone(storage::VerbBatch& batch, uint64_t timestamp) override;
  absl::Status AddLeave(storage::VerbBatch& batch) override;
  absl::Status Finish(storage::VerbBatch& batch, uint32_t client, uint64_t timestamp) override;

 private:
  using Mask = std::array<uint64_t, kBitLanes / 64>;
  /// READ results, in scratch memory.
  struct View {
    uint64_t first = 0;  // row
    uint64_t count = 0;
    const uint64_t* bits = nullptr;
    const uint64_t* lanes = nullptr;
    uint64_t lanes_count = 0;
    const uint64_t* row(uint64_t number) const { return bits + (number - first) * (kBitRowBytes / 8); }
  };

  absl::StatusOr<uint64_t> Floor(storage::VerbBatch& batch) override;
  absl::Status Advance(storage::VerbBatch& batch, const StateHead& head) override;
  absl::StatusOr<View> ReadView(storage::VerbBatch& batch, uint64_t count);
  bool Evaluate(const View& view, Mask* missing);
  absl::Status LookAhead(storage::VerbBatch& batch, const View& view, const Mask& missing);
  absl::Status AddGiveUp(storage::VerbBatch& batch, uint64_t row);
  absl::Status Join(storage::VerbBatch& batch);
  absl::StatusOr<std::bitset<kBitRows>> OwnBits(storage::VerbBatch& batch);
  absl::Status AddFlips(storage::VerbBatch& batch, const std::bitset<kBitRows>& bits, uint64_t row);
  absl::Status AddFlip(storage::VerbBatch& batch, uint64_t place, bool up);
  bool RowIsFree(uint64_t row) const { return row < watermark_ + kBitRows && row <= kBitRowMax; }

  // The vector, as last seen.
  uint64_t complete_ = 0;  // all rows up to this one
  uint64_t watermark_ = 0;
  uint64_t top_ = 0;
  uint64_t lanes_ = 0;
  // Our lane.
  bool present_ = false;  // as far as we know
  uint64_t row_ = 0;      // our bits, and the lane's word if we are present, are right as of this row
  uint64_t claims_ = 0;
  uint64_t* claim_ = nullptr;  // scratch; null: AddTake had nothing to claim
  // What the snapshot waits for.
  uint64_t waits_at_ = 0;
  int64_t waits_since_ns_ = 0;
  uint32_t suspect_ = 0;
  bool held_ = false;
  bool held_by_idle_ = false;
};

}  // namespace nam::txn
