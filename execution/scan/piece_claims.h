#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "partitioner/pieces.h"
#include "storage/work_claims.h"

namespace nam::execution {

/// The pieces of a table that a scan reads on one server. Without a counter its threads share all of them;
/// with one they claim them against all servers that scan the table. Immutable except for its progress; any
/// thread.
class PieceQueue {
 public:
  /// `leaving` may be set at any time: then pieces under way are finished, and no more are claimed.
  explicit PieceQueue(std::vector<partitioner::Piece> pieces,
                      std::optional<storage::WorkCounter> counter = std::nullopt,
                      const std::atomic<bool>* leaving = nullptr)
      : pieces_(std::move(pieces)), counter_(counter), leaving_(leaving) {}

  size_t size() const { return pieces_.size(); }
  const partitioner::Piece& operator[](size_t i) const { return pieces_[i]; }
  const std::vector<partitioner::Piece>& pieces() const { return pieces_; }
  /// Whether nothing is left for another thread, as far as this server knows.
  bool exhausted() const {
    return pieces_.empty() ||
           (!counter_.has_value() && next_.load(std::memory_order_relaxed) >= pieces_.size());
  }

 private:
  friend class PieceClaims;
  const std::vector<partitioner::Piece> pieces_;
  const std::optional<storage::WorkCounter> counter_;
  const std::atomic<bool>* const leaving_;
  std::atomic<uint32_t> next_ = 0;  // without a counter
};

/// One thread's claims on a queue.
class PieceClaims {
 public:
  /// With a counter, claims are made over `channel`, which they have to themselves. All references outlive
  /// the claims. No more is claimed after `cancel` is set.
  PieceClaims(PieceQueue& queue, storage::Channel* channel, Clock& clock, const std::atomic<bool>& cancel);

  /// The position of the next piece in the queue; nullopt if there is none, or if error() says why.
  std::optional<uint32_t> Next();
  const absl::Status& error() const { return error_; }

  /// The pieces that were given out, in order: positions.
  const std::vector<uint32_t>& begun() const { return begun_; }
  /// The number of claims of the counter for them.
  uint32_t claims_made() const { return claims_made_; }

 private:
  std::optional<uint32_t> Share();
  std::optional<uint32_t> ClaimPiece();
  uint64_t PiecesToClaim();

  PieceQueue& queue_;
  Clock& clock_;
  const std::atomic<bool>& cancel_;
  std::optional<storage::WorkClaims> claims_;  // with a counter
  uint64_t claim_next_ = 0, claim_end_ = 0;    // claimed and not begun
  uint32_t claims_made_ = 0;
  uint64_t claims_left_ = 0;  // a claim takes one in so many of the pieces left
  int64_t claimed_ns_ = 0;    // the time of the last claim
  std::vector<uint32_t> begun_;
  absl::Status error_;
};

}  // namespace nam::execution
