#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "storage/channel.h"

namespace nam::execution {

/// Keeps channels for the next query, so that it need not connect again. Drops channels that this process
/// opened under an earlier membership. Thread-safe.
class ChannelPool {
 public:
  ChannelPool(fabric::Fabric& fabric, fabric::RegionDirectory& directory,
              const storage::ChannelOptions& options = {})
      : fabric_(fabric), directory_(directory), options_(options) {}

  /// A channel on loan. Goes back when the lease ends, unless it is broken.
  class Lease {
   public:
    Lease(ChannelPool& pool, std::unique_ptr<storage::Channel> channel)
        : pool_(&pool), channel_(std::move(channel)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (channel_ && !channel_->broken()) pool_->Return(std::move(channel_));
    }
    storage::Channel& operator*() const { return *channel_; }

   private:
    ChannelPool* pool_;
    std::unique_ptr<storage::Channel> channel_;
  };

  absl::StatusOr<Lease> Acquire() {
    const MemberId self = directory_.Self().id;
    {
      const MutexLock lock(mutex_);
      std::erase_if(idle_, [self](const auto& channel) { return channel->member() != self; });
      if (!idle_.empty()) {
        std::unique_ptr<storage::Channel> channel = std::move(idle_.back());
        idle_.pop_back();
        return Lease(*this, std::move(channel));
      }
    }
    auto channel = storage::Channel::Open(fabric_, directory_, options_);
    if (!channel.ok()) return channel.status();
    return Lease(*this, *std::move(channel));
  }
  fabric::Fabric& fabric() { return fabric_; }
  /// Drops idle channels: their queue pairs may lead to a dead server.
  void Clear() {
    const MutexLock lock(mutex_);
    idle_.clear();
  }

 private:
  static constexpr size_t kMostIdle = 64;
  void Return(std::unique_ptr<storage::Channel> channel) {
    const MutexLock lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(channel));
  }
  fabric::Fabric& fabric_;
  fabric::RegionDirectory& directory_;
  const storage::ChannelOptions options_;
  Mutex mutex_;
  std::vector<std::unique_ptr<storage::Channel>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
