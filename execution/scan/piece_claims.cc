#include "execution/scan/piece_claims.h"

#include <algorithm>

#include "base/check.h"

namespace nam::execution {
namespace {

/// A thread claims one in so many of the remaining pieces, but not too many at once: no other server can
/// steal claimed ones. Twice as many whenever a claim lasted less than kClaimUs, up to half of the remaining:
/// a claim is a round trip, and mostly skipped pieces end sooner.
constexpr uint64_t kClaimsLeft = 32;
constexpr uint64_t kClaimsLeftMin = 2;
constexpr uint64_t kMostClaimed = 8;
constexpr int64_t kClaimUs = 1'000;
/// The first claims fill the stream's window.
constexpr uint32_t kClaimsAtFirst = 2;

}  // namespace

PieceClaims::PieceClaims(PieceQueue& queue, storage::Channel* channel, Clock& clock,
                         const std::atomic<bool>& cancel)
    : queue_(queue), clock_(clock), cancel_(cancel) {
  if (!queue.counter_) return;
  NAM_CHECK(channel != nullptr, "claims at a counter are made over a channel");
  claims_.emplace(*channel, *queue.counter_, cancel);
}

std::optional<uint32_t> PieceClaims::Next() {
  if ((queue_.leaving_ != nullptr && *queue_.leaving_) || cancel_) return std::nullopt;
  const std::optional<uint32_t> next = claims_ ? ClaimPiece() : Share();
  if (next) begun_.push_back(*next);
  return next;
}

std::optional<uint32_t> PieceClaims::Share() {
  const uint32_t next = queue_.next_.fetch_add(1, std::memory_order_relaxed);
  return next < queue_.size() ? std::optional(next) : std::nullopt;
}

uint64_t PieceClaims::PiecesToClaim() {
  const int64_t now_ns = clock_.NowNs();
  const bool soon = claims_made_++ >= kClaimsAtFirst && now_ns - claimed_ns_ < kClaimUs * 1'000;
  claimed_ns_ = now_ns;
  claims_left_ = soon ? std::max(claims_left_ / 2, kClaimsLeftMin) : kClaimsLeft;
  const uint64_t all = queue_.size(), left = all - std::min(all, claim_end_);
  return std::clamp<uint64_t>(left / claims_left_, 1, kMostClaimed * (kClaimsLeft / claims_left_));
}

std::optional<uint32_t> PieceClaims::ClaimPiece() {
  const uint64_t all = queue_.size();
  if (claim_next_ == claim_end_) {
    const uint64_t items = PiecesToClaim();
    const absl::StatusOr<uint64_t> first = claims_->Claim(items);
    if (!first.ok()) {
      error_ = first.status();
      return std::nullopt;
    }
    claim_next_ = std::min(*first, all);
    claim_end_ = std::min(claim_next_ + items, all);
  }
  if (claim_next_ == claim_end_) return std::nullopt;
  return static_cast<uint32_t>(claim_next_++);
}

}  // namespace nam::execution
