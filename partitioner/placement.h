#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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

/// Allocates remote memory for one load. Requests all of it before the first byte is written, so a table that
/// does not fit fails early and leaves nothing. One thread.
///
/// Pieces are dealt to the memory servers in proportion to what each has free, so servers fill up together, a
/// new one first. A load spreads over as many servers as it has shares, those with most free memory first: a
/// small table lies on one server, and is lost with that one only.
class Placement {
 public:
  /// `share_bytes`: a load with fewer bytes is not spread over several servers.
  Placement(catalog::Attachment& attachment, AllocationId allocation, uint32_t share_bytes)
      : attachment_(attachment), allocation_(allocation), share_bytes_(share_bytes) {}

  /// Finds the memory servers and what they have free. RESOURCE_EXHAUSTED if together they lack `bytes` now.
  absl::Status Prepare(uint64_t bytes);
  /// Requests room for these pieces. A server that turns out to be full is left out, and the others get its
  /// pieces: RESOURCE_EXHAUSTED only if all are full. Waits as Attachment::Allocate does.
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
  struct Server {
    MemoryServerId member;
    MemoryServerId storage;
    uint64_t free_bytes = 0;     // when Prepare asked
    uint64_t leaving_bytes = 0;  // not in free_bytes; free once members have closed them
    uint64_t dealt_bytes = 0;    // since then, to this load
  };
  struct Place {
    size_t server = 0;  // in servers_
    uint64_t offset = 0;
  };
  /// Pieces by their numbers, for each of servers_.
  using Dealt = std::vector<std::vector<size_t>>;

  absl::Status AskServers(bool settle);
  uint64_t FreeBytes() const;
  /// Among the first `spread` of servers_, the one that the piece fills least. With `leaving`, memory that is
  /// leaving counts as free.
  std::optional<size_t> ServerFor(uint64_t bytes, size_t spread, bool leaving) const;
  absl::StatusOr<Dealt> Deal(std::span<const uint32_t> piece_bytes, const std::vector<size_t>& pieces);
  /// Requests the pieces from one server, and removes those from `pieces` that got their places.
  absl::Status ReserveOn(size_t server, std::span<const uint32_t> piece_bytes, std::vector<size_t>& pieces,
                         std::vector<Place>& places);

  catalog::Attachment& attachment_;
  const AllocationId allocation_;
  const uint32_t share_bytes_;
  std::vector<Server> servers_;  // those with most free memory first
  std::deque<Place> places_;     // of pieces reserved and not yet taken
  std::shared_ptr<fabric::Grant> grant_;
  std::map<MemoryServerId, uint64_t> used_bytes_;
};

}  // namespace nam::partitioner
