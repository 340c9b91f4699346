#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/scan/block_scan.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "proto/compute.pb.h"
#include "storage/multicast_stream.h"

namespace nam::execution {

/// The build sides of an attempt that come by multicast, all in one stream. Immutable after From.
struct MulticastBuild {
  uint32_t member = 0;
  std::vector<storage::MulticastAddress> senders;  // none: everything is READ
  std::vector<storage::MulticastTable> tables;
  std::vector<uint32_t> pipelines;  // by table: its build pipeline

  /// MulticastChain::pipeline is the number of the build pipeline in the plan, which has passed Check and,
  /// with `tables`, CheckTables. `needed`: for each pipeline's table the partitions that this server needs,
  /// ascending. INVALID_ARGUMENT if it does not fit: every block that a build side needs must come exactly
  /// once, and no build side may wait for another one.
  static absl::StatusOr<MulticastBuild> From(const proto::MulticastStreams& streams,
                                             const plan::PhysicalPlan& plan,
                                             const plan::TableMetadata& tables,
                                             std::span<const std::vector<uint32_t>> needed);
  bool Covers(uint32_t pipeline) const;
};

/// A build pipeline on one thread whose blocks come from outside.
struct FedPipeline {
  uint32_t number = 0;           // in the plan
  BlockScan* scan = nullptr;     // its source
  BlockFeed* feed = nullptr;     // the task's source task's
  PipelineTask* task = nullptr;  // not run yet
};

/// One thread's part of the multicast: receives from its share of the senders and feeds each block to its
/// pipeline.
///
///     sender ─┐                            ┌─▶ feed ─▶ P0: scan ─▶ build
///     sender ─┼─▶ MulticastStream ─table()─┤
///     sender ─┘                            └─▶ feed ─▶ P1: scan ─▶ build
///
/// All parts of a server join before any of them runs: if one cannot, all are destroyed without a run, and
/// everything is READ instead.
class MulticastReceiver {
 public:
  struct Options {
    uint32_t part = 0, parts = 1;  // receives from senders whose number % parts == part
    bool verify = true;            // checksums
  };
  /// Joins over the context's channel of blocks, which the receiver has to itself until it is destroyed or
  /// its Run has ended. An error says why multicast is unavailable here; the channel is unchanged, unless the
  /// error says that it is broken. `build` outlives the receiver.
  static absl::StatusOr<std::unique_ptr<MulticastReceiver>> Open(TaskContext& context,
                                                                 const MulticastBuild& build,
                                                                 const Options& options);

  /// Receives everything, then closes the feeds and runs the pipelines to their ends. `pipelines`: all that
  /// the build covers, each once; the same in every call. kDone: all are done. kBlocked: call again when the
  /// context's gate is open. kFailed: the context has the error; not called again.
  Step Run(TaskContext& context, std::span<const FedPipeline> pipelines);

 private:
  MulticastReceiver(const MulticastBuild& build, std::unique_ptr<storage::MulticastStream> stream)
      : build_(build), stream_(std::move(stream)), receiving_ns_(build.tables.size()) {}
  void Route(std::span<const FedPipeline> pipelines);
  /// Feeds the next block. kNeedInput: it has; kDone: there are no more.
  Step Receive(TaskContext& context, std::span<const FedPipeline> pipelines);
  /// Ends the stream and reports what came by it.
  void End(std::span<const FedPipeline> pipelines);

  const MulticastBuild& build_;
  std::unique_ptr<storage::MulticastStream> stream_;  // until it ends or fails
  std::vector<int64_t> receiving_ns_;                 // by table
  std::vector<size_t> pipeline_of_;                   // by table: place in `pipelines`
  std::vector<bool> done_;                            // by place: it wants no more blocks
  std::optional<size_t> running_;                     // the pipeline that has a block
  size_t finished_ = 0;                               // pipelines that have run to their ends
};

}  // namespace nam::execution
