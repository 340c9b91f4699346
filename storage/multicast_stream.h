#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/block.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/multicast_blocks.h"
#include "storage/multicast_layout.h"

namespace nam::storage {

struct MulticastStreamOptions {
  uint32_t member = 0;                        // index of its credit word on every board
  uint32_t part = 0, parts = 1;               // receives from senders with index % parts == part
  bool verify = true;                         // compare checksums
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
  uint32_t receives_max = 512;
  /// A datagram counts as lost after this many later ones of its sender.
  uint32_t reorder_datagrams = 64;
  int64_t silence_timeout_us = 2'000;    // without a datagram: check the sender's board
  int64_t stall_timeout_us = 3'000'000;  // without progress of a sender: READ the rest
};

/// Counters for one table of the stream.
struct MulticastCounters {
  uint64_t multicast_blocks = 0;
  uint64_t repaired_blocks = 0;  // by READ
  uint64_t duplicates = 0;       // datagrams without news
  StreamCounters stream;         // all blocks; bytes of both ways
};

/// Receives the blocks of tables from the streams of several senders, each block once, in order of
/// completion. A bitmap per sender records which blocks have arrived. A lost block, detected by a gap in the
/// datagram numbers or by silence, is READ from its home; so is everything if a sender fails. Has exclusive
/// use of a Channel, its buffer and its completion queue. One thread. Threads of one member may each receive
/// a part of the senders' streams, with a stream of their own.
///
///     datagram ─▶ receive ─▶ slot: assembling ─all fragments─▶ ready ─▶ Next ─▶ free
///     lost ──────────▶ slot: repairing (READ) ───────────────────┘
class MulticastStream {
 public:
  /// Every block's home must be among the senders, all of which are listed for every part. An error means
  /// that multicast is not available, and says why; the channel is unchanged, unless it says that it is
  /// broken.
  static absl::StatusOr<std::unique_ptr<MulticastStream>> Open(Channel& channel,
                                                               const std::vector<MulticastAddress>& senders,
                                                               const std::vector<MulticastTable>& tables,
                                                               const MulticastStreamOptions& options);
  /// Tells the senders that this member receives no more.
  virtual ~MulticastStream() = default;

  /// The next block, valid until the next call; false at the end. After an error the channel is broken.
  virtual absl::StatusOr<bool> Next(BlockView& block) = 0;
  /// The table of the last delivered block.
  virtual size_t table() const = 0;
  virtual const MulticastCounters& counters(size_t table) const = 0;
};

}  // namespace nam::storage
