// Rows through exchanges, as the threads of servers send and receive them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/exchange/exchange_sink.h"
#include "execution/exchange/exchange_source.h"
#include "execution/exchange/streamed_tasks.h"
#include "tests/execution/exchange/members.h"
#include "tests/execution/step_driver.h"

namespace nam::execution {
namespace {

uint32_t MessageBytes(const plan::Schema& schema) {
  const auto layout = ExchangeLayout(schema);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return (layout->page_bytes() + static_cast<uint32_t>(sizeof(MessageHeader)) + 63) / 64 * 64;
}

/// Two exchanges of the same rows: 0 by their first column, 1 to all.
EndpointOptions RowExchangeOptions(uint32_t members, const plan::Schema& schema) {
  return {.exchanges = {RepartitionAmong(members), BroadcastAmong(members)},
          .message_bytes = MessageBytes(schema),
          .credits = 2,
          .attempt = kAttempt};
}

/// Tuples that arrive, without an order.
class Arrivals final : public SinkTask {
 public:
  Arrivals(size_t columns, std::vector<Tuple>& tuples) : columns_(columns), tuples_(tuples) {}
  Step Consume(TaskContext&, const Chunk& in) override {
    for (Tuple& tuple : TuplesOf(in, columns_)) tuples_.push_back(std::move(tuple));
    return Step::kNeedInput;
  }

 private:
  const size_t columns_;
  std::vector<Tuple>& tuples_;
};

class ExchangeOperators : public testing::TestWithParam<Subject> {
 protected:
  using Received = std::array<std::vector<Tuple>, 2>;  // by exchange

  /// One member's thread sends `own` through both exchanges, while it receives from both.
  static absl::Status Exchange(Members& members, uint32_t self, const plan::Schema& schema,
                               const std::vector<Tuple>& own, uint64_t seed, Received& received) {
    MemoryBudget budget(uint64_t{64} << 20);
    TaskContext context(members.fabric(self).clock(), budget, members.cancel(), {.exchange = &members[self]});
    std::array<std::unique_ptr<ExchangeSink>, 2> sinks;
    std::array<std::unique_ptr<ExchangeSource>, 2> sources;
    StreamedTasks tasks(context, members[self]);
    for (uint32_t e = 0; e < 2; ++e) {
      auto sink = ExchangeSink::Make({.rows = schema,
                                      .keys = e == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>(),
                                      .exchange = e,
                                      .attempt = kAttempt},
                                     budget);
      if (!sink.ok()) return sink.status();
      sinks[e] = *std::move(sink);
      auto source = ExchangeSource::Make({.rows = schema, .exchange = e, .attempt = kAttempt}, budget);
      if (!source.ok()) return source.status();
      sources[e] = *std::move(source);
      tasks.Add(2 * e, Task(std::make_unique<TupleSource>(schema, own, seed + e), sinks[e]->NewTask(context),
                            std::make_unique<Chunk>(schema.size(), schema.size())));
      tasks.Add(2 * e + 1,
                Task(sources[e]->NewTask(context), std::make_unique<Arrivals>(schema.size(), received[e]),
                     std::make_unique<Chunk>(schema.size(), 0)));
    }
    std::vector<uint32_t> ended;
    absl::Status status =
        tasks.Run([&](uint32_t pipeline, const PipelineTask&) { ended.push_back(pipeline); });
    if (!status.ok()) return status;
    std::sort(ended.begin(), ended.end());
    EXPECT_EQ(ended, (std::vector<uint32_t>{0, 1, 2, 3}));
    status = AwaitIdle(members[self], members.cancel());
    for (auto& source : sources) {
      // The source's tasks are gone.
      EXPECT_EQ(source->rows(), received[source == sources[0] ? 0 : 1].size());
    }
    return status;
  }
  static std::unique_ptr<PipelineTask> Task(std::unique_ptr<SourceTask> source,
                                            std::unique_ptr<SinkTask> sink, std::unique_ptr<Chunk> chunk) {
    std::vector<std::unique_ptr<Chunk>> chunks;
    chunks.push_back(std::move(chunk));
    return std::make_unique<PipelineTask>(std::move(source), std::vector<std::unique_ptr<StepTask>>(),
                                          std::move(sink), std::move(chunks));
  }
};

TEST_P(ExchangeOperators, EveryRowArrivesWhereItsKeyBelongsOrEverywhere) {
  constexpr uint32_t kMembers = 3;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed);
    plan::Schema schema = RandomSchema(4, random);
    if (schema.empty()) schema.push_back({.type = Type::Integer(), .nullable = true, .bounds = {}});
    std::vector<std::vector<Tuple>> own;
    std::vector<Tuple> all;
    for (uint32_t m = 0; m < kMembers; ++m) {
      // One of the members has no rows.
      own.push_back(RandomTuples(schema, m == seed % 4 ? 0 : 3'000 + random.Below(6'000), 500, random));
      all.insert(all.end(), own.back().begin(), own.back().end());
    }
    Members members(GetParam(), kMembers, RowExchangeOptions(kMembers, schema));
    members.Connect();
    std::array<Received, kMembers> received;
    members.OnAll([&](uint32_t self) {
      const absl::Status status = Exchange(members, self, schema, own[self], 10 * seed, received[self]);
      EXPECT_TRUE(status.ok()) << status;
    });
    std::sort(all.begin(), all.end());
    std::vector<Tuple> parted;
    std::map<Cell, uint32_t> member_of;
    for (uint32_t m = 0; m < kMembers; ++m) {
      for (const Tuple& tuple : received[m][0]) {
        EXPECT_EQ(member_of.emplace(tuple[0], m).first->second, m) << "equal keys at two members";
        parted.push_back(tuple);
      }
      std::sort(received[m][1].begin(), received[m][1].end());
      ExpectTuples(received[m][1], all);
    }
    std::sort(parted.begin(), parted.end());
    ExpectTuples(parted, all);
  }
}

/// They come in pieces, among those of others.
TEST_P(ExchangeOperators, RowsThatFitNoMessageArriveWhole) {
  constexpr uint32_t kMembers = 3;
  RandomStream random(7);
  const plan::Schema schema = LongTupleSchema();
  std::vector<std::vector<Tuple>> own;
  std::vector<Tuple> all;
  for (uint32_t m = 0; m < kMembers; ++m) {
    own.push_back(LongTuples(60, random));
    all.insert(all.end(), own.back().begin(), own.back().end());
  }
  Members members(GetParam(), kMembers, RowExchangeOptions(kMembers, schema));
  members.Connect();
  std::array<Received, kMembers> received;
  members.OnAll([&](uint32_t self) {
    const absl::Status status = Exchange(members, self, schema, own[self], 3, received[self]);
    EXPECT_TRUE(status.ok()) << status;
  });
  std::sort(all.begin(), all.end());
  std::vector<Tuple> parted;
  for (uint32_t m = 0; m < kMembers; ++m) {
    parted.insert(parted.end(), received[m][0].begin(), received[m][0].end());
    std::sort(received[m][1].begin(), received[m][1].end());
    EXPECT_TRUE(received[m][1] == all) << m;
  }
  std::sort(parted.begin(), parted.end());
  EXPECT_TRUE(parted == all);
}

/// One receiver wants few rows: the senders do not wait for it, and the other receivers get all of theirs.
TEST_P(ExchangeOperators, AReceiverThatWantsNoMoreHoldsNobodyUp) {
  const plan::Schema schema = {{.type = Type::Integer(), .nullable = false, .bounds = {0, 100'000, true}}};
  constexpr uint64_t kRows = 50'000;
  Members members(GetParam(), 3, RowExchangeOptions(3, schema));
  members.Connect();
  std::array<std::vector<Tuple>, 3> received;
  members.OnAll([&](uint32_t self) {
    MemoryBudget budget(uint64_t{64} << 20);
    TaskContext context(members.fabric(self).clock(), budget, members.cancel(), {.exchange = &members[self]});
    RandomStream random(self + 1);
    auto sink = ExchangeSink::Make({.rows = schema, .keys = {}, .exchange = 1, .attempt = kAttempt}, budget);
    auto source = ExchangeSource::Make({.rows = schema, .exchange = 1, .attempt = kAttempt}, budget);
    ASSERT_TRUE(sink.ok() && source.ok());
    StreamedTasks tasks(context, members[self]);
    tasks.Add(0,
              Task(std::make_unique<TupleSource>(schema, RandomTuples(schema, kRows, 500, random), self + 7),
                   (*sink)->NewTask(context), std::make_unique<Chunk>(1, 1)));
    const size_t most = self == 1 ? 100 : SIZE_MAX;
    tasks.Add(
        1,
        Task((*source)->NewTask(context), std::make_unique<TupleSink>(1, self + 1, received[self], most),
             std::make_unique<Chunk>(1, 0)),
        1);
    ASSERT_OK(tasks.Run([](uint32_t, const PipelineTask&) {}));
    ASSERT_OK(AwaitIdle(members[self], members.cancel()));
    EXPECT_TRUE(members[self].Ended(1));
  });
  EXPECT_EQ(received[0].size(), 3 * kRows);
  EXPECT_EQ(received[1].size(), 100u);
  EXPECT_EQ(received[2].size(), 3 * kRows);
}

TEST_P(ExchangeOperators, AQueryThatIsCancelledStopsSendersAndReceivers) {
  const plan::Schema schema = {{.type = Type::Integer(), .nullable = false, .bounds = {0, 1000, true}}};
  Members members(GetParam(), 2, RowExchangeOptions(2, schema));
  members.Connect();
  std::array<Received, 2> received;
  members.OnAll([&](uint32_t self) {
    if (self == 1) {  // takes no rows
      members.Cancel();
      return;
    }
    RandomStream random(1);
    const absl::Status status =
        Exchange(members, self, schema, RandomTuples(schema, 200'000, 500, random), 1, received[self]);
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
}

/// A member sends messages that are no pages of these rows.
TEST_P(ExchangeOperators, MessagesAreCheckedBeforeTheirRowsAreRead) {
  const plan::Schema schema = {{.type = Type::Integer(), .nullable = false, .bounds = {0, 1000, true}}};
  const auto layout = ExchangeLayout(schema);
  ASSERT_TRUE(layout.ok());
  const auto sends = [&](uint32_t bytes, uint32_t rows, uint64_t attempt, int16_t value) {
    Members members(GetParam(), 2, RowExchangeOptions(2, schema));
    members.Connect();
    absl::Status status;
    members.OnAll([&](uint32_t self) {
      if (self == 1) {
        const auto buffer = members[1].GetFree(0, 0);
        ASSERT_TRUE(buffer.has_value());
        std::byte* const page = buffer->payload.data();
        layout->Clear(page);
        PageHeader header;
        std::memcpy(&header, page, sizeof(header));
        header.rows = 2;
        std::memcpy(page, &header, sizeof(header));
        std::memcpy(page + kPageHeaderBytes, &value, sizeof(value));
        std::memcpy(page + kPageHeaderBytes + sizeof(value), &value, sizeof(value));
        layout->Seal(page, attempt);
        ASSERT_TRUE(*members[1].Send(*buffer, {bytes, rows, true}));
        ASSERT_OK(AwaitIdle(members[1], members.cancel()));
        return;
      }
      MemoryBudget budget(uint64_t{1} << 20);
      TaskContext context(members.fabric(0).clock(), budget, members.cancel(), {.exchange = &members[0]});
      auto source = ExchangeSource::Make({.rows = schema, .exchange = 0, .attempt = kAttempt}, budget);
      ASSERT_TRUE(source.ok());
      const auto task = (*source)->NewTask(context);
      Chunk chunk(1, 0);
      Step step;
      while ((step = task->Next(context, chunk)) == Step::kNeedInput)
        ASSERT_OK(members[0].Poll(/*wait=*/true, members.cancel()));
      if (step == Step::kHaveMore) EXPECT_EQ(chunk.selection().count, 2u);
      status = context.error();
    });
    return status;
  };
  const uint32_t page = layout->page_bytes();
  EXPECT_EQ(layout->stride(), 2u);
  EXPECT_TRUE(sends(page, 2, kAttempt, 7).ok()) << sends(page, 2, kAttempt, 7);
  const auto refused = [](const absl::Status& status) {
    EXPECT_TRUE(absl::StrContains(status.message(), "member 1")) << status;
    EXPECT_TRUE(status.GetPayload(kExchangeMemberLost).has_value()) << status;
    return absl::IsDataLoss(status);
  };
  EXPECT_TRUE(refused(sends(page, 2, kAttempt + 1, 7)));
  EXPECT_TRUE(refused(sends(page, 3, kAttempt, 7))) << "other rows than its page";
  EXPECT_TRUE(refused(sends(page, 2, kAttempt, 1001))) << "beyond the column's bounds";
  EXPECT_TRUE(refused(sends(page - 64, 2, kAttempt, 7))) << "not the size that its rows take";
  EXPECT_TRUE(refused(sends(16, 2, kAttempt, 7))) << "no header";
  EXPECT_TRUE(refused(sends(0, 2, kAttempt, 7))) << "rows without bytes";
}

INSTANTIATE_TEST_SUITE_P(Exchange, ExchangeOperators,
                         testing::Values(Subject{Design::kSendReceive, fabric::Kind::kSim},
                                         Subject{Design::kSendReceive, fabric::Kind::kShm},
                                         Subject{Design::kSendReceive, fabric::Kind::kTcp}),
                         NameOf);

}  // namespace
}  // namespace nam::execution
