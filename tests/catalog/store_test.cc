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
#include <sstream>
#include <string>

#include "base/exhausted.h"
#include "base/random.h"
#include "catalog/restored_store.h"
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

proto::FabricConstants SomeConstants(double read_byte_ps) {
  proto::FabricConstants constants;
  constants.set_fabric("shm");
  constants.add_constants()->set_name("read_byte_ps");
  constants.mutable_constants(0)->set_value(read_byte_ps);
  return constants;
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
    mutation.put_epochs.push_back({1, 11, 12, 2, true});
    mutation.put_constants.push_back(SomeConstants(100));
    ASSERT_TRUE(store->Apply(mutation).ok());
    Mutation newer = Next(MustLoad(*store));
    newer.put_constants.push_back(SomeConstants(200));
    newer.put_saved_records = ~uint64_t{0};
    ASSERT_TRUE(store->Apply(newer).ok());
  }
  const auto store = MustOpen(folder.File("catalog.db"));
  const StoredState state = MustLoad(*store);
  EXPECT_EQ(state.identity.name, "test");
  ASSERT_EQ(state.epochs.size(), 1u);
  EXPECT_EQ(state.epochs[0].number, 1u);
  EXPECT_EQ(state.epochs[0].id_high, 11u);
  EXPECT_EQ(state.epochs[0].id_low, 12u);
  EXPECT_EQ(state.epochs[0].first_version, 2u);
  EXPECT_TRUE(state.epochs[0].accepts_older);
  EXPECT_EQ(state.identity.fabric, "shm");
  ASSERT_EQ(state.constants.size(), 1u) << "a newer set takes the place of the older one";
  EXPECT_EQ(state.constants[0].SerializeAsString(), SomeConstants(200).SerializeAsString());
  EXPECT_EQ(state.saved_records, ~uint64_t{0});
  EXPECT_EQ(state.version, 3u);
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
  // Everything reported, and at most the one transaction in progress; never a part of one.
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
                     "INSERT INTO tables VALUES ('x', 1, 1, zeroblob(500000), 0);",
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
  EXPECT_EQ(full.GetPayload(kExhaustedPayload), "disk") << full;  // what SQL makes 53100 of
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

// In a directory where others may create files, the name may belong to another user.
TEST(EmbeddedStoreTest, ALinkIsRefusedAndItsTargetLeftAsItWas) {
  const TempFolder folder;
  const std::string target = folder.File("target.db"), link = folder.File("catalog.db");
  ASSERT_TRUE(OpenEmbeddedStore(target, kIdentity).ok());
  ASSERT_EQ(::chmod(target.c_str(), 0644), 0);
  std::filesystem::create_symlink(target, link);
  EXPECT_EQ(OpenEmbeddedStore(link, kIdentity).status().code(), absl::StatusCode::kFailedPrecondition);
  struct stat info;
  ASSERT_EQ(::stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  ASSERT_TRUE(OpenEmbeddedStore(target, kIdentity).ok());
  ASSERT_EQ(::stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
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

  for (const int schema : {5, 77}) {  // of an older program, and of a newer one
    const std::string versioned = folder.File("schema.db");
    std::filesystem::remove(versioned);
    MustOpen(versioned).reset();
    ASSERT_EQ(sqlite3_open(versioned.c_str(), &database), SQLITE_OK);
    const std::string set = "PRAGMA user_version = " + std::to_string(schema);
    ASSERT_EQ(sqlite3_exec(database, set.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    const auto opened = OpenEmbeddedStore(versioned, kIdentity);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(std::string(opened.status().message()).find("schema " + std::to_string(schema)),
              std::string::npos);
  }

  EXPECT_EQ(OpenEmbeddedStore(folder.File("no/such/folder"), kIdentity).status().code(),
            absl::StatusCode::kFailedPrecondition);
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

// A store in which every table has rows, and pages that were used and are free again.
void MakeStoreWithEverything(const std::string& path) {
  const auto store = MustOpen(path);
  Mutation first = Next(MustLoad(*store));
  first.next_member = 30;
  first.next_allocation = 60;
  for (uint32_t i = 1; i <= 20; ++i) {
    first.put_members.push_back(SomeMember(i));
    first.put_loads.push_back({AllocationId(30 + i), MemberId(i), "load" + std::to_string(i), i % 2 == 0});
    first.put_groups.push_back({i, MemberId(i)});
    first.put_tables.push_back(SomeTable("table" + std::to_string(i), i, 300 * i));
    first.put_epochs.push_back({i, 11 * i, 12 * i, i, i % 3 == 0});
  }
  ASSERT_TRUE(store->Apply(first).ok());
  Mutation second = Next(MustLoad(*store));
  second.delete_tables = {"table19", "table20"};
  second.delete_loads = {31, 32};
  ASSERT_TRUE(store->Apply(second).ok());
}

std::string TextOf(const StoredState& state) {
  std::ostringstream out;
  out << state.identity.name << state.identity.fabric << state.identity.store << ' ' << state.version << ' '
      << state.next_member << ' ' << state.next_allocation << '\n';
  for (const proto::Member& member : state.members) out << member.SerializeAsString() << '\n';
  for (const proto::Table& table : state.tables) out << table.SerializeAsString() << '\n';
  for (const LoadRecord& load : state.loads) {
    out << load.allocation.value() << ' ' << load.owner.value() << load.table << load.replace
        << load.extends.value() << '\n';
  }
  for (const GroupRecord& group : state.groups) out << group.group << ' ' << group.owner.value() << '\n';
  for (const EpochRecord& epoch : state.epochs) {
    out << epoch.number << ' ' << epoch.id_high << ' ' << epoch.id_low << ' ' << epoch.first_version
        << epoch.accepts_older << '\n';
  }
  return out.str();
}

absl::StatusOr<StoredState> TryLoad(const std::string& path) {
  auto store = OpenEmbeddedStore(path, kIdentity);
  if (!store.ok()) return store.status();
  return (*store)->Load();
}

TEST(EmbeddedStoreTest, NoFlippedBitChangesWhatIsReadUnnoticed) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db"), flipped = folder.File("flipped.db");
  MakeStoreWithEverything(path);
  const std::string expected = TextOf(MustLoad(*MustOpen(path)));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  int noticed = 0;
  for (uint64_t seed = 0; seed < 240; ++seed) {
    RandomStream random(seed);
    std::string damaged = bytes;
    for (int64_t flips = random.Between(1, 4); flips > 0; --flips)
      damaged[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
    std::ofstream(flipped, std::ios::binary | std::ios::trunc) << damaged;
    const auto state = TryLoad(flipped);
    if (state.ok()) {
      EXPECT_EQ(TextOf(*state), expected) << "seed " << seed;
    } else {
      ++noticed;
    }
    for (const char* side : {"", "-wal", "-shm"}) std::filesystem::remove(flipped + side);
  }
  EXPECT_GT(noticed, 120);
}

// Errors that checksums of rows alone cannot detect.
TEST(EmbeddedStoreTest, RowsThatAreMissingOrOldAreNoticed) {
  const TempFolder folder;
  const std::string path = folder.File("catalog.db");
  MakeStoreWithEverything(path);
  const auto change = [&](const std::string& sql) {
    const std::string changed = folder.File("changed.db");
    std::filesystem::copy_file(path, changed, std::filesystem::copy_options::overwrite_existing);
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(changed.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
    return TryLoad(changed).status();
  };
  EXPECT_TRUE(change("SELECT 1").ok());
  for (const char* sql : {
           "DELETE FROM tables WHERE name = 'table7'",
           "DELETE FROM epochs WHERE number = 20",
           "UPDATE members SET alive = 0 WHERE id = 3",
           "UPDATE cluster SET next_allocation = 7",
           "DELETE FROM cluster",
           "DROP INDEX loads_by_member",
           "UPDATE tables SET name = 'other' WHERE name = 'table7'",
           "DELETE FROM loads WHERE allocation IN (40, 41)",
       }) {
    const absl::Status status = change(sql);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << sql << ": " << status;
  }
  // A row as it was before the last mutation.
  const std::string before = folder.File("before.db");
  std::filesystem::copy_file(path, before);
  {
    const auto store = MustOpen(path);
    Mutation mutation = Next(MustLoad(*store));
    mutation.put_tables.push_back(SomeTable("table5", 5, 9));
    mutation.put_tables.push_back(SomeTable("table6", 6, 9));
    ASSERT_TRUE(store->Apply(mutation).ok());
  }
  const absl::Status back = change("ATTACH '" + before +
                                   "' AS before; REPLACE INTO tables SELECT * FROM before.tables WHERE "
                                   "name = 'table5'");
  EXPECT_EQ(back.code(), absl::StatusCode::kDataLoss) << back;
  EXPECT_NE(std::string(back.message()).find("rows are missing"), std::string::npos) << back;
  EXPECT_EQ(std::string(back.message()).find("restore a copy"), std::string::npos) << back;
}

TEST(RestoredStoreTest, NoIdOfItsTablesIsGivenOutAgain) {
  const TempFolder folder;
  proto::Table one = SomeTable("one", 7), other = SomeTable("other", 9);
  other.set_version(1'000);
  other.mutable_partitions(0)->set_head(0, 0x0005'0000'0000'1000);
  other.add_retired()->add_allocations(8);
  const RestoredCluster cluster{
      .name = "test", .fabric = "shm", .tables = {one, other}, .directories = {{1, "/a"}, {6, "/b"}}};
  const auto made = MakeRestoredStore(folder.File("catalog.db"), cluster);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE(made->store, MakeRestoredStore(folder.File("second.db"), cluster)->store);
  const auto store = MustOpen(folder.File("catalog.db"));
  const StoredState state = MustLoad(*store);
  EXPECT_EQ(state.identity.store, made->store);
  EXPECT_EQ(state.next_allocation, 10u);
  EXPECT_EQ(state.next_member, 9u) << "behind the storage ids, and what stands for their former members";
  ASSERT_EQ(state.members.size(), 2u);
  EXPECT_EQ(state.members[1].storage(), 6u);
  EXPECT_EQ(state.members[1].data_directory(), "/b");
  EXPECT_FALSE(state.members[1].alive());
  ASSERT_EQ(state.tables.size(), 2u);
  EXPECT_EQ(state.tables[1].version(), state.version);
  EXPECT_EQ(state.tables[1].retired_size(), 0);
  EXPECT_TRUE(state.epochs.empty()) << "they begin with its first catalog";
}

}  // namespace
}  // namespace nam::catalog
