#include "txn/shared_timestamps.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nam::txn {

namespace {

// Rounded up from a little: a spare too many costs a CAS of its own word, one too few a FETCH_ADD of all
// clients' word.
constexpr double kSlack = 0.25;

}  // namespace

SpareTimestamps::Place SpareTimestamps::Take(fabric::Fabric& fabric) {
  const int64_t now_ns = fabric.clock().NowNs();
  const std::lock_guard lock(mutex_);
  if (newest_ != nullptr) {
    ++newest_->sought;
    if (newest_->reserved < newest_->spares) return {newest_, ++newest_->reserved};
  }
  newest_ = std::make_shared<Offer>();
  newest_->began_ns = now_ns;
  newest_->spares = std::min(static_cast<uint32_t>(std::ceil(std::max(0.0, expected_ - kSlack))), kSparesMax);
  if (newest_->spares > 0) newest_->arrival = fabric.CreateEvent();
  return {newest_, 0};
}

uint32_t SpareTimestamps::Arrive(Offer& offer, uint64_t first, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (newest_.get() == &offer) newest_ = nullptr;
  const bool quick = first != 0 && now_ns - offer.began_ns <= kQuickNs;
  expected_ = quick ? (expected_ * (kWeight - 1) + offer.sought) / kWeight : 0;
  offer.arrived = true;
  offer.first = first;
  if (offer.reserved > 0) offer.arrival->Set();
  return first == 0 ? 0 : offer.spares - offer.reserved;
}

std::optional<uint64_t> SpareTimestamps::Await(const Place& place, Clock& clock) {
  const auto timestamp = [&]() -> std::optional<uint64_t> {
    const std::lock_guard lock(mutex_);
    const Offer& offer = *place.offer;
    if (!offer.arrived || offer.first == 0) return std::nullopt;
    return offer.first + place.number;
  };
  if (const auto there = timestamp(); there.has_value()) return there;
  place.offer->arrival->Wait(clock.After(kAwaitUs));
  return timestamp();
}

}  // namespace nam::txn
