#include "execution/scan/multicast_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <random>

#include "base/random.h"
#include "partitioner/table_metadata.h"
#include "storage/chain_pointers.h"
#include "storage/multicast_sender.h"
#include "tests/execution/scan/scan_rows.h"
#include "tests/execution/scan/scan_table.h"
#include "tests/storage/faulty_fabric.h"

namespace nam::execution {
namespace {

using storage::MulticastTable;

/// A plan `P0 scan t0 → build, P1 scan t1 → build, P2 scan t0 → result` on two tables in two memory servers,
/// each of which sends its blocks of both build sides.
class MulticastSourceTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  static constexpr size_t kBuilds = 2;
  using Fed = std::array<std::unique_ptr<FedTask>, kBuilds>;

  MulticastSourceTest()
      : seed_(std::random_device()()),
        random_(seed_),
        first_(GetParam(), kFirst, RandomRows(random_, 12'000, kFirst)),
        second_(GetParam(), first_, kSecond, RandomRows(random_, 9'000, kSecond)),
        trace_(__FILE__, __LINE__, "seed " + std::to_string(seed_)),
        tables_{first_.meta(), second_.meta()},
        client_(storage::OpenFabric(GetParam())) {
    MakePlan();
    needed_ = {{0, 2, 3}, {0, 1}, {}};
    for (uint32_t p = 0; p < kBuilds; ++p) {
      options_[p] = TableOf(p).ScanOf(columns_[p]);
      options_[p].filters.push_back(RandomFilter(random_, columns_[p]));
      scans_[p] = *BlockScan::Make(options_[p], unclaimed_);
    }
  }

  ScanTable& TableOf(uint32_t pipeline) { return pipeline == 0 ? first_ : second_; }
  void MakePlan() {
    plan_.tables.resize(2);
    plan_.pipelines.resize(3);
    plan_.stages.push_back({.claimed = 2, .result = {}});
    for (uint32_t p = 0; p < 3; ++p) {
      plan::BlockScan scan;
      scan.table = p % 2;
      scan.columns = p < kBuilds ? columns_[p] : std::vector<uint32_t>{ScanTable::kWide};
      plan_.pipelines[p].source = scan;
      plan_.pipelines[p].sink = p < kBuilds ? plan::SinkNode(plan::BuildSink{}) : plan::ResultSink{};
    }
    plan_.pipelines[2].after = {0, 1};
  }

  /// The tables and chains that the coordinator asks the senders for.
  std::vector<MulticastTable> TablesToSend() {
    const auto channel = *storage::Channel::Open(*client_, first_.servers(), {});
    std::vector<MulticastTable> tables;
    for (uint32_t p = 0; p < kBuilds; ++p) {
      const proto::Table& meta = *tables_[p];
      MulticastTable& table = tables.emplace_back();
      table.table = partitioner::StreamTableOf(meta, columns_[p]);
      for (const uint32_t partition : needed_[p]) {
        const storage::ChainStart chain = partitioner::ChainStartOf(meta, partition);
        table.chains.push_back({partition, chain.block_rows, *PointersOf(*channel, table.table, chain)});
      }
    }
    return tables;
  }
  void OpenSenders(const storage::DatagramFaults& faults) {
    const std::vector<MulticastTable> tables = TablesToSend();
    const auto blocks = *storage::MulticastBlocks::Number(tables, {MemoryServerId(1), MemoryServerId(2)});
    for (uint16_t id = 1; id <= 2; ++id) {
      faulty_.push_back(std::make_unique<storage::FaultyFabric>(first_.servers().fabric(id), faults,
                                                                static_cast<uint32_t>(seed_) + id));
      senders_.push_back(*storage::MulticastSender::Open(
          *faulty_.back(),
          [this](storage::RemotePtr<void> block, uint64_t) { return first_.servers().at(block); },
          blocks.ExtentsOf(id - 1u),
          {.server = MemoryServerId(id), .group = id, .members = 1, .join_timeout_us = 60'000'000}));
      const storage::MulticastAddress& address = senders_.back()->address();
      proto::MulticastSender& sender = *streams_.add_senders();
      sender.set_server(id);
      sender.set_stream(address.stream);
      sender.set_group_address(address.group);
      sender.set_board_rkey(address.board.value);
      sender.set_fragment_bytes(address.fragment_bytes);
    }
    for (uint32_t p = 0; p < kBuilds; ++p) {
      for (const MulticastTable::Chain& chain : tables[p].chains) {
        proto::MulticastChain& out = *streams_.add_chains();
        out.set_pipeline(p);
        out.set_partition(chain.partition);
        out.mutable_pointers()->Add(chain.pointers.begin(), chain.pointers.end());
        blocks_[p] += chain.pointers.size();
      }
    }
  }
  void RunSenders() {
    for (size_t s = 0; s < senders_.size(); ++s) {
      sending_.push_back(
          faulty_[s]->StartThread("sender", [this, s] { (void)senders_[s]->Run(cancel_senders_); }));
    }
  }
  absl::StatusOr<MulticastBuild> From() const {
    return MulticastBuild::From(streams_, plan_, tables_, needed_);
  }

  /// Runs the parts on threads of their own; returns the first error.
  absl::Status Receive(const MulticastBuild& build, uint32_t parts,
                       std::array<size_t, kBuilds> most = {SIZE_MAX, SIZE_MAX}) {
    std::vector<Fed> fed(parts);
    std::vector<absl::Status> errors(parts);
    RunSenders();
    {
      std::vector<std::unique_ptr<fabric::Thread>> threads;
      for (uint32_t part = 0; part < parts; ++part) {
        threads.push_back(client_->StartThread(
            "part", [&, part] { errors[part] = ReceivePart(build, part, parts, most, fed[part]); }));
      }
    }
    sending_.clear();
    for (Fed& of_part : fed) {
      for (size_t p = 0; p < kBuilds; ++p) {
        if (of_part[p] == nullptr) continue;
        const TextSink::Result& result = of_part[p]->result;
        received_[p].insert(received_[p].end(), result.rows.begin(), result.rows.end());
        finished_ += result.finished;
      }
    }
    for (std::vector<TextRow>& rows : received_) std::sort(rows.begin(), rows.end());
    const auto bad = std::find_if(errors.begin(), errors.end(), [](const auto& e) { return !e.ok(); });
    return bad == errors.end() ? absl::OkStatus() : *bad;
  }
  absl::Status ReceivePart(const MulticastBuild& build, uint32_t part, uint32_t parts,
                           std::array<size_t, kBuilds> most, Fed& fed) {
    const auto channel = *storage::Channel::Open(*client_, first_.servers(), {});
    TaskContext context(client_->clock(), budget_, cancel_, {channel.get(), nullptr});
    const auto receiver = MulticastReceiver::Open(context, build, {.part = part, .parts = parts});
    if (!receiver.ok()) return receiver.status();
    std::vector<FedPipeline> pipelines;
    for (uint32_t p = kBuilds; p-- > 0;) {  // in another order than the stream's tables
      fed[p] = std::make_unique<FedTask>(*scans_[p], context, seed_ + p, most[p]);
      pipelines.push_back({p, scans_[p].get(), &fed[p]->feed, &fed[p]->task});
    }
    Step step = Step::kBlocked;
    while (step == Step::kBlocked) {
      step = (*receiver)->Run(context, pipelines);
      if (step == Step::kBlocked) NAM_CHECK(context.gate()->open());
      if (after_run_) after_run_();
    }
    EXPECT_FALSE(channel->broken());
    EXPECT_EQ(step == Step::kDone, context.error().ok());
    return context.error();
  }

  std::vector<TextRow> Expected(uint32_t pipeline) {
    PieceQueue queue(PiecesOf(pipeline));
    return *StreamedRows(GetParam(), TableOf(pipeline), **BlockScan::Make(options_[pipeline], queue));
  }
  std::vector<partitioner::Piece> PiecesOf(uint32_t pipeline) const {
    std::vector<partitioner::Piece> pieces;
    for (const uint32_t p : needed_[pipeline])
      pieces.push_back({p, 0, tables_[pipeline]->partitions(static_cast<int>(p)).blocks()});
    return pieces;
  }
  void ExpectAllRows() {
    for (uint32_t p = 0; p < kBuilds; ++p) {
      EXPECT_EQ(received_[p], Expected(p)) << "of pipeline " << p;
      const ScanTotals totals = scans_[p]->totals();
      EXPECT_EQ(totals.stream.blocks, blocks_[p]);
      EXPECT_EQ(totals.multicast_blocks + totals.repaired_blocks, blocks_[p]);
      uint64_t rows = 0;
      for (const uint32_t partition : needed_[p]) rows += TableOf(p).rows(partition).size();
      EXPECT_EQ(totals.rows_in, rows);
      EXPECT_EQ(totals.stream.bytes.size(), 2u);
      EXPECT_TRUE(totals.begun.empty());
      EXPECT_GE(totals.total_ns, totals.stream.waiting_ns);
    }
  }

  static constexpr ScanTable::Shape kFirst{.partitions = 4, .groups = 2, .block_rows = 100};
  static constexpr ScanTable::Shape kSecond{.partitions = 2, .block_rows = 1500};
  const std::array<std::vector<uint32_t>, kBuilds> columns_{
      {{ScanTable::kKey, ScanTable::kDay, ScanTable::kText}, {ScanTable::kText, ScanTable::kWide}}};

  const uint64_t seed_;
  RandomStream random_;
  ScanTable first_, second_;
  ::testing::ScopedTrace trace_;
  const plan::TableMetadata tables_;
  std::unique_ptr<fabric::Fabric> client_;
  plan::PhysicalPlan plan_;
  std::vector<std::vector<uint32_t>> needed_;
  PieceQueue unclaimed_{std::vector<partitioner::Piece>{}};
  std::array<BlockScan::Options, kBuilds> options_;
  std::array<std::unique_ptr<BlockScan>, kBuilds> scans_;
  MemoryBudget budget_{0};
  std::atomic<bool> cancel_ = false, cancel_senders_ = false;

  std::vector<std::unique_ptr<storage::FaultyFabric>> faulty_;
  std::vector<std::unique_ptr<storage::MulticastSender>> senders_;
  std::vector<std::unique_ptr<fabric::Thread>> sending_;
  proto::MulticastStreams streams_;
  std::array<uint64_t, kBuilds> blocks_{};

  std::function<void()> after_run_;  // in the receiving threads
  std::array<std::vector<TextRow>, kBuilds> received_;
  int finished_ = 0;
};

TEST_P(MulticastSourceTest, BlocksReachThePipelinesThatTheyBelongTo) {
  OpenSenders({});
  const auto build = From();
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE(build->Covers(0) && build->Covers(1) && !build->Covers(2));
  const absl::Status status = Receive(*build, 1);
  ASSERT_TRUE(status.ok()) << status;
  ExpectAllRows();
  EXPECT_EQ(finished_, 2);
  EXPECT_GT(scans_[0]->totals().multicast_blocks + scans_[1]->totals().multicast_blocks, 0u);
  // A socket's datagrams may be late, and the few blocks of a small table are READ then.
  if (GetParam() == fabric::Kind::kTcp) return;
  for (const auto& scan : scans_) EXPECT_GT(scan->totals().multicast_blocks, 0u);
}

TEST_P(MulticastSourceTest, PartsReceiveFromASenderEach) {
  OpenSenders({});
  const absl::Status status = Receive(*From(), 2);
  ASSERT_TRUE(status.ok()) << status;
  ExpectAllRows();
  EXPECT_EQ(finished_, 4);
}

TEST_P(MulticastSourceTest, WhatIsLostIsRepaired) {
  OpenSenders({.lost = 0.2, .duplicated = 0.2});
  const absl::Status status = Receive(*From(), 2);
  ASSERT_TRUE(status.ok()) << status;
  ExpectAllRows();
  EXPECT_GT(scans_[0]->totals().repaired_blocks, 0u);
  EXPECT_GT(scans_[0]->totals().duplicate_datagrams + scans_[1]->totals().duplicate_datagrams, 0u);
}

TEST_P(MulticastSourceTest, APipelineThatWantsNoMoreHoldsNothingUp) {
  options_[0].filters.clear();
  scans_[0] = *BlockScan::Make(options_[0], unclaimed_);
  OpenSenders({});
  const absl::Status status = Receive(*From(), 1, {150, SIZE_MAX});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GE(received_[0].size(), 150u);
  EXPECT_LE(received_[0].size(), 200u);
  EXPECT_EQ(received_[1], Expected(1));
  EXPECT_EQ(finished_, 2);
}

TEST_P(MulticastSourceTest, ACancelledReceiverFails) {
  OpenSenders({});
  after_run_ = [this] { cancel_ = true; };  // when a sink has blocked for the first time
  options_[0].filters.clear();
  scans_[0] = *BlockScan::Make(options_[0], unclaimed_);
  const absl::Status status = Receive(*From(), 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_LT(received_[0].size(), Expected(0).size());
}

/// There are two parts, one of which cannot join: the other one has joined and never runs.
TEST_P(MulticastSourceTest, IfAPartCannotJoinEverythingCanBeRead) {
  OpenSenders({});
  const MulticastBuild build = *From();
  RunSenders();
  client_->StartThread("parts", [&] {
    storage::FaultyFabric without(*client_, {.no_multicast = "no multicast on this network"}, 1);
    std::unique_ptr<storage::Channel> channels[] = {*storage::Channel::Open(*client_, first_.servers(), {}),
                                                    *storage::Channel::Open(without, first_.servers(), {})};
    TaskContext contexts[] = {{client_->clock(), budget_, cancel_, {channels[0].get(), nullptr}},
                              {client_->clock(), budget_, cancel_, {channels[1].get(), nullptr}}};
    auto joined = MulticastReceiver::Open(contexts[0], build, {.part = 0, .parts = 2});
    ASSERT_TRUE(joined.ok()) << joined.status();
    const auto failed = MulticastReceiver::Open(contexts[1], build, {.part = 1, .parts = 2});
    EXPECT_EQ(failed.status().message(), "no multicast on this network");
    joined->reset();
    for (size_t part = 0; part < 2; ++part) {
      EXPECT_FALSE(channels[part]->broken());
      PieceQueue queue(PiecesOf(0));
      const auto scan = *BlockScan::Make(options_[0], queue);
      const auto chunk = scan->NewChunk();
      const auto task = scan->NewTask(contexts[part]);
      std::vector<TextRow> rows;
      while (task->Next(contexts[part], *chunk) == Step::kHaveMore) Take(*chunk, rows);
      EXPECT_TRUE(contexts[part].error().ok()) << contexts[part].error();
      std::sort(rows.begin(), rows.end());
      received_[part] = std::move(rows);
    }
  });
  cancel_senders_ = true;
  sending_.clear();
  EXPECT_EQ(received_[0], received_[1]);
  EXPECT_EQ(received_[0], Expected(0));
  EXPECT_EQ(scans_[0]->totals().stream.blocks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, MulticastSourceTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

// ---- Messages of peers.

/// A message that fits, of chains with invented pointers: P0 needs partitions 0, 2 and 3 of a table whose
/// partition 3 is empty, P1 both of another one.
class MulticastMessages : public ::testing::Test {
 protected:
  MulticastMessages() {
    for (const std::vector<uint32_t>& blocks : {std::vector<uint32_t>{2, 1, 3, 0}, {1, 2}}) {
      auto table = std::make_shared<proto::Table>();
      for (int c = 0; c < 3; ++c) table->add_columns()->mutable_encoding()->set_width(4);
      for (const uint32_t n : blocks) {
        proto::Chain& chain = *table->add_partitions();
        chain.set_blocks(n);
        chain.set_block_rows(10);
      }
      tables_.push_back(std::move(table));
    }
    plan_.tables.resize(2);
    plan_.pipelines.resize(3);
    plan_.stages.push_back({.claimed = 2, .result = {}});
    for (uint32_t p = 0; p < 3; ++p) {
      plan::BlockScan scan;
      scan.table = p % 2;
      scan.columns = {0, p};
      if (p == 0) scan.columns = {1};
      plan_.pipelines[p].source = scan;
      plan_.pipelines[p].sink = plan::BuildSink{};
    }
    for (uint32_t server = 1; server <= 2; ++server) {
      proto::MulticastSender& sender = *good_.add_senders();
      sender.set_server(server);
      sender.set_stream(70 + server);
      sender.set_group_address("group");
      sender.set_board_rkey(80 + server);
      sender.set_fragment_bytes(1000);
    }
    good_.set_member(3);
    AddChain(0, 0, 2);
    AddChain(0, 2, 3);
    AddChain(1, 0, 1);
    AddChain(1, 1, 2);
  }
  void AddChain(uint32_t join, uint32_t partition, int pointers) {
    proto::MulticastChain& chain = *good_.add_chains();
    chain.set_pipeline(join);
    chain.set_partition(partition);
    for (int i = 0; i < pointers; ++i)
      chain.add_pointers(
          storage::RemotePtr<void>(MemoryServerId(1), 4096u * (100 * join + 10 * partition + i + 1u)).raw());
  }
  absl::StatusOr<MulticastBuild> From(const proto::MulticastStreams& streams) const {
    return MulticastBuild::From(streams, plan_, tables_, needed_);
  }
  /// The good message, changed, is refused for this reason.
  void ExpectRefused(const std::function<void(proto::MulticastStreams&)>& change, const std::string& why) {
    proto::MulticastStreams streams = good_;
    change(streams);
    const absl::Status status = From(streams).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_NE(status.message().find(why), absl::string_view::npos) << status;
  }

  plan::PhysicalPlan plan_;
  plan::TableMetadata tables_;
  std::vector<std::vector<uint32_t>> needed_{{0, 2, 3}, {0, 1}, {}};
  proto::MulticastStreams good_;
};

TEST_F(MulticastMessages, OneThatFitsIsTaken) {
  const auto build = From(good_);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_EQ(build->member, 3u);
  EXPECT_EQ(build->pipelines, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(build->Covers(0) && build->Covers(1) && !build->Covers(2));
  ASSERT_EQ(build->senders.size(), 2u);
  EXPECT_EQ(build->senders[1].server, MemoryServerId(2));
  EXPECT_EQ(build->senders[1].stream, 72u);
  EXPECT_EQ(build->senders[1].board.value, 82u);
  EXPECT_EQ(build->senders[1].group, "group");
  EXPECT_EQ(build->senders[1].fragment_bytes, 1000u);
  ASSERT_EQ(build->tables.size(), 2u);
  EXPECT_EQ(build->tables[0].table.columns, (std::vector<uint32_t>{1}));
  EXPECT_EQ(build->tables[1].table.columns, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(build->tables[0].chains.size(), 2u);
  EXPECT_EQ(build->tables[0].chains[1].partition, 2u);
  EXPECT_EQ(build->tables[0].chains[1].block_rows, 10u);
  EXPECT_EQ(build->tables[0].chains[1].pointers.size(), 3u);
  const auto none = From({});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->Covers(0));
}

TEST_F(MulticastMessages, OneBuildSideAloneMayCome) {
  proto::MulticastStreams streams = good_;
  streams.mutable_chains()->DeleteSubrange(0, 2);
  const auto build = From(streams);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE(!build->Covers(0) && build->Covers(1));
}

TEST_F(MulticastMessages, ThoseThatDoNotFitAreRefused) {
  ExpectRefused([](auto& m) { m.set_member(64); }, "a member beyond the boards");
  ExpectRefused([](auto& m) { m.mutable_senders(0)->set_server(0); }, "a sender without an id");
  ExpectRefused([](auto& m) { m.mutable_senders(1)->set_server(65536); }, "a sender without an id");
  ExpectRefused([](auto& m) { m.mutable_chains(3)->set_pipeline(3); }, "no such pipeline");
  ExpectRefused([](auto& m) { m.mutable_chains(3)->set_pipeline(UINT32_MAX); }, "no such pipeline");
  ExpectRefused([](auto& m) { m.mutable_chains(3)->set_pipeline(2); }, "whose pieces are claimed");
  ExpectRefused([](auto& m) { m.mutable_chains(3)->set_pipeline(0); }, "not in order");
  ExpectRefused([](auto& m) { m.mutable_chains(1)->set_partition(4); }, "no such partition");
  ExpectRefused([](auto& m) { m.mutable_chains(1)->set_partition(UINT32_MAX); }, "no such partition");
  ExpectRefused([](auto& m) { m.mutable_chains(1)->add_pointers(1); }, "not as many blocks");
  ExpectRefused([](auto& m) { m.mutable_chains(1)->mutable_pointers()->RemoveLast(); }, "not as many blocks");
  ExpectRefused([](auto& m) { m.mutable_chains(1)->set_partition(3), m.mutable_chains(1)->clear_pointers(); },
                "not as many blocks");
  const std::string not_needed = "not the partitions that are needed";
  ExpectRefused([](auto& m) { m.mutable_chains()->DeleteSubrange(1, 1); }, not_needed);
  ExpectRefused([](auto& m) { m.mutable_chains()->DeleteSubrange(3, 1); }, not_needed);
  ExpectRefused([](auto& m) { m.mutable_chains()->SwapElements(0, 1); }, not_needed);
  ExpectRefused([](auto& m) { *m.add_chains() = m.chains(3); }, not_needed);
  ExpectRefused(
      [](auto& m) {
        m.mutable_chains(1)->set_partition(1), m.mutable_chains(1)->mutable_pointers()->Truncate(1);
      },
      not_needed);
  ExpectRefused([](auto& m) { m.clear_senders(); }, "senders without blocks");
  ExpectRefused([](auto& m) { m.clear_chains(); }, "senders without blocks");
}

TEST_F(MulticastMessages, PipelinesThatCannotBeFedAreRefused) {
  const auto unchanged = [](auto&) {};
  plan_.pipelines[1].after = {0};
  ExpectRefused(unchanged, "a pipeline that waits for others");
  plan_.pipelines[1].after.clear();
  plan_.pipelines[1].sink = plan::ResultSink{};
  ExpectRefused(unchanged, "does not build from blocks");
  plan_.pipelines[1].sink = plan::BuildSink{};
  plan_.pipelines[1].source = plan::RecordScan{};
  ExpectRefused(unchanged, "does not build from blocks");
}

}  // namespace
}  // namespace nam::execution
