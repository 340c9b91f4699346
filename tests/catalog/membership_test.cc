#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "catalog/client.h"
#include "catalog/methods.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

constexpr int64_t kLeaseMs = 3'000;

/// A catalog with slow calls: its answers are as old as the call.
class SlowCatalog final : public ControlPlane {
 public:
  explicit SlowCatalog(FakeClock& clock) : clock_(clock) {}

  int64_t call_ms = 0;
  std::atomic<int> renewals = 0;

  std::string host_name() const override { return "here"; }
  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions&) override {
    return absl::UnimplementedError("only calls");
  }
  std::unique_ptr<ControlChannel> Open(const std::string&, const std::string&) override {
    return std::make_unique<Channel>(*this);
  }
  bool Refused(const std::string&, int64_t) override { return false; }

 private:
  class Channel final : public ControlChannel {
   public:
    explicit Channel(SlowCatalog& catalog) : catalog_(catalog) {}
    Outcome Call(const std::string& path, const std::string&, int64_t, CallCancellation*) override {
      catalog_.clock_.AdvanceMs(catalog_.call_ms);
      return {absl::OkStatus(), true, catalog_.Reply(path)};
    }

   private:
    SlowCatalog& catalog_;
  };

  std::string Reply(const std::string& path) {
    if (path == kGetCluster.path) {
      proto::Cluster cluster;
      cluster.set_lease_ms(kLeaseMs);
      cluster.set_lease_port(4'701);
      return cluster.SerializeAsString();
    }
    if (path == kJoin.path) {
      proto::JoinReply reply;
      reply.set_id(7);
      reply.set_lease_ms(kLeaseMs);
      return reply.SerializeAsString();
    }
    if (path == kRenew.path) ++renewals;
    return "";
  }

  FakeClock& clock_;
};

/// Uses that clock; its threads do nothing, so that only the test renews.
class StillFabric final : public fabric::FakeFabric {
 public:
  explicit StillFabric(Clock& clock) : clock_(clock) {}
  Clock& clock() override { return clock_; }
  std::unique_ptr<fabric::Thread> StartThread(const std::string&, std::function<void()>) override {
    return nullptr;
  }

 private:
  Clock& clock_;
};

// The catalog may count from any moment of the call, so only its beginning is safe.
TEST(MembershipTest, ALeaseIsCountedFromTheRequest) {
  FakeClock clock;
  StillFabric fabric(clock);
  SlowCatalog catalog(clock);
  const auto client = Client::Connect({.address = "there:4700", .secret = "s", .control_plane = &catalog});
  ASSERT_TRUE(client.ok()) << client.status();
  catalog.call_ms = 2'000;
  const auto membership = Membership::Join(**client, fabric, proto::Member(), {});
  ASSERT_TRUE(membership.ok()) << membership.status();
  clock.AdvanceMs(999);
  EXPECT_TRUE((*membership)->Confirm().ok());
  EXPECT_EQ(catalog.renewals, 0) << "2.999 s since the request to join";
  clock.AdvanceMs(1);
  EXPECT_TRUE((*membership)->Confirm().ok());
  EXPECT_EQ(catalog.renewals, 1) << "3 s since then; the renewal itself took 2 s";
  clock.AdvanceMs(999);
  EXPECT_TRUE((*membership)->Confirm().ok());
  EXPECT_EQ(catalog.renewals, 1);
  clock.AdvanceMs(1);
  EXPECT_TRUE((*membership)->Confirm().ok());
  EXPECT_EQ(catalog.renewals, 2);
}

}  // namespace
}  // namespace nam::catalog
