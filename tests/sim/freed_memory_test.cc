#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "catalog/chain_groups.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "types/sql_error.h"

/// Memory that was freed while members have WRITEs to it in flight.
namespace nam::simulation {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{8} << 20;
constexpr uint32_t kLongLeaseMs = 3'000;

class FreedMemory : public ::testing::TestWithParam<uint64_t> {
 protected:
  FreedMemory() : world_({.seed = GetParam()}) {
    auto cluster = Cluster::Start(world_, {.memory_servers = 1,
                                           .compute_servers = 0,
                                           .memory_bytes = kMemoryBytes,
                                           .scratch_bytes = 0,
                                           .lease_ms = kLongLeaseMs});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    owner_ = NewClient("owner");
    writer_ = NewClient("writer");
    server_ =
        MemoryServerId(static_cast<uint16_t>((*owner_->attachment().Members(proto::ROLE_MEMORY)).at(0).id()));
  }
  std::unique_ptr<Client> NewClient(const std::string& host) {
    auto client = cluster_->NewClient(host);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  AllocationId Begin() {
    const auto allocation =
        owner_->attachment().catalog().BeginLoad(owner_->attachment().member(), "table", false);
    EXPECT_TRUE(allocation.ok()) << allocation.status();
    return *allocation;
  }
  /// Takes all memory there is.
  absl::StatusOr<std::vector<catalog::GrantedExtent>> AllocateAll(AllocationId allocation) {
    return owner_->attachment().Allocate(server_, allocation, kMemoryBytes - 4096);
  }
  void Abort(AllocationId allocation) {
    ASSERT_TRUE(owner_->attachment().catalog().AbortLoad(allocation).ok());
  }
  /// The writer opens the allocation; its card is stopped when it has posted a WRITE there.
  void PostAndStop(AllocationId allocation) {
    const auto extents = writer_->attachment().OpenExtents(server_, {allocation});
    ASSERT_TRUE(extents.ok()) << extents.status();
    place_ = storage::RemotePtr<void>(server_, (*extents)[0].offset);
    channel_ = *storage::Channel::Open(writer_->fabric(), writer_->attachment(), {.buffer_bytes = 64 << 10});
    batch_ = std::make_unique<storage::VerbBatch>(*channel_);
    storage::Channel::Target at = *channel_->Resolve(place_, 8);
    at.grant = (*extents)[0].grant.get();
    world_.Pause(writer_->process(), /*card_too=*/true);
    std::byte* const word = batch_->Scratch(8);
    std::memset(word, 7, 8);
    batch_->Write(word, 8, at);
    ASSERT_TRUE(batch_->Post().ok());
  }
  uint64_t Word() {
    const auto channel =
        *storage::Channel::Open(owner_->fabric(), owner_->attachment(), {.buffer_bytes = 64 << 10});
    uint64_t word = 1;
    EXPECT_TRUE(channel->Read(place_, {reinterpret_cast<std::byte*>(&word), 8}).ok());
    return word;
  }
  void Sleep(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }

  fabric::sim::World world_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> owner_, writer_;
  MemoryServerId server_;
  storage::RemotePtr<void> place_;
  std::unique_ptr<storage::Channel> channel_;
  std::unique_ptr<storage::VerbBatch> batch_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, FreedMemory, ::testing::Range<uint64_t>(1, 6));

TEST_P(FreedMemory, IsMadeAgainInATightLoop) {
  for (int i = 0; i < 10; ++i) {
    const AllocationId allocation = Begin();
    const auto extents = AllocateAll(allocation);
    ASSERT_TRUE(extents.ok()) << extents.status();
    ASSERT_TRUE(writer_->attachment().OpenExtents(server_, {allocation}).ok());
    const int64_t begun_ns = world_.NowNs();
    Abort(allocation);
    EXPECT_LT(world_.NowNs() - begun_ns, int64_t{kLongLeaseMs} * 500'000) << "by the other's next renewal";
  }
}

TEST_P(FreedMemory, WaitsForTheWriteOfAMemberThatIsSlow) {
  const AllocationId first = Begin();
  ASSERT_TRUE(AllocateAll(first).ok());
  PostAndStop(first);
  Abort(first);
  std::atomic<bool> done = false;
  auto next = owner_->fabric().StartThread("next", [&] {
    const auto extents = AllocateAll(Begin());
    EXPECT_TRUE(extents.ok()) << extents.status();
    done = true;
  });
  Sleep(700'000);
  EXPECT_FALSE(done) << "the WRITE has not left";
  world_.Resume(writer_->process());
  next.reset();
  EXPECT_TRUE(done);
  Sleep(500'000);
  EXPECT_EQ(Word(), 0u) << "it came before the memory was zeroed";
}

TEST_P(FreedMemory, WaitsForTheFenceOfAMemberThatSaysNothing) {
  const AllocationId first = Begin();
  ASSERT_TRUE(AllocateAll(first).ok());
  PostAndStop(first);
  Abort(first);
  const int64_t begun_ns = world_.NowNs();
  const auto extents = AllocateAll(Begin());
  ASSERT_TRUE(extents.ok()) << extents.status();
  EXPECT_LT(world_.NowNs() - begun_ns, int64_t{kLongLeaseMs} * 2'000'000) << "its lease";
  world_.Resume(writer_->process());
  Sleep(500'000);
  EXPECT_EQ(Word(), 0u) << "its connections are ended";
}

/// Statements of a session end when they are told to, though their memory is not free yet.
TEST_P(FreedMemory, IsNotAwaitedByWhatIsCancelled) {
  constexpr int kRows = 3'000;
  const auto run = [&](const std::string& sql) { return owner_->session().Execute(sql).status(); };
  ASSERT_TRUE(run("create table t (a int) with (storage = columnar)").ok());
  std::string insert = "insert into t values (0)";
  for (int i = 1; i < kRows; ++i) absl::StrAppend(&insert, ", (", i * 100'000, ")");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run(insert).ok());
  const AllocationId first = Begin();
  const auto usage = owner_->attachment().MemoryUsage(server_);
  ASSERT_TRUE(usage.ok()) << usage.status();
  const uint64_t free = usage->memory_bytes() - usage->used_bytes();
  ASSERT_TRUE(owner_->attachment().Allocate(server_, first, free - 4096).ok());
  PostAndStop(first);
  Abort(first);
  ASSERT_TRUE(run("set statement_timeout = 300").ok());
  for (const std::string& sql : {insert, std::string("vacuum t")}) {
    const int64_t begun_ns = world_.NowNs();
    const SqlError error = SqlErrorOf(run(sql)).value_or(SqlError());
    EXPECT_EQ(error.sqlstate, "57014") << error.message;
    EXPECT_LT(world_.NowNs() - begun_ns, 600'000'000);
  }
  world_.Resume(writer_->process());
  const auto table = owner_->attachment().catalog().GetTable("t");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->rows(), 2u * kRows);
  EXPECT_EQ(catalog::GroupCount(**table), 2u);
}

}  // namespace
}  // namespace nam::simulation
