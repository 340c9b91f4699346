#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/block.h"
#include "storage/block_runs.h"
#include "storage/channel.h"
#include "storage/known_blocks.h"

namespace nam::storage {

/// The properties of an appended chain group that differ from the table's first group.
struct AppendedGroup {
  uint64_t allocation = 0;
  std::vector<uint8_t> widths;  // of all columns
};

/// The start of a chain and its division into blocks, from the catalog; and the wanted range of blocks. To
/// locate these, a stream may also READ earlier blocks for their pointers.
struct ChainStart {
  uint32_t partition = 0;  // as in its block headers
  uint32_t number = 0;     // among the table's chains
  uint32_t blocks = 0;
  uint32_t block_rows = 0;
  std::vector<uint32_t> text_bytes;               // as in BlockLayout
  std::vector<uint64_t> head;                     // pointers of blocks 0 … G - 1
  uint32_t first = 0;                             // first wanted block
  uint32_t end = UINT32_MAX;                      // end of the wanted range, or all that are left
  uint32_t group = 0;                             // chains with equal groups share their encodings
  std::shared_ptr<const AppendedGroup> appended;  // null: the table's first group
  uint64_t sort_min = 0;                          // blocks without a code from sort_min to sort_max
  uint64_t sort_max = UINT64_MAX;                 // in the sort column may be skipped
};

/// The shared properties of a table's chains, and the columns that a stream reads.
struct StreamTable {
  uint64_t allocation = 0;  // of the first group, as are the widths
  uint32_t pointer_group = 0;
  std::vector<uint8_t> widths;    // of all columns
  std::vector<uint32_t> columns;  // to be read; ascending

  uint64_t AllocationOf(const ChainStart& chain) const {
    return chain.appended == nullptr ? allocation : chain.appended->allocation;
  }
  const std::vector<uint8_t>& WidthsOf(const ChainStart& chain) const {
    return chain.appended == nullptr ? widths : chain.appended->widths;
  }
};

/// The default number of blocks in flight.
uint32_t DefaultWindow(const fabric::Capabilities& capabilities);

struct StreamOptions {
  uint32_t window = 10;          // blocks in flight, 1 … 64
  bool in_place = false;         // use blocks where they lie if the fabric can
  bool verify = true;            // compare checksums; in place, of blocks not known to be whole
  KnownBlocks* known = nullptr;  // the table's; read and extended
  int sort_column = -1;          // the column that orders the table's blocks; -1: none
  uint64_t sort_min = 0;         // like ChainStart's, for all chains
  uint64_t sort_max = UINT64_MAX;
  /// Claims one chain at first, then two for each block that arrives: threads that share few chains begin
  /// with one each.
  bool slow_start = false;
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

struct StreamCounters {
  uint64_t blocks = 0;
  uint64_t skipped_blocks = 0;  // not counted as blocks
  uint64_t rows = 0;
  uint64_t posts = 0;                        // batches of READs
  int64_t waiting_ns = 0;                    // for blocks to arrive
  std::map<MemoryServerId, uint64_t> bytes;  // moved (in place: looked at), by memory server
};

/// Streams the blocks of chains in order, with the next `window` blocks in flight (I-Store, section 4.2). Per
/// block it READs the prefix and the wanted mini-pages, merging adjacent ranges. Has exclusive use of a
/// Channel and its buffer until it ends. One thread.
class BlockStream {
 public:
  /// Asked for the next chain whenever the window has room, so threads that share a source balance their
  /// work. Must outlive the stream.
  using ChainSource = std::function<std::optional<ChainStart>()>;
  BlockStream(Channel& channel, const StreamTable& table, const StreamOptions& options,
              ChainSource next_chain);
  ~BlockStream();

  /// The next block, valid until the next call; false at the end. After an error the channel is broken.
  absl::StatusOr<bool> Next(BlockView& block);
  /// The chain of the last delivered block; valid as long as the block.
  const ChainStart& chain() const { return slots_[head_ % slots_.size()].chain->start; }
  const StreamCounters& counters() const { return counters_; }

 private:
  /// Keeps its memory from one chain to the next: many have one block, for which each allocation counts.
  struct Chain {
    ChainStart start;  // `end` clipped to its blocks
    BlockLayout layout;
    std::vector<ByteRange> runs;     // per block, one READ each
    std::vector<ByteRange> prefix;   // for blocks before start.first, which are READ only for their pointers
    std::vector<uint64_t> pointers;  // of the blocks located so far
    uint32_t posted = 0;
    uint32_t delivered = 0;
    bool is_long = false;  // its blocks do not fit a slot: one at a time is READ, as a whole
  };
  struct Slot {
    Chain* chain = nullptr;
    uint32_t index = 0;
    uint32_t reads_left = 0;
    const std::byte* block = nullptr;
  };

  struct Batch {  // READs of one Fill
    fabric::QueuePair* queue_pair;
    std::vector<fabric::WorkRequest> reads;
  };

  absl::Status Fill();
  std::vector<fabric::WorkRequest>& BatchOf(fabric::QueuePair& queue_pair);
  absl::Status PostBatches();
  absl::StatusOr<Chain*> ChainToPost();
  absl::StatusOr<bool> Claim();
  Chain& chain_at(uint64_t number) { return chains_[number % chains_.size()]; }
  void SkipBlocks(Chain& chain);
  bool CanSkip(const Chain& chain, uint32_t index) const;
  void MoreChainsAhead() { chains_ahead_ = std::min(2 * chains_ahead_, slots_.size()); }
  void DropDelivered();
  absl::Status Prepare(Slot& slot, uint32_t slot_number);
  absl::Status AwaitHead();
  absl::Status PollCompletions(bool wait);
  absl::Status LearnPointers(const Slot& slot);
  absl::Status Deliver(Slot& slot, BlockView& block);
  void FetchPages(const Slot& slot) const;
  void FreeHead();

  Channel& channel_;
  const StreamTable table_;
  const StreamOptions options_;
  ChainSource next_chain_;
  const bool in_place_;
  std::vector<Slot> slots_;
  std::vector<std::byte> long_block_;
  size_t chains_ahead_;  // maximum, including the one being delivered
  const bool posts_are_calls_;
  // Where posts are calls: the time of the last posts, and the number of slots still in flight at the next
  // ones.
  int64_t filled_ns_ = std::numeric_limits<int64_t>::min() / 2;
  size_t refill_at_ = 0;
  std::vector<Batch> batches_;  // one per queue pair
  std::vector<Chain> chains_;   // one per slot at most; those from first_chain_ to end_chain_ are in use
  uint64_t first_chain_ = 0;    // being delivered
  uint64_t end_chain_ = 0;
  bool source_dry_ = false;
  uint64_t claimed_ = 0;    // chains
  uint64_t head_ = 0;       // slots delivered, total
  uint64_t tail_ = 0;       // slots posted, total
  bool delivered_ = false;  // the caller uses the slot at head_
  StreamCounters counters_;
};

}  // namespace nam::storage
