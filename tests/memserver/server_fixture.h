#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catalog/attach_over_fabric.h"
#include "catalog/grpc_control_plane.h"
#include "catalog/methods.h"
#include "catalog/server.h"
#include "memserver/server.h"
#include "memserver/start_over_fabric.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/temp_folder.h"

namespace nam::memserver {

inline constexpr char kSecret[] = "correct horse battery staple";
inline const std::atomic<bool> kGoesOn = false;
inline constexpr uint64_t kMiB = 1 << 20;

/// gRPC, with a hook between a memory server's answer to ListRegions and its arrival, and with requests that
/// are late.
class HookedControlPlane final : public catalog::ControlPlane {
 public:
  std::function<void()> between = [] {};
  std::string served;  // the address served last
  std::string proof;   // of the member that joined last
  /// Requests with this path stay here, and their callers give up.
  std::string late_path;
  std::vector<std::string> late;

  std::string host_name() const override { return catalog::GrpcControlPlane().host_name(); }
  absl::StatusOr<std::unique_ptr<catalog::ControlServer>> Serve(
      const catalog::ControlServerOptions& options) override {
    auto server = catalog::GrpcControlPlane().Serve(options);
    if (server.ok()) served = (*server)->address();
    return server;
  }
  std::unique_ptr<catalog::ControlChannel> Open(const std::string& address,
                                                const std::string& secret) override {
    return std::make_unique<Channel>(catalog::GrpcControlPlane().Open(address, secret), *this);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return catalog::GrpcControlPlane().Refused(address, timeout_us);
  }

 private:
  class Channel final : public catalog::ControlChannel {
   public:
    Channel(std::unique_ptr<catalog::ControlChannel> channel, HookedControlPlane& plane)
        : channel_(std::move(channel)), plane_(plane) {}
    Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                 catalog::CallCancellation* cancellation) override {
      if (path == plane_.late_path) {
        plane_.late.push_back(request);
        return {absl::DeadlineExceededError("no answer"), false, ""};
      }
      Outcome outcome = channel_->Call(path, request, timeout_us, cancellation);
      if (path == catalog::kListRegions.path) plane_.between();
      proto::JoinReply joined;
      if (path == catalog::kJoin.path && joined.ParseFromString(outcome.reply)) plane_.proof = joined.proof();
      return outcome;
    }

   private:
    const std::unique_ptr<catalog::ControlChannel> channel_;
    HookedControlPlane& plane_;
  };
};

// A catalog, memory servers and an attached client in one process, over fake fabrics.
class MemoryServerTest : public testing::Test {
 protected:
  MemoryServerTest() {
    catalog_options_.store_path = folder_.File("catalog.db");
    catalog_options_.fabric = fabric::Kind::kTcp;
    catalog_options_.secret = kSecret;
    catalog_options_.lease_ms = 1'500;
    auto catalog = catalog::CatalogServer::Start(catalog_options_);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
  }

  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenFake(const fabric::FabricOptions& options) {
    EXPECT_EQ(options.secret, kSecret);
    fabric_options_ = options;
    return std::make_unique<fabric::FakeFabric>(options.kind);
  }
  /// Like OpenFake; the test keeps a pointer to the memory server's fabric.
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenWatched(const fabric::FabricOptions& options) {
    auto opened = std::make_unique<fabric::FakeFabric>(options.kind);
    memory_fabric_ = opened.get();
    opened->before_listen = before_listen_;
    fabric_options_ = options;
    return opened;
  }
  absl::StatusOr<std::unique_ptr<MemoryServer>> TryStart(MemoryServerOptions options) {
    options.catalog.address = catalog_->address();
    options.catalog.secret = kSecret;
    return StartOverFabric(options, [this](const auto& fabric) { return OpenWatched(fabric); });
  }
  std::unique_ptr<MemoryServer> StartMemory(MemoryServerOptions options = {}) {
    if (options.memory_bytes == 0) options.memory_bytes = 8 * kMiB;
    options.region_bytes = kMiB;
    auto server = TryStart(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<catalog::Attachment> Attach(catalog::AttachOptions options = {}) {
    options.catalog.address = catalog_->address();
    options.catalog.secret = kSecret;
    auto attachment =
        catalog::AttachOverFabric(options, [this](const auto& fabric) { return OpenFake(fabric); });
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    return attachment.ok() ? *std::move(attachment) : nullptr;
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
  // Asks until renewals have freed the memory: each question is a whole call, bounded by a deadline.
  static bool BecomesFree(catalog::Attachment& attachment, MemoryServerId server) {
    return BecomesUsed(attachment, server, 0);
  }
  static bool BecomesUsed(catalog::Attachment& attachment, MemoryServerId server, uint64_t bytes) {
    const Deadline deadline = RealClock().After(60'000'000);
    while (attachment.MemoryUsage(server)->used_bytes() != bytes) {
      if (RealClock().Passed(deadline)) return false;
    }
    return true;
  }

  const TempFolder folder_;
  catalog::CatalogServerOptions catalog_options_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  fabric::FakeFabric* memory_fabric_ = nullptr;  // the memory server that was started last owns it
  std::function<void()> before_listen_;          // of memory servers started from now on
  fabric::FabricOptions fabric_options_;         // of the fabric opened last
};

}  // namespace nam::memserver
