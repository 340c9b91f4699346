#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A catalog whose store is copied, continues, and is restored. The test plays members with the marks that
// they keep.
class ServiceEpochsTest : public ServiceTest {
 protected:
  struct Player {
    uint32_t id = 0;
    proto::StoreMark newest;
    std::vector<uint64_t> held;
  };

  Player Enter(proto::Role role) {
    Player player;
    player.id = Join(role);
    player.newest = MarkOf(Cluster());
    return player;
  }
  absl::StatusOr<proto::RenewReply> Report(Player& player, bool all = true) {
    proto::RenewRequest request;
    request.set_id(player.id);
    request.mutable_held()->Add(player.held.begin(), player.held.end());
    proto::CatalogHeader header;
    *header.mutable_mark() = player.newest;
    header.set_held_is_all(all);
    SetHeader(request, header);
    auto reply = ProvenRenew(request);
    if (reply.ok() && MarkOf(*reply).epoch() != 0) player.newest = MarkOf(*reply);
    return reply;
  }
  /// A table with bytes on the server, which holds them from then on.
  uint64_t Load(const Player& client, const std::string& name, Player& server) {
    const uint64_t allocation = *Begin(client.id, name, true);
    server.held.push_back(allocation);
    EXPECT_TRUE(Commit(allocation, name, {server.id}).ok());
    return allocation;
  }
  void Copy(const std::string& to) {
    Stop();
    std::filesystem::copy_file(folder_.File("catalog.db"), folder_.File(to));
  }
  void PutBack(const std::string& from, const std::string& keep = "newer.db") {
    Stop();
    std::filesystem::rename(folder_.File("catalog.db"), folder_.File(keep));
    std::filesystem::copy_file(folder_.File(from), folder_.File("catalog.db"));
  }
  std::vector<std::string> Tables() {
    const auto reply = service_->ListTables({});
    EXPECT_TRUE(reply.ok()) << reply.status();
    std::vector<std::string> names;
    if (reply.ok()) {
      for (const proto::Table& table : reply->tables()) names.push_back(table.name());
    }
    return names;
  }
  void ExpectRefused(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--accept-older-store"));
  }
  void ExpectEverythingRefused() {
    ExpectRefused(service_->ListTables({}).status());
    ExpectRefused(service_->GetCluster({}).status());
    ExpectRefused(Get("date").status());
    ExpectRefused(TryJoin(proto::ROLE_MEMORY).status());
    ExpectRefused(Drop("date"));
  }
};

TEST_F(ServiceEpochsTest, AnOlderStoreIsRefusedAndTheNewerGoesOn) {
  Player first = Enter(proto::ROLE_MEMORY), second = Enter(proto::ROLE_MEMORY);
  const Player client = Enter(proto::ROLE_CLIENT);
  Load(client, "date", first);
  Copy("older.db");
  Restart();
  const uint64_t part = Load(client, "part", first);
  ASSERT_TRUE(Report(first).ok());

  PutBack("older.db");
  Start();
  EXPECT_EQ(service_->ListTables({}).status().code(), absl::StatusCode::kUnavailable)
      << "no server has reported";
  // Only the other one reports, and knows nothing newer.
  EXPECT_TRUE(Report(second).ok());
  EXPECT_EQ(service_->ListTables({}).status().code(), absl::StatusCode::kUnavailable);
  ExpectRefused(Report(first).status());
  EXPECT_THAT(Reported(), SizeIs(1)) << "an operator is told once";
  ExpectEverythingRefused();
  clock_.AdvanceMs(60'000);  // time does not make it newer, and no server is buried
  ExpectRefused(Report(first).status());
  ExpectRefused(Report(second).status());
  ExpectEverythingRefused();
  EXPECT_THAT(Reported(), IsEmpty());

  PutBack("newer.db", "refused.db");
  Start();
  ASSERT_TRUE(Report(second).ok());
  const auto reply = Report(first);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->release(), IsEmpty());
  EXPECT_THAT(Tables(), ElementsAre("date", "part"));
  EXPECT_THAT(first.held, testing::Contains(part));
}

// Detected from the server's memory, although it had not renewed since the table was created.
TEST_F(ServiceEpochsTest, MemoryThatTheStoreNeverGaveOutIsProof) {
  Player memory = Enter(proto::ROLE_MEMORY);
  const Player client = Enter(proto::ROLE_CLIENT);
  ASSERT_TRUE(Report(memory).ok());
  Copy("older.db");
  Restart();
  Load(client, "date", memory);
  PutBack("older.db");
  Start();
  ExpectRefused(Report(memory).status());
}

// The store is older than the join of the only server that knows better.
TEST_F(ServiceEpochsTest, AServerThatTheStoreDoesNotListIsProof) {
  Player first = Enter(proto::ROLE_MEMORY);
  Copy("older.db");
  Restart();
  Player second = Enter(proto::ROLE_MEMORY);
  for (const bool with_mark : {true, false}) {
    PutBack("older.db", with_mark ? "newer.db" : "refused.db");
    Start();
    Player reporting = second;
    if (!with_mark) reporting.newest.Clear();
    ExpectRefused(Report(reporting).status());
    ExpectRefused(Report(first).status());
  }
}

// A copy of its files, while the catalog runs: the same epoch, and fewer versions.
TEST_F(ServiceEpochsTest, ACopyOfARunningCatalogIsOlderAfterTheNextCommit) {
  Player memory = Enter(proto::ROLE_MEMORY);
  const Player client = Enter(proto::ROLE_CLIENT);
  Load(client, "date", memory);
  const std::string store = folder_.File("catalog.db"), copy = folder_.File("copy.db");
  for (const bool commits : {false, true}) {
    for (const char* file : {"", "-wal"}) {
      std::filesystem::copy_file(store + file, copy + file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    if (commits) {
      ASSERT_TRUE(Drop("date").ok());
      memory.held.clear();
    }
    ASSERT_TRUE(Report(memory).ok());
    Stop();
    for (const char* file : {"", "-wal"}) {
      std::filesystem::copy_file(copy + file, store + file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    Start();
    if (commits) {
      ExpectRefused(Report(memory).status());
    } else {
      EXPECT_TRUE(Report(memory).ok());
      EXPECT_THAT(Tables(), ElementsAre("date"));
    }
  }
}

// Both have gone on from one copy: each has an epoch of the same number.
TEST_F(ServiceEpochsTest, ABranchIsRefused) {
  Player memory = Enter(proto::ROLE_MEMORY);
  Copy("older.db");
  Restart();
  ASSERT_TRUE(Report(memory).ok());
  PutBack("older.db");
  Restart();  // its memory server reports without a mark
  for (int i = 0; i < 5; ++i) Join(proto::ROLE_CLIENT);
  EXPECT_GT(MarkOf(Cluster()).version(), memory.newest.version());
  ExpectRefused(Report(memory).status());  // also when it already serves
  ExpectRefused(service_->ListTables({}).status());
}

TEST_F(ServiceEpochsTest, AClientThatHasSeenMoreIsProof) {
  Player memory = Enter(proto::ROLE_MEMORY);
  Player client = Enter(proto::ROLE_CLIENT);
  Copy("older.db");
  Restart();
  client.newest = MarkOf(Cluster());
  PutBack("older.db");
  Start();
  EXPECT_TRUE(Report(memory).ok());
  EXPECT_TRUE(service_->ListTables({}).ok());
  proto::GetTableRequest request;
  request.set_name("date");
  SetMark(request, client.newest);
  ExpectRefused(service_->GetTable(request).status());
  ExpectRefused(service_->ListTables({}).status());
}

TEST_F(ServiceEpochsTest, UntilEveryMemoryServerHasReportedNothingIsServedOrReleased) {
  Player first = Enter(proto::ROLE_MEMORY), second = Enter(proto::ROLE_MEMORY);
  Player client = Enter(proto::ROLE_CLIENT);
  first.held.push_back(*Begin(client.id, "date"));
  proto::LeaveRequest leave;
  leave.set_id(client.id);
  ASSERT_TRUE(ProvenLeave(leave).ok());  // so that its load's memory is to be released
  Start();
  EXPECT_TRUE(service_->AwaitsMembers());
  auto reply = Report(first);
  ASSERT_TRUE(reply.ok());
  EXPECT_THAT(reply->release(), IsEmpty());
  EXPECT_EQ(MarkOf(*reply).epoch(), 0u) << "a mark of an older store would later count against the newer";
  EXPECT_EQ(TryJoin(proto::ROLE_CLIENT).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Drop("date").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Report(second).ok());
  EXPECT_FALSE(service_->AwaitsMembers());
  EXPECT_THAT(Report(first)->release(), SizeIs(1));

  Start();
  EXPECT_TRUE(Report(first).ok());
  clock_.AdvanceMs(2'999);
  EXPECT_TRUE(service_->AwaitsMembers());
  clock_.AdvanceMs(1);  // a lost server delays others by a lease at most
  EXPECT_FALSE(service_->AwaitsMembers());
  EXPECT_TRUE(service_->GetCluster({}).ok());
}

TEST_F(ServiceEpochsTest, AStoreThatListsNoMemoryServerGivesOthersTimeToReport) {
  EXPECT_FALSE(service_->AwaitsMembers()) << "a new one";
  Start();
  EXPECT_TRUE(service_->AwaitsMembers());
  clock_.AdvanceMs(500);
  EXPECT_FALSE(service_->AwaitsMembers());
}

TEST_F(ServiceEpochsTest, AcceptingAnOlderStoreGivesUpWhatTheNewerHad) {
  Player first = Enter(proto::ROLE_MEMORY), second = Enter(proto::ROLE_MEMORY);
  Player client = Enter(proto::ROLE_CLIENT);
  Load(client, "date", first);
  Load(client, "part", second);
  first.held.push_back(CreateRecords(client.id, first.id));
  Load(client, "kept", second);
  Copy("older.db");
  Restart();
  ASSERT_TRUE(Drop("part").ok());
  second.held.erase(second.held.begin());  // it was released
  const uint64_t lost = Load(client, "lost", first);
  Player third = Enter(proto::ROLE_MEMORY);
  ASSERT_TRUE(Report(first).ok());
  ASSERT_TRUE(Report(second).ok());
  PutBack("older.db");
  for (int i = 0; i < 3; ++i) Start();  // refused starts, which the newer store does not know either
  ExpectRefused(Report(first).status());

  Start({.accept_older_store = true});
  EXPECT_TRUE(Report(first).ok());
  EXPECT_TRUE(Report(second).ok());
  EXPECT_EQ(service_->ListTables({}).status().code(), absl::StatusCode::kUnavailable)
      << "also others may come";
  EXPECT_EQ(Report(third).status().code(), absl::StatusCode::kNotFound);
  clock_.AdvanceMs(2'000);
  EXPECT_TRUE(Report(first).ok());
  EXPECT_TRUE(Report(second).ok());
  clock_.AdvanceMs(1'000);
  // `part` has lost its memory; `stock` may have grown into memory that the store does not list.
  EXPECT_THAT(Tables(), ElementsAre("date", "kept"));
  EXPECT_THAT(Report(first)->release(), testing::Contains(lost));
  const std::vector<std::string> reported = Reported();
  EXPECT_THAT(reported, testing::Contains(HasSubstr("part")));
  EXPECT_THAT(reported, testing::Contains(HasSubstr("stock")));
  EXPECT_GT(Join(proto::ROLE_MEMORY), third.id) << "ids are not used again";
  Player loader = Enter(proto::ROLE_CLIENT);
  EXPECT_GT(*Begin(loader.id, "new"), lost);

  // Abandoned state proves nothing later; commits since then do.
  Copy("accepted.db");
  Restart();
  EXPECT_TRUE(Report(first).ok());
  Player stray = client;
  stray.newest.set_epoch(2);
  stray.newest.set_version(1'000);
  EXPECT_TRUE(Report(stray).ok() || absl::IsNotFound(Report(stray).status()));
  EXPECT_THAT(Tables(), ElementsAre("date", "kept"));
  PutBack("accepted.db", "given_up.db");
  Start();
  ExpectRefused(Report(first).status());
}

TEST_F(ServiceEpochsTest, MembersOfAnotherStoreAreTurnedAwayAlone) {
  Player memory = Enter(proto::ROLE_MEMORY);
  Player stranger = memory;
  stranger.newest.set_store(78);
  EXPECT_EQ(Report(stranger).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Report(memory).ok());
  proto::ListTablesRequest request;
  SetMark(request, stranger.newest);
  EXPECT_EQ(service_->ListTables(request).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(service_->ListTables({}).ok());
  Start({.accept_older_store = true});
  EXPECT_EQ(Report(stranger).status().code(), absl::StatusCode::kFailedPrecondition)
      << "NOT_FOUND would end it, and with it its data";
}

// The acceptance is stored, so its effects must not depend on the option of later starts.
TEST_F(ServiceEpochsTest, LostTablesAreGivenUpAlsoAfterARestart) {
  Player first = Enter(proto::ROLE_MEMORY), second = Enter(proto::ROLE_MEMORY);
  const Player client = Enter(proto::ROLE_CLIENT);
  Load(client, "date", first);
  Load(client, "part", second);
  Copy("older.db");
  Restart();
  ASSERT_TRUE(Drop("part").ok());
  second.held.clear();
  ASSERT_TRUE(Report(first).ok());
  ASSERT_TRUE(Report(second).ok());
  PutBack("older.db");
  for (int i = 0; i < 2; ++i) Start();
  Start({.accept_older_store = true});  // and ends before any server has reported
  Start();
  ASSERT_TRUE(Report(first).ok());
  ASSERT_TRUE(Report(second).ok());
  EXPECT_THAT(Tables(), ElementsAre("date"));

  // A mark from after the acceptance ends that: memory of ended loads is normal.
  ASSERT_TRUE(Report(second).ok());
  Player loader = Enter(proto::ROLE_CLIENT);
  CreateRecords(loader.id, first.id);
  second.held.push_back(*Begin(loader.id, "new"));
  ASSERT_TRUE(Abort(second.held.back()).ok());
  ASSERT_TRUE(Report(second).ok());
  EXPECT_THAT(Tables(), ElementsAre("date", "stock"));
}

// A mistyped --store would make a new one, which has nothing to give up.
TEST_F(ServiceEpochsTest, ANewStoreIsNoOlderOne) {
  auto store = OpenEmbeddedStore(folder_.File("mistyped.db"), {"test", "shm", 78});
  ASSERT_TRUE(store.ok()) << store.status();
  const auto service = Service::Open(*std::move(store), clock_, {.accept_older_store = true});
  EXPECT_EQ(service.status().code(), absl::StatusCode::kFailedPrecondition) << service.status();
}

TEST_F(ServiceEpochsTest, AMemberOfAnotherStoreEndsNobodysMembership) {
  Player memory = Enter(proto::ROLE_MEMORY);
  proto::LeaveRequest leave;
  leave.set_id(memory.id);
  proto::StoreMark other = memory.newest;
  other.set_store(78);
  SetMark(leave, other);
  EXPECT_EQ(ProvenLeave(leave).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Report(memory).ok());
}

TEST_F(ServiceEpochsTest, AStandstillOfTheCatalogLengthensTheWaitForMemoryServers) {
  Player memory = Enter(proto::ROLE_MEMORY);
  Start();
  service_->Pulse();
  clock_.AdvanceMs(10'000);
  EXPECT_TRUE(service_->AwaitsMembers()) << "its report may have waited unheard";
  service_->Pulse();
  EXPECT_TRUE(service_->AwaitsMembers());
  ASSERT_TRUE(Report(memory).ok());
  EXPECT_FALSE(service_->AwaitsMembers());
}

TEST_F(ServiceEpochsTest, ManyStartsKeepTheStoreSmall) {
  Player memory = Enter(proto::ROLE_MEMORY);
  const proto::StoreMark long_ago = memory.newest;
  for (int i = 0; i < 70; ++i) Start();
  EXPECT_TRUE(Report(memory).ok());
  EXPECT_EQ(memory.newest.epoch(), 71u);
  memory.newest = long_ago;
  EXPECT_TRUE(Report(memory).ok()) << "older than all that is kept";
  service_.reset();
  auto store = OpenEmbeddedStore(folder_.File("catalog.db"), {"test", "shm"});
  EXPECT_EQ((*store)->Load()->epochs.size(), 64u);
}

}  // namespace
}  // namespace nam::catalog
