#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/attachment.h"
#include "catalog/server.h"
#include "computeserver/server.h"
#include "fabric/fabric.h"
#include "memserver/server.h"
#include "session/session.h"

namespace nam::testing {

/// A whole cluster in the test's process: real servers, gRPC and fabric, one process only.
class InProcessCluster {
 public:
  struct Options {
    fabric::Kind fabric = fabric::Kind::kShm;
    int memory_servers = 2;
    int compute_servers = 2;
    int threads = 2;  // of each compute server
    uint64_t memory_bytes = uint64_t{256} << 20;
    uint64_t region_bytes = uint64_t{8} << 20;
    uint32_t lease_ms = 3000;
    std::optional<uint64_t> scratch_bytes;  // of a memory server; nullopt: a quarter of its memory
    uint64_t compute_memory_bytes = 0;      // of each server, for all queries; 0: half of the host's
    uint64_t first_memory_bytes = uint64_t{16} << 20;  // of an attempt
    bool always_by_parts = false;                      // groups go by parts even if they are few
  };
  explicit InProcessCluster(const Options& options) : options_(options) {
    // The folder is also unique for tests that run outside Bazel, side by side, with one temporary folder.
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("cluster-" + std::to_string(getpid()) + "-" + std::to_string(counter_++));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto catalog = catalog::CatalogServer::Start({.listen_address = "127.0.0.1:0",
                                                  .store_path = (folder_ / "catalog.db").string(),
                                                  .cluster_name = "test",
                                                  .fabric = options.fabric,
                                                  .secret = "secret",
                                                  .lease_ms = options.lease_ms});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    if (!catalog.ok()) return;
    catalog_ = *std::move(catalog);
    for (int i = 0; i < options.memory_servers; ++i) AddMemoryServer();
    for (int i = 0; i < options.compute_servers; ++i) AddComputeServer();
    auto attachment = catalog::Attachment::Attach({.catalog = Client()});
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    if (!attachment.ok()) return;
    attachment_ = *std::move(attachment);
    session_ = NewSession();
  }
  ~InProcessCluster() {
    session_.reset();
    attachment_.reset();
    compute_.clear();
    memory_.clear();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }

  /// Only a call that hangs takes its whole timeout.
  catalog::ClientOptions Client() const {
    return {.address = catalog_->address(), .secret = "secret", .timeout_us = 60'000'000};
  }
  void AddMemoryServer() {
    memserver::MemoryServerOptions options;
    options.catalog = Client();
    options.memory_bytes = options_.memory_bytes;
    options.region_bytes = options_.region_bytes;
    options.scratch_bytes = options_.scratch_bytes;
    options.huge_pages = false;
    auto server = memserver::MemoryServer::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    memory_.push_back(*std::move(server));
  }
  void AddComputeServer() {
    computeserver::ComputeServerOptions options;
    options.catalog = Client();
    options.threads = options_.threads;
    options.memory_bytes = options_.compute_memory_bytes;
    options.first_memory_bytes = options_.first_memory_bytes;
    options.always_by_parts = options_.always_by_parts;
    auto server = computeserver::ComputeServer::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    compute_.push_back(*std::move(server));
  }
  std::unique_ptr<session::Session> NewSession() {
    auto session = session::Session::Open(*attachment_);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  catalog::Attachment& attachment() { return *attachment_; }
  session::Session& session() { return *session_; }
  std::vector<std::unique_ptr<memserver::MemoryServer>>& memory() { return memory_; }
  std::vector<std::unique_ptr<computeserver::ComputeServer>>& compute() { return compute_; }
  uint64_t UsedBytes() const {
    uint64_t used = 0;
    for (const auto& server : memory_) used += server->used_bytes();
    return used;
  }
  /// Freed memory counts as used until all members that had opened it have closed it, which takes a part of
  /// their leases. Returns how much is used once that is at most `most`, or after a minute.
  uint64_t AwaitUsedBytes(uint64_t most) const {
    Clock& clock = attachment_->fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (UsedBytes() > most && !clock.Passed(deadline)) clock.SleepUntil(clock.After(20'000));
    return UsedBytes();
  }

 private:
  static inline int counter_ = 0;
  const Options options_;
  std::filesystem::path folder_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::vector<std::unique_ptr<memserver::MemoryServer>> memory_;
  std::vector<std::unique_ptr<computeserver::ComputeServer>> compute_;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<session::Session> session_;
};

}  // namespace nam::testing
