#include "catalog/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "tests/catalog/temp_folder.h"

namespace nam::catalog {
namespace {

const ClusterIdentity kIdentity = {"test", "shm"};

std::unique_ptr<Store> MustOpen(const std::string& path) {
  auto store = OpenEmbeddedStore(path, kIdentity);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

StoredState MustLoad(Store& store) {
  auto state = store.Load();
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() ? *std::move(state) : StoredState();
}

Mutation Next(const StoredState& state) {
  Mutation mutation;
  mutation.version = state.version + 1;
  mutation.next_member = state.next_member;
  mutation.next_allocation = state.next_allocation;
  return mutation;
}

proto::Member SomeMember(uint32_t id) {
  proto::Member member;
  member.set_id(id);
  member.set_role(proto::ROLE_MEMORY);
  member.set_control_address("127.0.0.1:1");
  member.set_alive(true);
  return member;
}

proto::Table SomeTable(const std::string& name, uint64_t allocation, size_t padding_bytes = 0) {
  proto::Table table;
  table.set_name(name);
  table.set_allocation(allocation);
  table.set_rows(17);
  table.add_partitions()->add_head(0x0001'0000'0000'1000);
  table.set_sort_column(std::string(padding_bytes, 'x'));
  return table;
}

TEST(EmbeddedStoreTest, KeepsEverythingAcrossARestart) {
  const TempFolder folder;
  {
    const auto store = MustOpen(folder.File("catalog.db"));
    Mutation mutation = Next(MustLoad(*store));
    mutation.next_member = 8;
    mutation.next_allocation = 9;
    mutation.put_members.push_back(SomeMember(7));
    mutation.put_loads.push_back({AllocationId(8), MemberId(7), "part", true});
    mutation.put_groups.push_back({5, MemberId(7)});
    mutation.put_tables.push_back(SomeTable("date", 3));
    ASSERT_TRUE(store->Apply(mutation).ok());
  }
  const auto store = MustOpen(folder.File("catalog.db"));
  const StoredState state = MustLoad(*store);
  EXPECT_EQ(state.identity.name, "test");
  EXPECT_EQ(state.identity.fabric, "shm");
  EXPECT_EQ(state.version, 2u);
  EXPECT_EQ(state.next_member, 8u);
  EXPECT_EQ(state.next_allocation, 9u);
  ASSERT_EQ(state.groups.size(), 1u);
  EXPECT_EQ(state.groups[0].group, 5u);
  EXPECT_EQ(state.groups[0].owner, MemberId(7));
  ASSERT_EQ(state.members.size(), 1u);
  EXPECT_EQ(state.members[0].SerializeAsString(), SomeMember(7).SerializeAsString());
  ASSERT_EQ(state.loads.size(), 1u);
  EXPECT_EQ(state.loads[0].allocation, AllocationId(8));
  EXPECT_EQ(state.loads[0].owner, MemberId(7));
  EXPECT_EQ(state.loads[0].table, "part");
  EXPECT_TRUE(state.loads[0].replace);
  ASSERT_EQ(state.tables.size(), 1u);
  EXPECT_EQ(state.tables[0].SerializeAsString(), SomeTable("date", 3).SerializeAsString());
}

TEST(EmbeddedStoreTest, AnExistingStoreKeepsItsIdentity) {
  const TempFolder folder;
  MustOpen(folder.File("catalog.db")).reset();
  const auto again = OpenEmbeddedStore(folder.File("catalog.db"), {"other", "tcp"});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(MustLoad(**again).identity.name, "test");
  EXPECT_EQ(MustLoad(**again).identity.fabric, "shm");
}

TEST(EmbeddedStoreTest, AMutationIsAllOrNothing) {
  const TempFolder folder;
  const auto store = MustOpen(folder.File("catalog.db"));
  Mutation first = Next(MustLoad(*store));
  first.put_tables.push_back(SomeTable("date", 3));
  ASSERT_TRUE(store->Apply(first).ok());
  // The second table claims the allocation of the first: the member before it must not stay either.
  Mutation second = Next(MustLoad(*store));
  second.put_members.push_back(SomeMember(1));
  second.put_tables.push_back(SomeTable("part", 3));
  EXPECT_FALSE(store->Apply(second).ok());
  const StoredState state = MustLoad(*store);
  EXPECT_EQ(state.version, first.version);
  EXPECT_TRUE(state.members.empty());
  EXPECT_EQ(state.tables.size(), 1u);
  // A load cannot outlive its owner.
  Mutation third = Next(state);
  third.put_loads.push_back({AllocationId(5), MemberId(99), "part", false});
  EXPECT_FALSE(store->Apply(third).ok());
  EXPECT_TRUE(MustLoad(*store).loads.empty());
}

TEST(EmbeddedStoreTest, ReplacesAndDeletes) {
  const TempFolder folder;
  const auto store = MustOpen(folder.File("catalog.db"));
  Mutation first = Next(MustLoad(*store));
  first.put_members.push_back(SomeMember(1));
  first.put_loads.push_back({AllocationId(4), MemberId(1), "date", true});
  first.put_tables.push_back(SomeTable("date", 3));
  ASSERT_TRUE(store->Apply(first).ok());
  Mutation second = Next(MustLoad(*store));
  second.put_tables.push_back(SomeTable("date", 4));
  second.delete_loads.push_back(4);
  second.delete_members.push_back(1);
  ASSERT_TRUE(store->Apply(second).ok());
  StoredState state = MustLoad(*store);
  EXPECT_TRUE(state.members.empty());
  EXPECT_TRUE(state.loads.empty());
  ASSERT_EQ(state.tables.size(), 1u);
  EXPECT_EQ(state.tables[0].allocation(), 4u);
  Mutation third = Next(state);
  third.delete_tables.push_back("date");
  ASSERT_TRUE(store->Apply(third).ok());
  EXPECT_TRUE(MustLoad(*store).tables.empty());
}

TEST(EmbeddedStoreTest, RefusesAVersionThatIsNotTheNext) {
  const TempFolder folder;
  const auto store = MustOpen(folder.File("catalog.db"));
  Mutation mutation = Next(MustLoad(*store));
  ++mutation.version;
  mutation.put_members.push_back(SomeMember(1));
  EXPECT_EQ(store->Apply(mutation).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(MustLoad(*store).members.empty());
}

// Runs `body` in a child process, which must not return.
pid_t Fork(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

TEST(EmbeddedStoreTest, AKilledWriterLosesNothingThatWasCommitted) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  int committed_pipe[2];
  ASSERT_EQ(::pipe(committed_pipe), 0);
  const pid_t child = Fork([&] {
    auto store = OpenEmbeddedStore(path, kIdentity);
    if (!store.ok()) ::_exit(1);
    for (uint32_t i = 0;; ++i) {  // a table and its counter in one transaction, until killed
      Mutation mutation = Next(*(*store)->Load());
      mutation.next_allocation = i + 2;
      mutation.put_tables.push_back(SomeTable("t" + std::to_string(i), i + 1, 20'000));
      if (!(*store)->Apply(mutation).ok()) ::_exit(2);
      if (::write(committed_pipe[1], &i, sizeof(i)) != sizeof(i)) ::_exit(3);
    }
  });
  ::close(committed_pipe[1]);
  uint32_t last = 0;
  while (last < 20) ASSERT_EQ(::read(committed_pipe[0], &last, sizeof(last)), ssize_t{sizeof(last)});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (uint32_t next; ::read(committed_pipe[0], &next, sizeof(next)) == ssize_t{sizeof(next)};) last = next;
  ::close(committed_pipe[0]);

  const StoredState state = MustLoad(*MustOpen(path));
  // All that was reported, and at most the one transaction that was under way; never a part of one.
  EXPECT_GE(state.tables.size(), last + 1u);
  EXPECT_LE(state.tables.size(), last + 2u);
  EXPECT_EQ(state.version, state.tables.size() + 1);
  EXPECT_EQ(state.next_allocation, state.tables.size() + 1);
}

TEST(EmbeddedStoreTest, AnUncommittedTransactionIsDropped) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  MustOpen(path).reset();
  const pid_t child = Fork([&] {  // dies in the middle of a transaction, its pages already written
    sqlite3* database = nullptr;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) ::_exit(1);
    if (sqlite3_exec(database,
                     "PRAGMA cache_size = 1; BEGIN; UPDATE cluster SET version = 99;"
                     "INSERT INTO tables VALUES ('x', 1, 1, zeroblob(500000));",
                     nullptr, nullptr, nullptr) != SQLITE_OK) {
      ::_exit(2);
    }
    ::raise(SIGKILL);
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const StoredState state = MustLoad(*MustOpen(path));
  EXPECT_EQ(state.version, 1u);
  EXPECT_TRUE(state.tables.empty());
}

TEST(EmbeddedStoreTest, AFullDiskIsReportedAndSurvived) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  const auto store = MustOpen(path);
  Mutation small = Next(MustLoad(*store));
  small.put_tables.push_back(SomeTable("small", 1));
  ASSERT_TRUE(store->Apply(small).ok());

  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 200'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  Mutation large = Next(MustLoad(*store));
  large.put_tables.push_back(SomeTable("large", 2, 2'000'000));
  const absl::Status full = store->Apply(large);
  const StoredState during = MustLoad(*store);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);

  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_NE(std::string(full.message()).find(path), std::string::npos) << full;
  EXPECT_EQ(during.version, small.version);
  EXPECT_EQ(during.tables.size(), 1u);
  EXPECT_TRUE(store->Apply(large).ok());  // with room again
  EXPECT_EQ(MustLoad(*store).tables.size(), 2u);
}

TEST(EmbeddedStoreTest, ASecondOpenerIsRefused) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  const auto store = MustOpen(path);
  const auto second = OpenEmbeddedStore(path, kIdentity);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(second.status().message()).find("in use"), std::string::npos) << second.status();
  EXPECT_EQ(MustLoad(*store).version, 1u);
}

TEST(EmbeddedStoreTest, ForeignFilesAreRefusedAndLeftAsTheyWere) {
  const TempFolder folder;
  const std::string text = folder.File("notes.txt");
  const std::string content(5'000, 'n');
  std::ofstream(text) << content;
  const auto opened_text = OpenEmbeddedStore(text, kIdentity);
  EXPECT_EQ(opened_text.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(opened_text.status().message()).find("not a catalog store"), std::string::npos);
  std::ifstream read(text);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(read), {}), content);

  std::ofstream(folder.File("short")) << "abc";
  EXPECT_EQ(OpenEmbeddedStore(folder.File("short"), kIdentity).status().code(),
            absl::StatusCode::kFailedPrecondition);

  const std::string other = folder.File("other.db");
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(other.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "CREATE TABLE t (a)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ(OpenEmbeddedStore(other, kIdentity).status().code(), absl::StatusCode::kFailedPrecondition);

  const std::string newer = folder.File("newer.db");
  MustOpen(newer).reset();
  ASSERT_EQ(sqlite3_open(newer.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version = 77", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto opened_newer = OpenEmbeddedStore(newer, kIdentity);
  EXPECT_EQ(opened_newer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(opened_newer.status().message()).find("schema 77"), std::string::npos);

  EXPECT_EQ(OpenEmbeddedStore(folder.File("no/such/folder"), kIdentity).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(EmbeddedStoreTest, AStoreOfTheFirstVersionGetsGroups) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  {
    const auto store = MustOpen(path);
    Mutation mutation = Next(MustLoad(*store));
    mutation.put_members.push_back(SomeMember(7));
    ASSERT_TRUE(store->Apply(mutation).ok());
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(
                database,
                "DROP TABLE multicast_groups; ALTER TABLE loads DROP COLUMN extends; PRAGMA user_version = 1",
                nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  for (const size_t groups : {0u, 1u}) {  // upgraded once, and then as new
    const auto store = MustOpen(path);
    const StoredState state = MustLoad(*store);
    EXPECT_EQ(state.members.size(), 1u);
    EXPECT_EQ(state.groups.size(), groups);
    Mutation mutation = Next(state);
    mutation.put_groups.push_back({1, MemberId(7)});
    ASSERT_TRUE(store->Apply(mutation).ok());
  }
}

TEST(EmbeddedStoreTest, ADamagedFileIsRefused) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  {
    const auto store = MustOpen(path);
    for (uint64_t i = 1; i < 20; ++i) {
      Mutation mutation = Next(MustLoad(*store));
      mutation.put_tables.push_back(SomeTable("t" + std::to_string(i), i, 10'000));
      ASSERT_TRUE(store->Apply(mutation).ok());
    }
  }
  const auto bytes = std::filesystem::file_size(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4'096);
  file << std::string(bytes / 2, '\xA5');
  file.close();
  auto opened = OpenEmbeddedStore(path, kIdentity);
  const absl::Status status = opened.ok() ? (*opened)->Load().status() : opened.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(std::string(status.message()).find("damaged"), std::string::npos) << status;
}

}  // namespace
}  // namespace nam::catalog
