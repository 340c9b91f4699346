#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fabric/tcp/tcp_fabric.h"

namespace nam::fabric {

inline constexpr char kSecret[] = "correct horse battery staple";

inline std::unique_ptr<Fabric> OpenFabric(int64_t peer_timeout_us = 10'000'000,
                                          const std::string& secret = kSecret, int nic_threads = 2) {
  auto fabric = OpenTcp(
      {.kind = Kind::kTcp, .secret = secret, .nic_threads = nic_threads, .peer_timeout_us = peer_timeout_us});
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return std::move(fabric).value();
}

/// The deadline of waits that a passing test ends long before.
inline Deadline Soon() {
  return RealClock().After(60'000'000);
}

/// A server with a region and a client with a region and a connection to it.
class TcpTest : public testing::Test {
 protected:
  void Start(bool passive, int64_t peer_timeout_us = 10'000'000, const QueuePairOptions& options = {}) {
    server_ = OpenFabric(peer_timeout_us);
    client_ = OpenFabric(peer_timeout_us);
    region_ = server_->Allocate(1 << 20, {}).value();
    local_ = client_->Allocate(1 << 20, {}).value();
    listener_ = server_->Listen({.address = "127.0.0.1:0", .passive = passive}).value();
    completions_ = client_->CreateCompletionQueue(1024).value();
    pair_ = Connect(options);
    if (passive) return;
    server_completions_ = server_->CreateCompletionQueue(1024).value();
    auto accepted = listener_->Accept(*server_completions_, options, Soon());
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    server_pair_ = std::move(accepted).value();
  }
  void TearDown() override {
    pair_.reset();
    server_pair_.reset();
  }

  std::unique_ptr<QueuePair> Connect(const QueuePairOptions& options = {}) {
    auto pair = client_->Connect(listener_->address(), *completions_, options, Soon());
    EXPECT_TRUE(pair.ok()) << pair.status();
    return pair.ok() ? std::move(pair).value() : nullptr;
  }
  static Completion Next(CompletionQueue& queue) {
    Completion completion{.status = CompletionStatus::kFlushed};
    EXPECT_EQ(queue.Wait({&completion, 1}, Soon()), 1u);
    return completion;
  }
  CompletionStatus Run(QueuePair& pair, const WorkRequest& request) {
    const absl::Status posted = pair.Post({&request, 1});
    EXPECT_TRUE(posted.ok()) << posted;
    const Completion completion = Next(*completions_);
    EXPECT_EQ(completion.id, request.id);
    return completion.status;
  }
  RemoteAddress At(uint64_t offset) const { return {region_->rkey(), offset}; }

  std::unique_ptr<Fabric> server_, client_;
  std::unique_ptr<MemoryRegion> region_, local_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CompletionQueue> completions_, server_completions_;
  std::unique_ptr<QueuePair> pair_, server_pair_;
};

}  // namespace nam::fabric
