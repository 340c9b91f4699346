#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "fabric/fabric.h"

namespace nam::txn {

/// Timestamps that one session's FETCH_ADD takes for others of its process. A card executes atomics on one
/// word one after the other, so the cluster's rate of commits is bounded by the FETCH_ADDs of its timestamp
/// counter.
///
///     Take ─ no FETCH_ADD under way has a spare ─▶ its own, of 1 + spares ─▶ Arrive ─▶ the rest is given up
///       └─── one has ─▶ reserved ─▶ Await: comes with that FETCH_ADD
///
/// A spare is offered only while its FETCH_ADD is under way, so none lies about unclaimed and holds snapshots
/// back. There are as many spares as sessions came during FETCH_ADDs of late: none if the process has one
/// session, or if a FETCH_ADD takes so long that a spare might be passed over. Thread-safe.
class SpareTimestamps {
 public:
  static constexpr uint32_t kSparesMax = 15;
  /// FETCH_ADDs that take longer have no spares.
  static constexpr int64_t kQuickNs = 100'000;
  static constexpr int64_t kAwaitUs = 500;

  /// A FETCH_ADD of the counter.
  struct Offer {
    uint32_t spares = 0;
    int64_t began_ns = 0;
    // Guarded by the mutex.
    uint32_t reserved = 0;
    uint32_t sought = 0;  // sessions that came while this was the newest
    bool arrived = false;
    uint64_t first = 0;                      // timestamp; 0: it brings none
    std::unique_ptr<fabric::Event> arrival;  // null: nobody waits for it
  };
  /// A timestamp that is to come: the offer's first is its own session's, the others are spares.
  struct Place {
    std::shared_ptr<Offer> offer;
    uint32_t number = 0;
  };

  /// Reserves a spare, or else makes an offer, whose FETCH_ADD the caller posts.
  Place Take(fabric::Fabric& fabric);
  /// The offer's FETCH_ADD has brought timestamps from `first` on; 0: it will bring none. How many spares at
  /// their end nobody has reserved: they are the caller's to give up.
  uint32_t Arrive(Offer& offer, uint64_t first, int64_t now_ns);
  /// The timestamp of a spare; nothing: it does not come, or not in time.
  std::optional<uint64_t> Await(const Place& place, Clock& clock);

 private:
  static constexpr uint32_t kWeight = 4;  // of what was, beside the newest offer: an average

  std::mutex mutex_;
  std::shared_ptr<Offer> newest_;  // null: it has arrived
  double expected_ = 0;            // sessions that come while an offer is the newest
};

/// What the sessions of a process share of timestamps, where memory is not in place: there a look at the
/// memory itself costs less than to meet here.
class SharedTimestamps {
 public:
  SpareTimestamps& spares() { return spares_; }
  /// A watermark that some session has seen: all timestamps up to it are done.
  uint64_t watermark() const { return watermark_.load(std::memory_order_acquire); }
  void SawWatermark(uint64_t watermark) {
    uint64_t known = watermark_.load(std::memory_order_relaxed);
    while (known < watermark && !watermark_.compare_exchange_weak(known, watermark)) continue;
  }

 private:
  SpareTimestamps spares_;
  std::atomic<uint64_t> watermark_{0};
};

}  // namespace nam::txn
