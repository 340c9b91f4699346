#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"
#include "storage/channel.h"

namespace nam::txn {

/// One extent of a record table, an index, or the transaction state, and the grant to change it.
struct SpaceExtent {
  MemoryServerId server;
  uint64_t offset = 0;  // in the server's address space
  uint64_t bytes = 0;   // 0: a whole extent of the space; else the first bytes of one
  std::shared_ptr<fabric::Grant> grant;
  bool lost = false;  // the catalog has buried its memory server, so grant and memory are gone
};

/// The source of a space's extents.
class ExtentSource {
 public:
  virtual ~ExtentSource() = default;
  /// Returns all current extents, in the order in which they were added, with grants. Extents of a memory
  /// server that the catalog has buried are lost. The call fails if a server is merely unreachable.
  virtual absl::StatusOr<std::vector<SpaceExtent>> Extents() = 0;
  /// Adds an extent unless there are more than `known` by now; returns all extents, like Extents.
  /// RESOURCE_EXHAUSTED: no memory server has room.
  virtual absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) = 0;
};

/// Remote memory that clients may change: consecutive extents of one size, spread over memory servers.
///
///     position   0                 E                 2E
///                ├─── extent 0 ──┄ ┼─── extent 1 ────┼ …       E a power of two; each starts zeroed
///
/// The first extents may be short, so that an empty space takes little memory: of their positions only the
/// first ones exist. What lies in the space keeps off the others, by BytesOf.
///
/// An extent is lost with its memory server. The space stays usable: recovery finishes what other extents
/// hold. Belongs to one thread, and resolves for its channel.
class ExtentSpace {
 public:
  static absl::StatusOr<ExtentSpace> Open(storage::Channel& channel, std::shared_ptr<ExtentSource> source,
                                          uint64_t extent_bytes);

  uint64_t extent_bytes() const { return uint64_t{1} << shift_; }
  /// Extents that this client knows; other clients may have added more.
  size_t extents() const { return targets_.size(); }
  /// The bytes of a known extent that exist.
  uint64_t BytesOf(size_t extent) const { return bytes_[extent]; }

  /// Resolves [position, position + …) of one extent for READs, WRITEs and atomics. Looks for new extents
  /// once if the position is beyond the known ones. OUT_OF_RANGE if it is beyond the space, UNAVAILABLE if
  /// the extent is lost.
  absl::StatusOr<storage::Channel::Target> Resolve(uint64_t position) {
    if (position >> shift_ >= whole_) [[unlikely]] {
      if (absl::Status status = Seek(position); !status.ok()) return status;
    }
    // Member by member: a copy of a target that was changed in part would wait for the change.
    const storage::Channel::Target& extent = targets_[position >> shift_];
    return storage::Channel::Target{
        .queue_pair = extent.queue_pair,
        .address = {.rkey = extent.address.rkey,
                    .offset = extent.address.offset + (position & (extent_bytes() - 1))},
        .now = extent.now,
        .grant = extent.grant};
  }
  /// Whether the extent of `position` was lost when this client last looked for new extents.
  bool Lost(uint64_t position) const {
    const size_t extent = position >> shift_;
    return extent < targets_.size() && targets_[extent].queue_pair == nullptr;
  }
  /// UNAVAILABLE if an extent is lost.
  absl::Status CheckWhole() const { return lost_.empty() ? absl::OkStatus() : LostError(); }
  /// The memory servers of lost extents.
  const std::set<MemoryServerId>& lost() const { return lost_; }
  /// Learns of extents that others have added, and of lost ones.
  absl::Status FindNew();
  /// Adds an extent unless another client already has. Afterwards extents() is larger.
  absl::Status Grow();

 private:
  ExtentSpace(storage::Channel& channel, std::shared_ptr<ExtentSource> source, int shift)
      : channel_(&channel), source_(std::move(source)), shift_(shift) {}
  /// OK if the position's extent is known and not lost.
  absl::Status Seek(uint64_t position);
  absl::Status Install(const std::vector<SpaceExtent>& extents);
  absl::Status LostError() const;

  storage::Channel* channel_;
  std::shared_ptr<ExtentSource> source_;
  int shift_;
  std::vector<storage::Channel::Target> targets_;       // by extent: its offset 0; no queue pair: lost
  std::vector<std::shared_ptr<fabric::Grant>> grants_;  // of targets_
  std::vector<uint64_t> bytes_;                         // of targets_
  size_t whole_ = 0;  // extents before the first lost one: one comparison resolves most positions
  std::set<MemoryServerId> lost_;
};

}  // namespace nam::txn
