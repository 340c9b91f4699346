#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "computeserver/channel_pool.h"
#include "computeserver/join_table.h"
#include "computeserver/multicast_build.h"
#include "computeserver/query_shape.h"
#include "computeserver/sink.h"
#include "proto/compute.pb.h"
#include "storage/block_stream.h"
#include "storage/work_claims.h"

namespace nam::computeserver {

/// One server's share of a query. Its threads run in two phases with a barrier between:
///
///     build:  every join's needed partitions ─ filter ─▶ JoinTable        (all threads, block streams)
///     ─────── barrier ───────
///     probe:  assigned pieces of the driving table ─ filter ─ probe, probe, … ─▶ own Sink
///
/// then the sinks are merged into one partial result. Build sides that come by multicast are received and
/// built by as many of the threads as there are senders. Each joins its senders' groups before it does
/// anything else; if one of them cannot, these sides are READ like the others.
class Fragment {
 public:
  /// `cancel` may be set by anyone at any time; the fragment then ends with CANCELLED. So may `leaving`: it
  /// then finishes what it has begun and claims no more. With a counter, what it works on is those of the
  /// shape's pieces that it claims; without, all of them.
  Fragment(std::shared_ptr<const QueryShape> shape, MulticastBuild multicast,
           std::optional<storage::WorkCounter> counter, ChannelPool& channels, ChannelPool& claim_channels,
           int threads, std::atomic<bool>& cancel, const std::atomic<bool>& leaving);
  ~Fragment();

  /// Runs all threads to their end; `while_waiting` is called every few milliseconds until then.
  absl::Status Run(const std::function<void()>& while_waiting);
  /// After Run: the partial result in its stored form, and counters in the order of joins, then driving.
  const std::string& partial() const { return partial_; }
  /// Of each thread: positions of the pieces whose rows are in it.
  std::vector<std::vector<uint32_t>> Claimed() const;
  /// By which the threads got those from the work queue.
  uint32_t Claims() const;
  /// Whether other pieces cannot change the result.
  bool satisfied() const { return satisfied_; }
  std::vector<proto::PipelineCounters> Counters() const;

 private:
  friend class FragmentWorker;
  struct PipelineTotals {
    uint64_t rows_in = 0, rows_out = 0, skipped_blocks = 0;
    int64_t total_ns = 0;
    storage::StreamCounters stream;
    uint64_t multicast_blocks = 0, repaired_blocks = 0, duplicate_datagrams = 0;
  };
  void Fail(const absl::Status& status);
  /// The position of the next piece of the join's build side that nobody in this fragment has; of the
  /// driving table after the last join.
  std::optional<uint32_t> Claim(size_t pipeline);
  void Add(size_t pipeline, const PipelineTotals& totals);
  /// The build sides that were to come by multicast are to be claimed like any other.
  void ReadInsteadOfMulticast(const absl::Status& why);

  const std::shared_ptr<const QueryShape> shape_;
  const MulticastBuild multicast_;
  ChannelPool& channels_;
  ChannelPool& claim_channels_;
  const int threads_;
  std::atomic<bool>& cancel_;
  const std::atomic<bool>& leaving_;
  const std::optional<storage::WorkCounter> counter_;
  std::vector<std::unique_ptr<JoinTable>> join_tables_;
  std::vector<std::vector<partitioner::Piece>> builds_;  // what is needed of each join's build side
  std::unique_ptr<std::atomic<uint32_t>[]> claimed_;     // per pipeline
  const uint32_t multicast_parts_;               // threads that receive: 0, or a part of the senders each
  std::atomic<uint32_t> multicast_claimed_ = 0;  // parts
  std::atomic<uint32_t> opening_;                // parts that have not joined yet, nor failed to
  std::unique_ptr<fabric::Event> opened_;
  std::atomic<bool> read_instead_ = false;
  std::atomic<int> building_;
  std::unique_ptr<fabric::Event> built_;
  std::atomic<int> running_;
  std::unique_ptr<fabric::Event> done_;

  mutable std::mutex mutex_;  // guards what follows while threads run
  absl::Status first_error_;
  std::string multicast_failure_;
  std::vector<PipelineTotals> totals_;
  std::unique_ptr<Sink> sink_;
  std::vector<std::unique_ptr<class FragmentWorker>> finished_;  // by thread; sinks refer to their columns
  std::string partial_;
  bool satisfied_ = false;
};

}  // namespace nam::computeserver
