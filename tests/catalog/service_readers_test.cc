#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "catalog/chain_groups.h"
#include "tests/catalog/service_fixture.h"

/// Merged groups of a columnar table, and statements that still read the former ones.
namespace nam::catalog {
namespace {

class ServiceReadersTest : public ServiceTest {
 protected:
  ServiceReadersTest() : memory_(Join(proto::ROLE_MEMORY)), client_(Join(proto::ROLE_CLIENT)) {
    proto::CommitLoadRequest load;
    load.mutable_table()->set_name("t");
    base_ = *Begin(client_, "t");
    load.mutable_table()->set_allocation(base_);
    load.mutable_table()->set_rows(5);
    load.mutable_table()->add_partitions()->set_rows(5);
    EXPECT_TRUE(service_->CommitLoad(load).ok());
  }
  proto::Table Table() { return Get("t")->table(); }
  uint64_t Append() {
    const uint64_t allocation = *BeginExtend(client_, "t");
    EXPECT_TRUE(ServiceTest::Append(allocation, Table(), memory_).ok());
    return allocation;
  }
  /// `replaced` become one group of `table`.
  proto::CommitExtendRequest Compaction(uint64_t allocation, const proto::Table& table,
                                        const std::set<uint64_t>& replaced) {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.set_expected_version(table.version());
    for (const uint64_t group : replaced) request.add_replaced(group);
    proto::Table& compacted = *request.mutable_appended();
    compacted = table;
    compacted.clear_groups();
    compacted.clear_partitions();
    uint64_t rows = 0;
    for (uint32_t g = 0; g < GroupCount(table); ++g) {
      if (replaced.contains(GroupAllocation(table, g))) {
        rows += GroupRows(table, g);
        continue;
      }
      *compacted.add_groups() = DescribeGroup(table, g);
      *compacted.add_partitions() = table.partitions(static_cast<int>(g));
    }
    proto::ChainGroup& group = *compacted.add_groups();
    group.set_allocation(allocation);
    group.set_compacted(true);
    compacted.add_partitions()->set_rows(rows);
    compacted.mutable_partitions()->rbegin()->add_head(uint64_t{memory_} << 48 | 4'096);
    compacted.set_allocation(allocation);
    return request;
  }
  uint64_t Compact(const std::set<uint64_t>& replaced) {
    const uint64_t allocation = *BeginExtend(client_, "t");
    const auto reply = service_->CommitExtend(Compaction(allocation, Table(), replaced));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return allocation;
  }
  void Reads(uint32_t client, uint64_t version) {
    proto::RenewRequest request;
    request.set_id(client);
    request.set_reads_from(version);
    EXPECT_TRUE(ProvenRenew(request).ok());
  }
  proto::Table VersionOf(uint64_t allocation) {
    proto::GetTableRequest request;
    request.set_name("t");
    request.set_allocation(allocation);
    proto::Table table = service_->GetTable(request)->table();
    EXPECT_TRUE(CutBackTo(allocation, table));
    return table;
  }

  const uint32_t memory_, client_;
  uint64_t base_ = 0;
};

TEST_F(ServiceReadersTest, GroupsAreFreedOnceEveryClientReadsALaterVersion) {
  const uint64_t a = Append(), b = Append();
  const uint32_t other = Join(proto::ROLE_CLIENT);
  const uint64_t before = Table().version();
  const uint64_t c = Compact({a, b});
  EXPECT_EQ(GroupCount(Table()), 2u);
  EXPECT_EQ(Table().rows(), 5u);
  const uint64_t after = Table().version();
  const std::vector<uint64_t> all{base_, a, b, c};
  EXPECT_TRUE(Renew(memory_, all)->empty()) << "no client has reported its versions";
  Reads(client_, after);
  EXPECT_TRUE(Renew(memory_, all)->empty()) << "a statement of another client may run";
  Reads(other, before);
  EXPECT_TRUE(Renew(memory_, all)->empty()) << "and it runs";
  Reads(other, after);
  EXPECT_EQ(*Renew(memory_, all), (std::vector<uint64_t>{a, b}));
  EXPECT_EQ(Table().retired_size(), 0);
  ASSERT_TRUE(Drop("t").ok());
  EXPECT_EQ(Renew(memory_, all)->size(), 4u);
}

TEST_F(ServiceReadersTest, AClientThatEndsReadsNothing) {
  const uint64_t a = Append();
  const uint32_t other = Join(proto::ROLE_CLIENT);
  const uint64_t b = Compact({a, base_});
  Reads(client_, Table().version());
  EXPECT_TRUE(Renew(memory_, {base_, a, b})->empty());
  proto::LeaveRequest leave;
  leave.set_id(other);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(*Renew(memory_, {base_, a, b}), (std::vector<uint64_t>{base_, a}));
}

TEST_F(ServiceReadersTest, ARestartKeepsWhatStatementsMayRead) {
  const uint64_t a = Append();
  const uint64_t b = Compact({a, base_});
  const uint64_t version = Table().version();
  Restart();
  EXPECT_EQ(GroupCount(Table()), 1u);
  EXPECT_TRUE(Renew(memory_, {base_, a, b})->empty());
  Reads(client_, version);
  EXPECT_EQ(*Renew(memory_, {base_, a, b}), (std::vector<uint64_t>{base_, a}));
  const uint64_t c = Append();
  Restart();
  EXPECT_EQ(*Renew(memory_, {base_, a, b, c}), (std::vector<uint64_t>{base_, a}))
      << "the store lists them no more";
}

TEST_F(ServiceReadersTest, AppendsAndCompactionsGoOnTogether) {
  const uint64_t a = Append(), b = Append();
  const uint64_t compacting = *BeginExtend(client_, "t"), twice = *BeginExtend(client_, "t");
  const proto::Table seen = Table();
  const uint64_t c = Append();
  EXPECT_EQ(service_->CommitExtend(Compaction(compacting, seen, {a, b})).status().code(),
            absl::StatusCode::kAborted)
      << "it would lose group c";
  const auto version = service_->CommitExtend(Compaction(compacting, Table(), {a, b}));
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(service_->CommitExtend(Compaction(compacting, seen, {a, b}))->version(), version->version())
      << "asked again because the answer was lost";
  const proto::Table now = Table();
  ASSERT_EQ(GroupCount(now), 3u);
  EXPECT_EQ(GroupAllocation(now, 1), c);
  EXPECT_EQ(GroupAllocation(now, 2), compacting);
  EXPECT_EQ(service_->CommitExtend(Compaction(twice, now, {a, b})).status().code(),
            absl::StatusCode::kAborted)
      << "they are in another group already";
}

TEST_F(ServiceReadersTest, ACompactionChangesNoRow) {
  const uint64_t a = Append(), allocation = *BeginExtend(client_, "t");
  const auto refused = [&](const std::function<void(proto::Table&)>& change) {
    proto::CommitExtendRequest request = Compaction(allocation, Table(), {a, base_});
    change(*request.mutable_appended());
    return service_->CommitExtend(request).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](proto::Table& t) { t.set_rows(4); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.mutable_partitions(0)->set_rows(6); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.mutable_groups(0)->set_compacted(false); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.add_groups()->set_allocation(77); }));
  EXPECT_FALSE(refused([](proto::Table&) {}));
}

/// A compute server learns of a table later than the session that is bound to it.
TEST_F(ServiceReadersTest, FormerVersionsAreToldAsLongAsTheyMayBeRead) {
  const uint64_t a = Append(), b = Append();
  const proto::Table two = Table();
  const uint64_t c = Compact({base_, a});
  const uint64_t d = Append();
  EXPECT_EQ(GroupAllocation(VersionOf(b), 2), b) << "as it was before the compaction";
  EXPECT_EQ(GroupCount(VersionOf(b)), 3u);
  EXPECT_EQ(GroupCount(VersionOf(a)), 2u);
  EXPECT_EQ(GroupCount(VersionOf(base_)), 1u);
  EXPECT_EQ(GroupCount(VersionOf(c)), 2u);
  EXPECT_EQ(GroupCount(VersionOf(d)), 3u);
  Reads(client_, Table().version());
  ASSERT_TRUE(Renew(memory_).ok());
  proto::GetTableRequest request;
  request.set_name("t");
  request.set_allocation(b);
  proto::Table late = service_->GetTable(request)->table();
  EXPECT_FALSE(CutBackTo(b, late)) << "rows of base and a are in a later group: nothing may be cut off";
}

}  // namespace
}  // namespace nam::catalog
