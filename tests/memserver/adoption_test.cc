#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catalog/attach_over_fabric.h"
#include "catalog/missing_servers.h"
#include "catalog/server.h"
#include "catalog/server_ids.h"
#include "memserver/server.h"
#include "memserver/start_over_fabric.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/temp_folder.h"
#include "tests/memserver/server_fixture.h"

namespace nam::memserver {
namespace {

using testing::HasSubstr;

/// A catalog, and memory servers with data directories that start again, in one process.
class AdoptionTest : public testing::Test {
 protected:
  AdoptionTest() {
    catalog_ = StartCatalog("catalog.db");
    client_ = Attach();
  }

  std::unique_ptr<catalog::CatalogServer> StartCatalog(const std::string& store, uint32_t lease_ms = 1'500) {
    auto catalog = catalog::CatalogServer::Start({.store_path = folder_.File(store),
                                                  .fabric = fabric::Kind::kTcp,
                                                  .secret = kSecret,
                                                  .lease_ms = lease_ms});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return *std::move(catalog);
  }
  absl::StatusOr<std::unique_ptr<MemoryServer>> TryStart(const std::string& directory) {
    return StartOverFabric({.catalog = {catalog_->address(), kSecret},
                            .memory_bytes = 8 * kMiB,
                            .region_bytes = kMiB,
                            .data_directory = directory.empty() ? "" : folder_.File(directory)},
                           &Open);
  }
  std::unique_ptr<MemoryServer> Start(const std::string& directory) {
    auto server = TryStart(directory);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<catalog::Attachment> Attach() {
    auto attachment = catalog::AttachOverFabric({.catalog = {catalog_->address(), kSecret}}, &Open);
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    return *std::move(attachment);
  }
  static absl::StatusOr<std::unique_ptr<fabric::Fabric>> Open(const fabric::FabricOptions& options) {
    return std::make_unique<fabric::FakeFabric>(options.kind);
  }
  /// Loads a table of a megabyte there, up to its commit; returns its allocation.
  AllocationId Load(const MemoryServer& server, const std::string& name, bool seal = true,
                    bool commit = true) {
    const AllocationId load = *client_->catalog().BeginLoad(client_->member(), name, false);
    EXPECT_TRUE(client_->Allocate(server.id(), load, kMiB).ok());
    EXPECT_TRUE(!seal || client_->Seal(server.id(), load, kMiB).ok());
    proto::Table table;
    table.set_name(name);
    table.set_allocation(load.value());
    proto::ServerUsage& usage = *table.add_usage();
    usage.set_server(server.storage().value());
    usage.set_bytes(kMiB);
    usage.set_blocks(1);
    EXPECT_TRUE(!commit || client_->catalog().CommitLoad(table).ok());
    return load;
  }
  std::vector<catalog::MissingServer> MissingOf(const std::string& table) {
    return catalog::MissingServersOf(**client_->catalog().GetTable(table), *client_->catalog().GetCluster());
  }
  bool HasFile(const std::string& directory, AllocationId allocation) {
    return std::filesystem::exists(File(directory, allocation));
  }
  std::string File(const std::string& directory, AllocationId allocation) {
    return folder_.File(directory) + "/allocation-" + std::to_string(allocation.value()) + ".sealed";
  }
  template <typename Condition>
  static bool Becomes(Condition condition) {
    const Deadline deadline = RealClock().After(60'000'000);
    while (!condition()) {
      if (RealClock().Passed(deadline)) return false;
      RealClock().SleepUntil(RealClock().After(5'000));
    }
    return true;
  }

  const TempFolder folder_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::unique_ptr<catalog::Attachment> client_;
};

TEST_F(AdoptionTest, TheNextMemberHasTheStorageIdAndTheTables) {
  auto first = Start("a");
  const MemoryServerId id = first->id(), storage = first->storage();
  EXPECT_NE(id, storage);
  Load(*first, "t");
  EXPECT_EQ((*client_->Lookup(storage, false))->member, id);
  first.reset();
  ASSERT_EQ(MissingOf("t").size(), 1u);
  EXPECT_TRUE(client_->Lookup(storage, true).status().message().find("is missing") != std::string::npos ||
              client_->Buried(id, true));
  const auto second = Start("a");
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second->id(), id);
  EXPECT_EQ(second->storage(), storage);
  EXPECT_EQ(second->used_bytes(), kMiB);
  EXPECT_TRUE(MissingOf("t").empty());
  // This process finds it by the storage id, and never again by the former member.
  EXPECT_TRUE(client_->Buried(id, true));
  const auto regions = client_->Lookup(storage, false);
  ASSERT_TRUE(regions.ok()) << regions.status();
  EXPECT_EQ((*regions)->member, second->id());
  EXPECT_FALSE(client_->Lookup(id, false).ok());
}

TEST_F(AdoptionTest, AServerWithoutADirectoryGoesByItsOwnId) {
  const auto server = Start("");
  EXPECT_EQ(server->id(), server->storage());
  Load(*server, "t");
  EXPECT_TRUE(MissingOf("t").empty());
}

TEST_F(AdoptionTest, OnlyTheOwnerOfALoadSealsIt) {
  const auto server = Start("a");
  const AllocationId load = Load(*server, "t", /*seal=*/false, /*commit=*/false);
  const auto other = Attach();
  const absl::Status refused = other->Seal(server->id(), load, kMiB);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not a load in progress of member"));
  EXPECT_FALSE(HasFile("a", load));
  EXPECT_TRUE(client_->Seal(server->id(), load, kMiB).ok());
  EXPECT_TRUE(HasFile("a", load));
  ASSERT_TRUE(client_->catalog().AbortLoad(load).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Seal(server->id(), load, kMiB)));
  EXPECT_TRUE(Becomes([&] { return !HasFile("a", load); }));
}

TEST_F(AdoptionTest, ATablesEndIsItsFilesEnd) {
  const auto server = Start("a");
  const AllocationId load = Load(*server, "t");
  EXPECT_TRUE(HasFile("a", load));
  ASSERT_TRUE(client_->catalog().DropTable("t").ok());
  EXPECT_TRUE(Becomes([&] { return !HasFile("a", load); }));
}

TEST_F(AdoptionTest, MemoryIsInUseUntilItsFileIsRemoved) {
  const auto server = Start("a");
  const AllocationId load = Load(*server, "t"), other = Load(*server, "other");
  // A disk that refuses: a folder is not unlinked.
  const std::string file = File("a", load);
  ASSERT_TRUE(std::filesystem::remove(file) && std::filesystem::create_directory(file));
  ASSERT_TRUE(client_->catalog().DropTable("t").ok());
  ASSERT_TRUE(client_->catalog().DropTable("other").ok());
  EXPECT_TRUE(client_->Release(server->id(), load).ok());
  EXPECT_TRUE(client_->Release(server->id(), other).ok());
  EXPECT_FALSE(HasFile("a", other));
  client_.reset();  // has closed both
  client_ = Attach();
  const AllocationId all = *client_->catalog().BeginLoad(client_->member(), "all", false);
  const auto allocates_all = [&] { return client_->Allocate(server->id(), all, 7 * kMiB + kMiB / 2).ok(); };
  EXPECT_FALSE(allocates_all()) << "a later table must not lie where two files would say so";
  ASSERT_TRUE(std::filesystem::remove(file));
  EXPECT_TRUE(Becomes(allocates_all)) << "the renewals try again";
}

TEST_F(AdoptionTest, AFileGoesOnceTheCatalogSaysThatItsAllocationIsOver) {
  auto first = Start("a");
  const AllocationId dropped = Load(*first, "dropped"),
                     under_way = Load(*first, "under_way", true, /*commit=*/false);
  first.reset();
  ASSERT_TRUE(client_->catalog().DropTable("dropped").ok());
  EXPECT_TRUE(HasFile("a", dropped));
  const auto second = Start("a");
  EXPECT_TRUE(Becomes([&] { return !HasFile("a", dropped); }));
  EXPECT_TRUE(HasFile("a", under_way));
}

TEST_F(AdoptionTest, ATableThatWasNotSealedIsMissedByName) {
  auto first = Start("a");
  Load(*first, "sealed");
  Load(*first, "unsealed", /*seal=*/false);
  first.reset();
  const auto second = Start("a");
  EXPECT_TRUE(MissingOf("sealed").empty());
  ASSERT_EQ(MissingOf("unsealed").size(), 1u);
  EXPECT_THAT(MissingOf("unsealed")[0].lost, HasSubstr(folder_.File("a")));
}

TEST_F(AdoptionTest, AnotherStoresDirectoryIsRefused) {
  Start("a").reset();
  catalog_ = StartCatalog("other.db");
  EXPECT_THAT(std::string(TryStart("a").status().message()), HasSubstr("on another catalog store"));
}

TEST_F(AdoptionTest, ACopyOfADirectoryInUseIsRefused) {
  catalog_ = StartCatalog("patient.db", 9'000);  // a busy host's server must not look dead
  const auto first = Start("a");
  std::filesystem::copy(folder_.File("a"), folder_.File("b"));
  std::filesystem::permissions(folder_.File("b"), std::filesystem::perms::owner_all);
  const auto second = TryStart("b");
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << "it is not tried again and again";
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("two copies of a data directory"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder_.File("a")));
}

TEST_F(AdoptionTest, AFileUnderAHigherNumberIsMissedByItsTableAlone) {
  auto first = Start("a");
  const AllocationId renamed = Load(*first, "renamed");
  Load(*first, "other");
  first.reset();
  const std::string file = File("a", renamed), elsewhere = File("a", AllocationId(1'000'000));
  std::filesystem::rename(file, elsewhere);
  auto second = Start("a");
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(MissingOf("other").empty());
  ASSERT_EQ(MissingOf("renamed").size(), 1u);
  EXPECT_THAT(MissingOf("renamed")[0].lost, HasSubstr(elsewhere));
  EXPECT_THAT(MissingOf("renamed")[0].lost, HasSubstr("rename it to `allocation-"));
  second.reset();
  std::filesystem::rename(elsewhere, file);
  second = Start("a");
  EXPECT_TRUE(MissingOf("renamed").empty());
}

}  // namespace
}  // namespace nam::memserver
