#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "fabric/grants.h"
#include "storage/remote_ptr.h"

namespace nam::partitioner {

/// What a load has written on one memory server.
struct LoadedMemory {
  MemoryServerId member;  // that gave the memory
  AllocationId allocation;
  uint64_t bytes = 0;
};
/// Makes all of it, which belongs to loads of this member, as durable as the servers' data directories.
/// CANCELLED soon after `cancel` is set, if it is given: some of it may be durable then.
absl::Status SealAll(catalog::Attachment& attachment, const std::vector<LoadedMemory>& memory,
                     const std::atomic<bool>* cancel);

/// Allocates remote memory for one load, evenly over the live memory servers. Requests all of it before the
/// first byte is written, so a table that does not fit fails early and leaves nothing. One thread.
class Placement {
 public:
  Placement(catalog::Attachment& attachment, AllocationId allocation)
      : attachment_(attachment), allocation_(allocation) {}

  /// Finds the memory servers. RESOURCE_EXHAUSTED if together they lack `bytes` now.
  absl::Status Prepare(uint64_t bytes);
  /// Requests room for these pieces from the servers in turn: piece i goes to server i modulo their number.
  /// Waits as Attachment::Allocate does.
  absl::Status Reserve(std::span<const uint32_t> piece_bytes);
  /// The next piece, in the order of Reserve, as a permanent remote pointer: with the storage id.
  storage::RemotePtr<void> Next(uint32_t bytes);
  /// The address for writing the piece: at the member that gave the memory. A later member that has adopted
  /// the storage id is never written to.
  storage::RemotePtr<void> ToWrite(storage::RemotePtr<void> piece) const;
  /// Gives everything back at once; the catalog also does so when the load is aborted.
  void ReleaseAll();

  /// The grant of the reserved memory.
  const std::shared_ptr<fabric::Grant>& grant() const { return grant_; }
  /// Bytes of the pieces taken, by storage id.
  const std::map<MemoryServerId, uint64_t>& used_bytes() const { return used_bytes_; }
  /// The same by the member that gave the memory.
  std::map<MemoryServerId, uint64_t> written_bytes() const;

 private:
  absl::StatusOr<uint64_t> LeastFree(bool settle);
  absl::Status ReserveOn(MemoryServerId server, const std::vector<uint32_t>& piece_bytes);

  catalog::Attachment& attachment_;
  const AllocationId allocation_;
  struct Server {
    MemoryServerId member;
    MemoryServerId storage;
  };
  std::vector<Server> servers_;
  std::map<MemoryServerId, std::deque<uint64_t>> offsets_;  // pieces reserved and not yet taken, by member
  std::shared_ptr<fabric::Grant> grant_;
  std::map<MemoryServerId, uint64_t> used_bytes_;
  size_t turn_ = 0;
};

}  // namespace nam::partitioner
