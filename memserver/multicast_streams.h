#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "memserver/memory_pool.h"
#include "proto/memory.pb.h"
#include "storage/multicast_sender.h"

namespace nam::memserver {

/// The multicast streams that a memory server sends, one thread each. A stream stays, with its board, until a
/// client ends it, or until some time after its deadline. Bounded; thread-safe.
class MulticastStreams {
 public:
  MulticastStreams(fabric::Fabric& fabric, const MemoryPool& pool) : fabric_(fabric), pool_(pool) {}
  /// Stops and joins all streams.
  ~MulticastStreams();

  /// `self`: this server, which may send its own blocks only.
  absl::StatusOr<proto::StartMulticastReply> Start(MemoryServerId self,
                                                   const proto::StartMulticastRequest& request);
  /// NOT_FOUND if the stream never existed or has ended.
  absl::StatusOr<proto::EndMulticastReply> End(const proto::EndMulticastRequest& request);

 private:
  struct Stream {
    ~Stream();
    uint32_t group = 0;
    int64_t forget_ns = 0;
    std::atomic<bool> cancel = false;
    std::unique_ptr<storage::MulticastSender> sender;
    std::unique_ptr<fabric::Thread> thread;
  };
  using Streams = std::map<uint64_t, std::unique_ptr<Stream>>;

  void EndStale(uint32_t group);

  fabric::Fabric& fabric_;
  const MemoryPool& pool_;
  Mutex mutex_;
  Streams streams_ ABSL_GUARDED_BY(mutex_);  // by their ids
};

}  // namespace nam::memserver
