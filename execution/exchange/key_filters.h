#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/exchange/endpoint.h"
#include "execution/join/bloom_filter.h"
#include "execution/memory_budget.h"
#include "execution/task.h"

namespace nam::execution {

/// The Bloom filters of a build side that an exchange has divided among members: each member has the keys of
/// its own rows in one, and sends it once to all others. A row of the probe side whose key is not in the
/// filter of the member that it belongs to has no partner, and is not sent at all.
///
///     own filter ── pieces, claimed by threads ══▶ every other member's copy
///
///     message   0              8        16       ├ a part of the filter
///               filter bytes ┼ offset ┼ words … ┤
///
/// Filters have as many bytes as their keys need, so those of members differ. Nobody asks one before all
/// threads of this member have taken part in Ship, and Complete has seen that nothing is missing: a filter
/// that lacks keys would lose rows.
class KeyFilters {
 public:
  struct Options {
    uint32_t exchange = 0;  // of the endpoints: a group for each member
    uint32_t self = 0, members = 1;
  };
  /// The budget, which the other members' filters are taken from, outlives them.
  KeyFilters(const Options& options, MemoryBudget& budget);

  /// This member's, once its build side is complete. Any thread, always the same; it outlives this.
  void SetOwn(const BloomFilter& own) { own_.store(&own, std::memory_order_release); }
  /// Sends pieces of the own filter as long as there are some, and takes what the others send to this thread.
  /// Each thread once, after SetOwn. DATA_LOSS, naming the sender, of what is no piece of a filter.
  absl::Status Ship(TaskContext& context, Endpoint& endpoint);
  /// After all threads, by any: DATA_LOSS, naming the sender, if a filter is not whole.
  absl::Status Complete(const Endpoint& endpoint);

  // After Complete:
  /// Which of these keys may have a partner where they belong: positions[0 … n), ascending; n. By the hashes
  /// that also say where (ExchangePart).
  uint32_t Keep(const uint64_t* hashes, uint32_t count, uint32_t* positions) const;
  /// How long all members' filters are together.
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
    std::unique_ptr<BloomFilter> filter;  // once a piece has come
    std::atomic<uint64_t> bytes = 0;
  };
  absl::Status Take(const Endpoint& endpoint, const Endpoint::Message& message);
  absl::StatusOr<BloomFilter*> FilterOf(uint32_t member, uint64_t bytes);

  const Options options_;
  MemoryBudget& budget_;
  std::atomic<const BloomFilter*> own_ = nullptr;
  std::atomic<uint64_t> next_ = 0;  // bytes of the own filter that threads have claimed
  std::mutex mutex_;                // guards which filters there are
  std::vector<Received> received_;  // by member
  std::vector<const BloomFilter*> filters_;
};

}  // namespace nam::execution
