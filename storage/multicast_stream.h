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
  uint32_t member = 0;                        // whose credit word on every board
  uint32_t part = 0, parts = 1;               // receives from senders whose number % parts == part
  bool verify = true;                         // checksums
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
  uint32_t receives_max = 512;
  /// So many later datagrams of a sender say that one is lost, not late.
  uint32_t reorder_datagrams = 64;
  int64_t silence_timeout_us = 2'000;    // without a datagram: look at the sender's board
  int64_t stall_timeout_us = 3'000'000;  // without any progress of a sender: READ all the rest
};

/// For one table of the stream.
struct MulticastCounters {
  uint64_t multicast_blocks = 0;
  uint64_t repaired_blocks = 0;  // by READ
  uint64_t duplicates = 0;       // datagrams that brought nothing new
  StreamCounters stream;         // all blocks; bytes by either way
};

/// Receives the blocks of tables from the streams of several senders, each block once, in the order in which
/// they become complete. A bitmap for each sender says which blocks have come. What is lost, known by a gap
/// in the datagrams' numbers or by silence, is READ from the block's home, and so is everything if a sender
/// fails. Works over the buffer and the completion queue of a Channel, which it has to itself; one thread.
/// Threads of one member may each receive a part of the senders' streams, with a stream of their own.
///
///     datagram ─▶ receive ─▶ slot: assembling ─all fragments─▶ ready ─▶ Next ─▶ free
///     lost ──────────▶ slot: repairing (READ) ───────────────────┘
class MulticastStream {
 public:
  /// Every block's home must be among the senders, all of which are named whatever the part. An error means
  /// that multicast is not available here, and says why; the channel is as before, unless it says that it is
  /// broken.
  static absl::StatusOr<std::unique_ptr<MulticastStream>> Open(Channel& channel,
                                                               const std::vector<MulticastAddress>& senders,
                                                               const std::vector<MulticastTable>& tables,
                                                               const MulticastStreamOptions& options);
  /// Tells the senders that nobody waits here any more.
  virtual ~MulticastStream() = default;

  /// The next block, valid until the next call; false at the end. After an error the channel is broken.
  virtual absl::StatusOr<bool> Next(BlockView& block) = 0;
  /// Which of the tables the block delivered last belongs to.
  virtual size_t table() const = 0;
  virtual const MulticastCounters& counters(size_t table) const = 0;
};

}  // namespace nam::storage
