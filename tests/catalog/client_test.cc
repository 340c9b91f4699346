#include "catalog/client.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/process_limits.h"
#include "catalog/address.h"
#include "catalog/server.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/raw_socket.h"
#include "tests/catalog/temp_folder.h"

namespace nam::catalog {
namespace {

constexpr char kSecret[] = "correct horse battery staple";
constexpr int64_t kHangUs = 60'000'000;  // a hang guard

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    options_.store_path = folder_.File("catalog.db");
    options_.cluster_name = "test";
    options_.fabric = fabric::Kind::kTcp;
    options_.secret = kSecret;
    options_.lease_ms = 1'500;
  }

  void StartCatalog() {
    auto server = CatalogServer::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    options_.listen_address = server_->address();  // a restart listens on the same port
  }
  void StopCatalog() {
    server_->Shutdown(RealClock().After(1'000'000));
    server_.reset();
  }
  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect({options_.listen_address, kSecret, kHangUs});
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static proto::Member SomeClient() {
    proto::Member member;
    member.set_role(proto::ROLE_CLIENT);
    return member;
  }
  static proto::Table TableOf(AllocationId allocation, const std::string& name, uint64_t rows) {
    proto::Table table;
    table.set_name(name);
    table.set_allocation(allocation.value());
    table.set_rows(rows);
    return table;
  }

  const TempFolder folder_;
  CatalogServerOptions options_;
  std::unique_ptr<CatalogServer> server_;
};

TEST_F(ClientTest, NobodyThereIsSaidWithAddressAndHint) {
  const auto client = Client::Connect({"127.0.0.1:1", kSecret, kHangUs});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(client.status().message()),
            "cannot reach the catalog at 127.0.0.1:1: connection refused; is it running?");
  EXPECT_EQ(Client::Connect({"nonsense", kSecret}).status().code(), absl::StatusCode::kInvalidArgument);
}

/// gRPC would wait for ever for threads that it does not get.
TEST_F(ClientTest, WithoutAddressesForItsThreadsItSaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer maps more addresses than the limit leaves";
#endif
  StartCatalog();
  rlimit before, little;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  little = before;
  little.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (uint64_t{32} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const absl::Status refused = Client::Connect({options_.listen_address, kSecret, kHangUs}).status();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(IsProcessLimit(refused)) << refused;
  EXPECT_NE(refused.message().find("`ulimit -v`"), std::string::npos) << refused;
  EXPECT_TRUE(Client::Connect({options_.listen_address, kSecret, kHangUs}).ok());
}

TEST_F(ClientTest, AnotherSecretIsRefused) {
  StartCatalog();
  const auto client = Client::Connect({options_.listen_address, "guess", kHangUs});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(std::string(client.status().message()).find(options_.listen_address), std::string::npos)
      << client.status();
}

TEST_F(ClientTest, ALoadIsBegunCommittedReadAndDropped) {
  StartCatalog();
  const auto client = Connect();
  const auto cluster = client->GetCluster();
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster->name(), "test");
  EXPECT_EQ(cluster->fabric(), "tcp");
  EXPECT_EQ(cluster->lease_ms(), 1'500u);
  const proto::JoinReply joined = *client->Join(SomeClient());
  const MemberId member(joined.id());
  const auto allocation = client->BeginLoad(member, "date", false);
  ASSERT_TRUE(allocation.ok());
  const auto version = client->CommitLoad(TableOf(*allocation, "date", 5));
  ASSERT_TRUE(version.ok()) << version.status();
  const auto table = client->GetTable("date");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ((*table)->version(), *version);
  EXPECT_EQ((*client->GetTable("date")).get(), table->get());  // the cached object
  EXPECT_EQ(client->ListTables()->size(), 1u);

  // Another client replaces the table: that is noticed, and the old object stays valid for its holders.
  const auto other = Connect();
  const auto second = other->BeginLoad(member, "date", true);
  ASSERT_TRUE(other->CommitLoad(TableOf(*second, "date", 6)).ok());
  EXPECT_EQ((*client->GetTable("date"))->rows(), 6u);
  EXPECT_EQ((*table)->rows(), 5u);

  ASSERT_TRUE(other->DropTable("date").ok());
  const auto gone = client->GetTable("date");
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(gone.status().message()).find("`date`"), std::string::npos) << gone.status();
  EXPECT_TRUE(client->AbortLoad(*allocation).ok());
  EXPECT_EQ(client->Leave(member, "another's").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(client->Leave(member, joined.proof()).ok());
  EXPECT_EQ(client->Leave(member, joined.proof()).code(), absl::StatusCode::kNotFound);
}

/// Several tables by one call: what has changed since this client's last look, and what there is not.
TEST_F(ClientTest, TablesAreReadTogether) {
  StartCatalog();
  const auto client = Connect(), other = Connect();
  const MemberId member(client->Join(SomeClient())->id());
  const auto load = [&](const std::string& name, uint64_t rows) {
    const auto loaded = other->CommitLoad(TableOf(*other->BeginLoad(member, name, true), name, rows));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
  };
  load("date", 5);
  load("part", 6);
  const std::vector<std::string> names = {"date", "nothing", "part"};
  const auto first = *client->GetTables(names);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0]->rows(), 5u);
  EXPECT_EQ(first[1], nullptr);
  EXPECT_EQ(first[2]->rows(), 6u);
  load("part", 7);
  const auto second = *client->GetTables(names);
  EXPECT_EQ(second[0].get(), first[0].get()) << "the cached object";
  EXPECT_EQ(second[2]->rows(), 7u);
  EXPECT_EQ((*client->GetTable("part")).get(), second[2].get());
  ASSERT_TRUE(other->DropTable("date").ok());
  EXPECT_EQ((*client->GetTables(names))[0], nullptr);
  EXPECT_TRUE(client->GetTables({})->empty());
}

TEST_F(ClientTest, ALargeTableTravels) {
  options_.lease_ms = 60'000;  // no renewals, and the table takes its time
  StartCatalog();
  const auto client = Connect();
  const MemberId member(client->Join(SomeClient())->id());
  proto::Table table = TableOf(*client->BeginLoad(member, "wide", false), "wide", 1);
  for (int i = 0; i < 200'000; ++i) table.add_partitions()->set_rows(1'000'000 + i);
  for (int i = 0; i < 1'000'000; ++i) table.mutable_partitions(0)->add_head(0);
  ASSERT_GT(table.ByteSizeLong(), 8u << 20);  // beyond gRPC's default limit
  ASSERT_TRUE(client->CommitLoad(table).ok());
  EXPECT_EQ((*client->GetTable("wide"))->partitions_size(), 200'000);
}

TEST_F(ClientTest, ARestartLosesNothingAndTheCacheIsRevalidated) {
  StartCatalog();
  const auto client = Connect();
  const MemberId member(client->Join(SomeClient())->id());
  ASSERT_TRUE(client->CommitLoad(TableOf(*client->BeginLoad(member, "date", false), "date", 5)).ok());
  const auto open = client->BeginLoad(member, "part", false);
  const auto before = client->GetTable("date");
  StopCatalog();
  const auto during = client->GetTable("date");
  EXPECT_EQ(during.status().code(), absl::StatusCode::kUnavailable);
  StartCatalog();
  // The channel finds the server again by itself; a fresh connection does so at once.
  ASSERT_NE(Connect(), nullptr);
  absl::StatusOr<std::shared_ptr<const proto::Table>> after = absl::UnavailableError("not asked yet");
  const Deadline deadline = RealClock().After(kHangUs);
  while (absl::IsUnavailable(after.status()) && !RealClock().Passed(deadline))
    after = client->GetTable("date");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->get(), before->get());
  EXPECT_TRUE(client->CommitLoad(TableOf(*open, "part", 7)).ok());
}

TEST_F(ClientTest, AStoreOfAnotherFabricIsRefused) {
  StartCatalog();
  StopCatalog();
  options_.fabric = fabric::Kind::kShm;
  const auto server = CatalogServer::Start(options_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(server.status().message()).find("--fabric=tcp"), std::string::npos)
      << server.status();
  options_.fabric = fabric::Kind::kTcp;
  options_.cluster_name = "other";
  EXPECT_EQ(CatalogServer::Start(options_).status().code(), absl::StatusCode::kFailedPrecondition);
  options_.cluster_name = "test";
  options_.secret = "";
  EXPECT_EQ(CatalogServer::Start(options_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, ATakenPortIsRefusedWithTheReason) {
  StartCatalog();
  options_.store_path = folder_.File("other.db");
  const auto second = CatalogServer::Start(options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(second.status().message()).find("in use"), std::string::npos) << second.status();
}

TEST_F(ClientTest, GarbageOnThePortDisturbsNobody) {
  StartCatalog();
  const auto client = Connect();
  const uint16_t port = SplitAddress(options_.listen_address)->second;
  std::vector<std::thread> senders;
  for (uint32_t seed = 1; seed <= 3; ++seed) senders.emplace_back([=] { SendGarbage(port, seed, 40); });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(client->GetCluster().ok());
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(client->GetCluster().ok());
  EXPECT_NE(Connect(), nullptr);
}

TEST_F(ClientTest, AMembershipRenewsAndLeaves) {
  StartCatalog();
  const auto client = Connect();
  fabric::FakeFabric fabric;
  fabric::Progress renewals;
  Membership::Hooks hooks;
  hooks.before_renew = [](proto::RenewRequest& request) { request.set_used_bytes(99); };
  hooks.after_renew = [&](const proto::RenewReply&) { renewals.Advance(); };
  hooks.on_lost = [](absl::Status status) { ADD_FAILURE() << status; };
  auto membership = Membership::Join(*client, fabric, SomeClient(), hooks);
  ASSERT_TRUE(membership.ok());
  ASSERT_TRUE(renewals.WaitFor(4));  // more than one lease
  auto cluster = client->GetCluster();
  ASSERT_EQ(cluster->members_size(), 1);
  EXPECT_EQ(cluster->members(0).id(), (*membership)->id().value());
  EXPECT_EQ(cluster->members(0).used_bytes(), 99u);
  membership->reset();
  EXPECT_EQ(client->GetCluster()->members_size(), 0);
}

/// gRPC, but calls to one address end without an answer while it is stuck.
class StuckControlPlane final : public ControlPlane {
 public:
  std::string stuck_address;  // empty: all
  std::atomic<bool> stuck = false;
  std::atomic<bool> rejected = false;  // a firewall answers in the place of every address

  std::string host_name() const override { return GrpcControlPlane().host_name(); }
  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) override {
    return GrpcControlPlane().Serve(options);
  }
  std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string& secret) override {
    auto channel = GrpcControlPlane().Open(address, secret);
    if (!stuck_address.empty() && address != stuck_address) return channel;
    return std::make_unique<Channel>(std::move(channel), stuck);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return rejected || GrpcControlPlane().Refused(address, timeout_us);
  }

 private:
  class Channel final : public ControlChannel {
   public:
    Channel(std::unique_ptr<ControlChannel> channel, const std::atomic<bool>& stuck)
        : channel_(std::move(channel)), stuck_(stuck) {}
    Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                 CallCancellation* cancellation) override {
      if (stuck_) return {absl::DeadlineExceededError("stuck"), false, ""};
      return channel_->Call(path, request, timeout_us, cancellation);
    }

   private:
    const std::unique_ptr<ControlChannel> channel_;
    const std::atomic<bool>& stuck_;
  };
};

TEST_F(ClientTest, RenewalsPassWhileTheCatalogsMainPortIsStuck) {
  StartCatalog();
  EXPECT_NE(server_->address(), server_->lease_address());
  StuckControlPlane control_plane;
  control_plane.stuck_address = server_->address();
  auto client = Client::Connect({options_.listen_address, kSecret, kHangUs, &control_plane});
  ASSERT_TRUE(client.ok()) << client.status();
  fabric::FakeFabric fabric;
  fabric::Progress renewals;
  Membership::Hooks hooks;
  hooks.after_renew = [&](const proto::RenewReply&) { renewals.Advance(); };
  hooks.on_lost = [](absl::Status status) { ADD_FAILURE() << status; };
  auto membership = Membership::Join(**client, fabric, SomeClient(), hooks);
  ASSERT_TRUE(membership.ok());
  control_plane.stuck = true;
  EXPECT_EQ((*client)->GetCluster().status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(renewals.WaitFor(renewals.steps() + 7));  // two leases
  EXPECT_EQ(Connect()->GetCluster()->members_size(), 1);
  control_plane.stuck = false;
}

// Anything that keeps the catalog from hearing itself on its port for leases keeps it from hearing others.
TEST_F(ClientTest, LeasesGoOnWhileTheCatalogDoesNotHearItself) {
  options_.lease_ms = 900;
  StuckControlPlane control_plane;
  options_.control_plane = &control_plane;
  StartCatalog();
  const auto client = Connect();
  fabric::FakeFabric fabric;
  fabric::Progress renewals;
  Membership::Hooks hooks;
  hooks.after_renew = [&](const proto::RenewReply&) { renewals.Advance(); };
  auto clock = Membership::Join(*client, fabric, SomeClient(), hooks);  // three renewals a lease
  ASSERT_TRUE(clock.ok());
  ASSERT_TRUE(renewals.WaitFor(1));
  control_plane.stuck = true;
  ASSERT_TRUE(renewals.WaitFor(renewals.steps() + 2));
  ASSERT_TRUE(client->Join(SomeClient()).ok());  // and falls silent
  ASSERT_TRUE(renewals.WaitFor(renewals.steps() + 12));
  EXPECT_EQ(client->GetCluster()->members_size(), 2) << "four leases later";
  control_plane.stuck = false;
  ASSERT_TRUE(renewals.WaitFor(renewals.steps() + 8));
  EXPECT_EQ(client->GetCluster()->members_size(), 1) << "expelled, now that renewals would be heard";
}

/// A firewall between catalog and memory server rejects connections, and the server renews nothing. It lives
/// as long as the connection that it has.
TEST_F(ClientTest, AMemoryServerThatIsConnectedIsNotBuriedByARefusal) {
  options_.lease_ms = 900;
  StuckControlPlane control_plane;
  control_plane.rejected = true;
  options_.control_plane = &control_plane;
  StartCatalog();
  const auto watcher = Connect();
  auto server = Connect();
  proto::Member member = SomeClient();
  member.set_role(proto::ROLE_MEMORY);
  member.set_control_address("127.0.0.1:7");
  member.set_fabric_address("127.0.0.1:8");
  const auto joined = server->Join(member);
  ASSERT_TRUE(joined.ok()) << joined.status();
  proto::RenewRequest renewal;
  renewal.set_id(joined->id());
  renewal.set_proof(joined->proof());
  ASSERT_TRUE(server->Renew(renewal).ok());  // and falls silent
  const auto await = [&](const std::function<bool(const proto::Cluster&)>& what) {
    const Deadline deadline = RealClock().After(kDefaultBuryAfterMs * 1'000 / 2);
    proto::Cluster cluster = *watcher->GetCluster();
    for (; !what(cluster) && !RealClock().Passed(deadline); cluster = *watcher->GetCluster()) {
    }
    return cluster;
  };
  const proto::Cluster suspected = await([](const proto::Cluster& cluster) {
    return cluster.members_size() == 0 || cluster.members(0).suspect();
  });
  ASSERT_EQ(suspected.members_size(), 1) << "buried, though it is connected";
  server.reset();
  const proto::Cluster buried =
      await([](const proto::Cluster& cluster) { return cluster.members_size() == 0; });
  EXPECT_EQ(buried.members_size(), 0) << "it has ended";
}

TEST_F(ClientTest, RenewalsFindTheirNewPortThoughAnotherProcessHasTheOldOne) {
  StartCatalog();
  StuckControlPlane control_plane;
  control_plane.stuck_address = server_->lease_address();
  const auto client = Client::Connect({options_.listen_address, kSecret, kHangUs, &control_plane});
  ASSERT_TRUE(client.ok()) << client.status();
  proto::RenewRequest renewal;
  const proto::JoinReply joined = *(*client)->Join(SomeClient());
  renewal.set_id(joined.id());
  renewal.set_proof(joined.proof());
  ASSERT_TRUE((*client)->Renew(renewal).ok());
  StopCatalog();
  const UniqueFd silent = ListenSilently(SplitAddress(control_plane.stuck_address)->second);
  ASSERT_TRUE(silent.valid());
  control_plane.stuck = true;
  StartCatalog();
  absl::Status renewed = absl::DeadlineExceededError("not asked yet");
  const Deadline deadline = RealClock().After(kHangUs);
  while (!renewed.ok() && !RealClock().Passed(deadline)) renewed = (*client)->Renew(renewal).status();
  EXPECT_TRUE(renewed.ok()) << renewed;
}

TEST_F(ClientTest, AClientOfAnotherStoreEndsNobodysMembership) {
  StartCatalog();
  const auto stranger = Connect();
  const proto::JoinReply joined = *stranger->Join(SomeClient());
  const MemberId id(joined.id());
  StopCatalog();
  options_.store_path = folder_.File("other.db");
  StartCatalog();
  const auto client = Connect();
  ASSERT_EQ(client->Join(SomeClient())->id(), id.value());
  absl::Status left = absl::UnavailableError("not asked yet");
  const Deadline deadline = RealClock().After(kHangUs);
  while (absl::IsUnavailable(left) && !RealClock().Passed(deadline))
    left = stranger->Leave(id, joined.proof());
  EXPECT_EQ(left.code(), absl::StatusCode::kFailedPrecondition) << left;
  EXPECT_EQ(stranger->DropTable("date").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(client->GetCluster()->members_size(), 1);
}

TEST_F(ClientTest, AShortRestartDoesNotLoseTheMembership) {
  StartCatalog();
  const auto client = Connect();
  fabric::FakeFabric fabric;
  fabric::Progress renewals;
  fabric::Progress attempts;
  Membership::Hooks hooks;
  hooks.before_renew = [&](proto::RenewRequest&) { attempts.Advance(); };
  hooks.after_renew = [&](const proto::RenewReply&) { renewals.Advance(); };
  hooks.on_lost = [](absl::Status status) { ADD_FAILURE() << status; };
  auto membership = Membership::Join(*client, fabric, SomeClient(), hooks);
  ASSERT_TRUE(membership.ok());
  ASSERT_TRUE(renewals.WaitFor(1));
  StopCatalog();
  ASSERT_TRUE(attempts.WaitFor(attempts.steps() + 1));  // one falls into the gap
  const int before = renewals.steps();
  StartCatalog();
  ASSERT_TRUE(renewals.WaitFor(before + 2));
  EXPECT_EQ(client->GetCluster()->members(0).id(), (*membership)->id().value());
}

TEST_F(ClientTest, AMembershipOutlivesACatalogThatIsAwayForLongerThanALease) {
  options_.lease_ms = 1'500;  // a client connects again within half a second
  StartCatalog();
  const auto client = Connect();
  fabric::FakeFabric fabric;
  fabric::Progress renewals;
  fabric::Progress attempts;
  Membership::Hooks hooks;
  hooks.before_renew = [&](proto::RenewRequest&) { attempts.Advance(); };
  hooks.after_renew = [&](const proto::RenewReply&) { renewals.Advance(); };
  hooks.on_lost = [](absl::Status status) { ADD_FAILURE() << status; };
  auto membership = Membership::Join(*client, fabric, SomeClient(), hooks);
  ASSERT_TRUE(membership.ok());
  StopCatalog();
  ASSERT_TRUE(attempts.WaitFor(attempts.steps() + 30));  // a tenth of a lease apart: three leases
  const int before = renewals.steps();
  StartCatalog();
  ASSERT_TRUE(renewals.WaitFor(before + 1));
}

TEST_F(ClientTest, AMemoryServerWhoseConnectionsAreRefusedIsBuriedAndNoOther) {
  options_.lease_ms = 300;
  StartCatalog();
  const auto client = Connect();
  proto::Member member;
  member.set_role(proto::ROLE_MEMORY);
  member.set_fabric_address("nowhere");
  member.set_control_address("127.0.0.1:1");  // no process listens there
  const uint32_t dead = client->Join(member)->id();
  member.set_control_address(options_.listen_address);  // a stopped process looks like this
  const uint32_t silent = client->Join(member)->id();
  const Deadline deadline = RealClock().After(kHangUs);
  absl::StatusOr<proto::Cluster> cluster = client->GetCluster();
  const auto settled = [&] {
    return cluster.ok() && cluster->members_size() == 1 && cluster->members(0).suspect();
  };
  while (!settled() && !RealClock().Passed(deadline)) cluster = client->GetCluster();
  ASSERT_TRUE(settled()) << cluster->DebugString();
  EXPECT_EQ(cluster->members(0).id(), silent);
  EXPECT_NE(silent, dead);
  EXPECT_TRUE(client->Bury(MemoryServerId(static_cast<uint16_t>(silent))).ok());
  EXPECT_EQ(client->GetCluster()->members_size(), 0);
}

TEST_F(ClientTest, AMembershipIsLostWhenTheCatalogSaysSo) {
  StartCatalog();
  const auto client = Connect();
  fabric::FakeFabric fabric;
  fabric::Progress lost;
  Membership::Hooks hooks;
  hooks.on_lost = [&](absl::Status status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    lost.Advance();
  };
  auto membership = Membership::Join(*client, fabric, SomeClient(), hooks);
  ASSERT_TRUE(membership.ok());
  ASSERT_TRUE(client->Leave((*membership)->id(), (*membership)->proof()).ok());
  ASSERT_TRUE(lost.WaitFor(1));
  membership->reset();
  EXPECT_EQ(lost.steps(), 1);
}

}  // namespace
}  // namespace nam::catalog
