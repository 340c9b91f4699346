#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/provider.h"
#include "tests/fabric/take.h"

#define ASSERT_OK(expression)                              \
  do {                                                     \
    const absl::Status nam_status = (expression);          \
    ASSERT_TRUE(nam_status.ok()) << nam_status.ToString(); \
  } while (false)

namespace nam::fabric::conformance {

/// Ends a case that hangs; no case needs that long.
inline const int64_t kTimeoutUs = 60'000'000 * TimeoutFactor();
inline constexpr size_t kRegionBytes = size_t{4} << 20;

/// Two fabrics: a server with a region that allows everything and a passive listener, and a client
/// with a buffer, a completion queue and a queue pair to the server.
class Conformance : public testing::Test {
 protected:
  void SetUp() override;

  Deadline Soon() { return client_->clock().After(kTimeoutUs); }

  std::unique_ptr<MemoryRegion> Allocate(Fabric& fabric, size_t bytes, Access access = Access::kAll) {
    return Take(fabric.Allocate(bytes, {.access = access, .huge_pages = false}));
  }
  std::unique_ptr<CompletionQueue> NewQueue(uint32_t depth = 1024) {
    return Take(client_->CreateCompletionQueue(depth));
  }
  std::unique_ptr<QueuePair> ConnectTo(const std::string& address, CompletionQueue& completions,
                                       const QueuePairOptions& options = {}) {
    return Take(client_->Connect(address, completions, options, Soon()));
  }
  std::unique_ptr<QueuePair> NewQueuePair(const QueuePairOptions& options = {}) {
    return ConnectTo(listener_->address(), *completions_, options);
  }

  /// The next completion; a failure and an all-zero one when none comes in time.
  Completion Next(CompletionQueue& completions);
  Completion Next() { return Next(*completions_); }
  /// Posts and waits.
  Completion Run(QueuePair& queue_pair, const WorkRequest& request) {
    return Run(*completions_, queue_pair, request);
  }
  Completion Run(CompletionQueue& completions, QueuePair& queue_pair, const WorkRequest& request);
  Completion Run(const WorkRequest& request) { return Run(*queue_pair_, request); }

  RemoteAddress At(uint64_t offset) const { return {region_->rkey(), offset}; }
  void SetLocalWord(size_t offset, uint64_t word) {
    std::memcpy(local_->data() + offset, &word, sizeof(word));
  }
  uint64_t LocalWord(size_t offset) const {
    uint64_t word;
    std::memcpy(&word, local_->data() + offset, sizeof(word));
    return word;
  }
  /// Reads through the fabric: words that atomics change must not be read in any other way.
  uint64_t RemoteWord(uint64_t offset) {
    EXPECT_TRUE(Run(WorkRequest::Read(0, local_->Slice(kRegionBytes - 8, 8), At(offset))).ok());
    return LocalWord(kRegionBytes - 8);
  }

  Provider& provider_ = CurrentProvider();
  std::unique_ptr<Fabric> server_;
  std::unique_ptr<Fabric> client_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<MemoryRegion> local_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<QueuePair> queue_pair_;
};

/// A connection between the two fabrics with a queue pair at either end.
class MessageConformance : public Conformance {
 protected:
  void SetUp() override;
  /// Both ends; `server` comes from Accept.
  void Pair(CompletionQueue& client_queue, const QueuePairOptions& client_options,
            std::unique_ptr<QueuePair>* client, std::unique_ptr<QueuePair>* server);
  void PostReceives(QueuePair& queue_pair, MemoryRegion& region, size_t count, uint32_t bytes);

  std::unique_ptr<Listener> active_;
  std::unique_ptr<CompletionQueue> server_completions_;
  std::unique_ptr<MemoryRegion> server_local_;
  std::unique_ptr<QueuePair> server_pair_;
  std::unique_ptr<QueuePair> client_pair_;
};

/// Bytes that tell their position and `seed`.
void FillPattern(std::byte* data, size_t bytes, uint32_t seed);
bool HasPattern(const std::byte* data, size_t bytes, uint32_t seed);

}  // namespace nam::fabric::conformance
