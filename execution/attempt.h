#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "execution/channel_pool.h"
#include "execution/exchange/endpoint.h"
#include "execution/prepared_stage.h"
#include "execution/scan/multicast_source.h"
#include "execution/task.h"
#include "proto/compute.pb.h"

namespace nam::execution {

/// For a streamed stage: an endpoint for each thread, and the addresses of the other members' endpoints.
struct ExchangeLanes {
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<std::vector<std::string>> addresses;  // by thread, then member
};

/// The work of one server in a stage until its claims run dry. Its threads run the pipelines in the plan's
/// order and meet where one needs others to be complete:
///
///     build:  P0 … Pn-1, all threads a task of each ──▶ parts that are combined
///     ─────── barrier: what the claimed pipeline comes after is complete ───────
///     probe:  Pn, whose pieces are claimed ──▶ parts that are combined ──▶ pages
///
/// A result in windows (StageInputs::window_bytes) leaves while Pn runs:
///
///     Start ─▶ Await ─ window ─▶ StoreWindow ─▶ GiveBack ─▶ Await ─ … ─▶ Await ─ end ─▶ Store
///
/// Between two calls its threads fill the next window and then wait, however long: they hold their channels
/// and the build sides, and only check now and then whether they are cancelled.
///
/// A streamed stage claims nothing: each member's number tells what it reads of the sent tables. A sending
/// pipeline runs together with the one that receives, when the receiver's turn has come:
///
///     P0 scan ─▶ send ═══▶ P1 receive ─▶ build        each thread a task of both, in turns
///     ─────── barrier of this server's threads ───────
///     P2 scan ─▶ send ═══▶ P3 receive ─▶ probe P1 ─▶ … ─▶ pages
///
/// If rows are filtered before they are sent (plan::ExchangeSend::filtered_by), the barrier precedes P2.
/// After it each thread sends and receives its share of the Bloom filters, and a second barrier follows. A
/// thread that waits there has sent its share.
///
/// A thread that waits at the barrier does not answer its peers, so they run out of credit and wait as well.
/// The barrier opens once this server's last threads have completed P1. These wait only for rows that other
/// servers send in P0.
///
/// As many threads receive multicast build sides as there are senders. Each joins its senders' groups before
/// it does anything else; if one cannot, these sides are READ like the others.
class Attempt {
 public:
  /// Any thread may set `cancel` at any time; the attempt then ends with CANCELLED. All references outlive
  /// the attempt.
  Attempt(PreparedStage& stage, MulticastBuild multicast, ChannelPool& channels, ChannelPool& claim_channels,
          std::atomic<bool>& cancel, ExchangeLanes lanes = {});
  /// Waits for the threads, which end soon if they are cancelled.
  ~Attempt();

  /// Starts the threads; once.
  void Start();
  /// True: a window of the result is full. False: all threads have ended. `while_waiting` is called every few
  /// milliseconds until then.
  bool Await(const std::function<void()>& while_waiting);

  // After a window:
  /// Returns its rows as sealed pages that carry `attempt`, and the pages to give back once they have been
  /// read. The threads go on with others.
  std::vector<uint32_t> StoreWindow(uint64_t attempt, StoredPages& pages);
  void GiveBack(std::span<const uint32_t> pages);

  // After the end:
  /// CANCELLED, or the first error of a thread.
  absl::Status status() const;
  /// Stores the result, or what has not left in windows, as sealed pages that carry `attempt`; they lie in
  /// the stage's memory.
  absl::Status Store(uint64_t attempt, StoredPages& pages);
  /// Adds the counters of each pipeline; for each thread, the pieces whose rows are all in the result; what
  /// of it lies in memory servers; and whether further pieces can change it.
  void Report(proto::AttemptReply& reply) const;

 private:
  /// The progress of the threads with one pipeline.
  struct Progress {
    std::atomic<int> tasks_to_make = 0;
    std::atomic<int> tasks_left = 0;
    uint32_t parts = 0;  // known once combinable
    std::atomic<uint32_t> next_part = 0;
    std::atomic<uint32_t> parts_left = 0;
    std::unique_ptr<fabric::Event> made;        // all tasks, or key filters; the threads' barrier
    std::unique_ptr<fabric::Event> combinable;  // all tasks have ended
    std::unique_ptr<fabric::Event> complete;    // all parts are combined
    std::vector<uint64_t> rows;                 // that left the source, then each step; guarded by mutex_
    std::atomic<int64_t> exchange_waiting_ns = 0;
  };
  class Worker;

  void Fail(const absl::Status& status);
  /// Signals that the threads have ended, or that a window is full.
  void Tell();
  /// The claimed pipeline's window; nullptr: its whole result comes at the end.
  PageWindow* window() const;
  PreparedPipeline& claimed() const { return stage_.pipeline(stage_.claimed()); }
  proto::PipelineCounters CountersOf(uint32_t p) const;
  absl::Status RunThread(size_t number);
  /// READs the build sides that were to come by multicast.
  void ReadInstead(const absl::Status& why);

  PreparedStage& stage_;
  const MulticastBuild multicast_;
  ChannelPool& channels_;
  ChannelPool& claim_channels_;
  const int threads_;
  std::atomic<bool>& cancel_;
  const ExchangeLanes lanes_;
  std::vector<std::unique_ptr<Progress>> progress_;  // by pipeline of the plan; null: other stages'

  const uint32_t multicast_parts_;               // threads that receive: 0, or each a part of the senders
  std::atomic<uint32_t> multicast_claimed_ = 0;  // parts
  std::atomic<uint32_t> opening_;                // parts that have neither joined nor failed to
  std::unique_ptr<fabric::Event> opened_;
  std::atomic<bool> read_instead_ = false;

  mutable Mutex mutex_;  // guards the two errors, too, while threads run
  int running_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<fabric::Event> told_ ABSL_GUARDED_BY(mutex_);  // wakes Await
  absl::Status first_error_;
  std::string multicast_failure_;
  // Belongs to Start's caller; last: joined first.
  std::vector<std::unique_ptr<fabric::Thread>> running_threads_;
};

}  // namespace nam::execution
