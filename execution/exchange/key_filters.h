#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/exchange/endpoint.h"
#include "execution/join/bloom_filter.h"
#include "execution/memory_budget.h"
#include "execution/task.h"

namespace nam::execution {

/// The Bloom filters of a build side that an exchange has divided among members. Each member puts the keys of
/// its own rows in one, and sends it once to all others. A probe row whose key is not in the filter of its
/// member has no partner, and is not sent.
///
///     own filter ── pieces, claimed by threads ══▶ every other member's copy
///
///     message   0              8        16       ├ a part of the filter
///               filter bytes ┼ offset ┼ words … ┤
///
/// Filters have as many bytes as their keys need, so members' filters differ. No thread asks a filter before
/// all threads of this member have taken part in Ship, and Complete has verified it: an incomplete filter
/// would lose rows.
class KeyFilters {
 public:
  struct Options {
    uint32_t exchange = 0;  // the endpoints'; a group for each member
    uint32_t self = 0, members = 1;
  };
  /// The budget, which pays for the other members' filters, outlives them.
  KeyFilters(const Options& options, MemoryBudget& budget);

  /// Sets this member's filter once its build side is complete. Any thread, always the same filter; it
  /// outlives this.
  void SetOwn(const BloomFilter& own) { own_.store(&own, std::memory_order_release); }
  /// Sends the remaining pieces of the own filter, and receives those that the others send to this thread.
  /// Each thread once, after SetOwn. DATA_LOSS, naming the sender, of malformed pieces.
  absl::Status Ship(TaskContext& context, Endpoint& endpoint);
  /// After all threads, by any: DATA_LOSS, naming the sender, if a filter is incomplete.
  absl::Status Complete(const Endpoint& endpoint);

  // After Complete:
  /// Selects the keys that may have a partner at their members: positions[0 … n), ascending; returns n. Uses
  /// the hashes that also select the member (ExchangePart).
  uint32_t Keep(const uint64_t* hashes, uint32_t count, uint32_t* positions) const;
  /// The total size of all members' filters.
  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const BloomFilter* const filter : filters_) bytes += filter == nullptr ? 0 : filter->bytes().size();
    return bytes;
  }

 private:
  struct PieceHeader {
    uint64_t filter_bytes = 0;
    uint64_t offset = 0;
  };
  class Sender;
  struct Received {
    std::unique_ptr<BloomFilter> filter;  // made with the first piece
    std::atomic<uint64_t> bytes = 0;
  };
  absl::Status Merge(const Endpoint& endpoint, const Endpoint::Message& message);
  absl::StatusOr<BloomFilter*> FilterOf(uint32_t member, uint64_t bytes);

  const Options options_;
  MemoryBudget& budget_;
  std::atomic<const BloomFilter*> own_ = nullptr;
  std::atomic<uint64_t> next_ = 0;  // bytes of the own filter that threads have claimed
  Mutex mutex_;                     // guards the creation of filters
  std::vector<Received> received_;  // by member
  std::vector<const BloomFilter*> filters_;
};

}  // namespace nam::execution
