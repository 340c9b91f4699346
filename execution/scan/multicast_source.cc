#include "execution/scan/multicast_source.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "partitioner/table_metadata.h"

namespace nam::execution {
namespace {

absl::Status BadStreams(const char* what) {
  return absl::InvalidArgumentError(std::string("not the multicast streams of this query: ") + what);
}

absl::StatusOr<storage::MulticastAddress> AddressOf(const proto::MulticastSender& sender) {
  if (sender.server() == 0 || sender.server() > UINT16_MAX) return BadStreams("a sender without an id");
  return storage::MulticastAddress{MemoryServerId(static_cast<uint16_t>(sender.server())), sender.stream(),
                                   sender.group_address(), fabric::RemoteKey{sender.board_rkey()},
                                   sender.fragment_bytes()};
}

/// The scan of a pipeline that may be fed at any time, while others are.
absl::StatusOr<const plan::BlockScan*> BuildScanOf(const plan::PhysicalPlan& plan, uint32_t number) {
  if (number >= plan.pipelines.size()) return BadStreams("no such pipeline");
  const plan::Pipeline& pipeline = plan.pipelines[number];
  const auto* scan = std::get_if<plan::BlockScan>(&pipeline.source);
  if (scan == nullptr || !std::holds_alternative<plan::BuildSink>(pipeline.sink))
    return BadStreams("a pipeline that does not build from blocks");
  if (!pipeline.after.empty()) return BadStreams("a pipeline that waits for others");
  if (plan.stages[pipeline.stage].claimed == number) return BadStreams("a pipeline whose pieces are claimed");
  return scan;
}

absl::StatusOr<storage::MulticastTable::Chain> ChainOf(const proto::MulticastChain& chain,
                                                       const proto::Table& table) {
  if (chain.partition() >= static_cast<uint32_t>(table.partitions_size()))
    return BadStreams("no such partition");
  const proto::Chain& known = table.partitions(static_cast<int>(chain.partition()));
  if (chain.pointers_size() == 0 || static_cast<uint32_t>(chain.pointers_size()) != known.blocks())
    return BadStreams("not as many blocks as the chain has");
  return storage::MulticastTable::Chain{.partition = chain.partition(),
                                        .block_rows = known.block_rows(),
                                        .pointers = {chain.pointers().begin(), chain.pointers().end()},
                                        .text_bytes = {known.text_bytes().begin(), known.text_bytes().end()}};
}

/// Whether the chains are those of all needed partitions that have blocks, in order.
bool AreThoseNeeded(const std::vector<storage::MulticastTable::Chain>& chains, const proto::Table& table,
                    const std::vector<uint32_t>& needed) {
  std::vector<uint32_t> given, with_blocks;
  for (const auto& chain : chains) given.push_back(chain.partition);
  for (const uint32_t p : needed) {
    if (table.partitions(static_cast<int>(p)).blocks() > 0) with_blocks.push_back(p);
  }
  return given == with_blocks;
}

}  // namespace

absl::StatusOr<MulticastBuild> MulticastBuild::From(const proto::MulticastStreams& streams,
                                                    const plan::PhysicalPlan& plan,
                                                    const plan::TableMetadata& tables,
                                                    std::span<const std::vector<uint32_t>> needed) {
  NAM_CHECK(needed.size() == plan.pipelines.size() && tables.size() == plan.tables.size());
  MulticastBuild build;
  build.member = streams.member();
  if (build.member >= storage::kMulticastMembersMax) return BadStreams("a member beyond the boards");
  for (const proto::MulticastSender& sender : streams.senders()) {
    NAM_ASSIGN_OR_RETURN(build.senders.emplace_back(), AddressOf(sender));
  }
  const auto meta_of = [&](uint32_t pipeline) -> const proto::Table& {
    return *tables[std::get<plan::BlockScan>(plan.pipelines[pipeline].source).table];
  };
  for (const proto::MulticastChain& chain : streams.chains()) {
    const uint32_t pipeline = chain.pipeline();
    if (build.pipelines.empty() || build.pipelines.back() != pipeline) {
      NAM_ASSIGN_OR_RETURN(const plan::BlockScan* scan, BuildScanOf(plan, pipeline));
      if (build.Covers(pipeline)) return BadStreams("its chains are not in order");
      build.pipelines.push_back(pipeline);
      build.tables.push_back({partitioner::StreamTableOf(meta_of(pipeline), scan->columns), {}});
    }
    NAM_ASSIGN_OR_RETURN(build.tables.back().chains.emplace_back(), ChainOf(chain, meta_of(pipeline)));
  }
  for (size_t t = 0; t < build.tables.size(); ++t) {
    const uint32_t pipeline = build.pipelines[t];
    if (!AreThoseNeeded(build.tables[t].chains, meta_of(pipeline), needed[pipeline]))
      return BadStreams("not the partitions that are needed");
  }
  if (build.senders.empty() != build.tables.empty())
    return BadStreams("senders without blocks, or blocks without");
  return build;
}

bool MulticastBuild::Covers(uint32_t pipeline) const {
  return std::find(pipelines.begin(), pipelines.end(), pipeline) != pipelines.end();
}

absl::StatusOr<std::unique_ptr<MulticastReceiver>> MulticastReceiver::Open(TaskContext& context,
                                                                           const MulticastBuild& build,
                                                                           const Options& options) {
  NAM_CHECK(context.channels().blocks != nullptr, "multicast is received over a channel");
  NAM_ASSIGN_OR_RETURN(auto stream,
                       storage::MulticastStream::Open(*context.channels().blocks, build.senders, build.tables,
                                                      {.member = build.member,
                                                       .part = options.part,
                                                       .parts = options.parts,
                                                       .verify = options.verify,
                                                       .cancel = &context.cancel()}));
  return std::unique_ptr<MulticastReceiver>(new MulticastReceiver(build, std::move(stream)));
}

void MulticastReceiver::Route(std::span<const FedPipeline> pipelines) {
  NAM_CHECK(pipelines.size() == build_.pipelines.size(), "the pipelines that the build covers");
  done_.resize(pipelines.size());
  for (const uint32_t number : build_.pipelines) {
    const auto at = std::find_if(pipelines.begin(), pipelines.end(),
                                 [&](const FedPipeline& pipeline) { return pipeline.number == number; });
    NAM_CHECK(at != pipelines.end(), "a pipeline that the build covers is missing");
    pipeline_of_.push_back(static_cast<size_t>(at - pipelines.begin()));
  }
}

Step MulticastReceiver::Run(TaskContext& context, std::span<const FedPipeline> pipelines) {
  if (pipeline_of_.empty()) Route(pipelines);
  while (stream_ != nullptr) {
    if (!running_) {
      const Step step = Receive(context, pipelines);
      if (step != Step::kNeedInput) End(pipelines);
      if (step == Step::kFailed) return step;
      if (!running_) continue;
    }
    const Step step = pipelines[*running_].task->Run(context);
    if (step == Step::kBlocked) return step;
    if (step == Step::kFailed) {
      End(pipelines);
      return step;
    }
    done_[*running_] = step == Step::kDone;
    running_.reset();
  }
  for (; finished_ < pipelines.size(); ++finished_) {
    pipelines[finished_].feed->Close();
    const Step step = pipelines[finished_].task->Run(context);
    NAM_CHECK(step != Step::kNeedInput, "its feed is closed");
    if (step != Step::kDone) return step;
  }
  return Step::kDone;
}

Step MulticastReceiver::Receive(TaskContext& context, std::span<const FedPipeline> pipelines) {
  const int64_t from_ns = context.clock().NowNs();
  storage::BlockView block;
  const absl::StatusOr<bool> more = stream_->Next(block);
  if (!more.ok()) return context.Fail(more.status());
  if (!*more) return Step::kDone;
  const size_t table = stream_->table();
  receiving_ns_[table] += context.clock().NowNs() - from_ns;
  const size_t at = pipeline_of_[table];
  if (done_[at]) return Step::kNeedInput;
  pipelines[at].feed->Give(block);
  running_ = at;
  return Step::kNeedInput;
}

void MulticastReceiver::End(std::span<const FedPipeline> pipelines) {
  for (size_t t = 0; t < pipeline_of_.size(); ++t)
    pipelines[pipeline_of_[t]].scan->AddReceived(stream_->counters(t), receiving_ns_[t]);
  stream_.reset();
}

}  // namespace nam::execution
