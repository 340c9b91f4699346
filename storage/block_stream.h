#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
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

/// What blocks of chains that were appended to a table have of their own.
struct AppendedGroup {
  uint64_t allocation = 0;
  std::vector<uint8_t> widths;  // of all columns
};

/// Where a chain starts and how it is cut into blocks, from the catalog; and which of them are wanted. Of
/// those before them a stream READs what leads to where they lie, if that is not known.
struct ChainStart {
  uint32_t partition = 0;  // as its blocks say
  uint32_t number = 0;     // among the table's chains
  uint32_t blocks = 0;
  uint32_t block_rows = 0;
  std::vector<uint32_t> text_bytes;  // as in BlockLayout
  std::vector<uint64_t> head;        // pointers of blocks 0 … G - 1
  uint32_t first = 0;                // wanted: from this one
  uint32_t end = UINT32_MAX;         // to before this one, or all that are left
  uint32_t group = 0;  // of chains whose columns were encoded together: their codes mean the same
  std::shared_ptr<const AppendedGroup> appended;  // null: the group is the table's first
  uint64_t sort_min = 0;           // blocks without a code from sort_min to sort_max in the sort column may
  uint64_t sort_max = UINT64_MAX;  // be left out
};

/// What all chains of one table share, and which columns a stream wants.
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

/// Blocks in flight for a stream of which nothing else was asked.
uint32_t DefaultWindow(const fabric::Capabilities& capabilities);

struct StreamOptions {
  uint32_t window = 10;          // blocks in flight, 1 … 64
  bool in_place = false;         // take blocks where they lie if the fabric can
  bool verify = true;            // checksums; in place, of what is not known to be whole
  KnownBlocks* known = nullptr;  // of the table: used, and added to
  int sort_column = -1;          // by which the table's blocks are in order; -1 for none
  uint64_t sort_min = 0;         // of all chains, as ChainStart says it of one
  uint64_t sort_max = UINT64_MAX;
  bool slow_start = false;  // one chain is taken from the source at first, then two for each block that has
                            // come: threads that share few chains begin with one each, not with a window
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

struct StreamCounters {
  uint64_t blocks = 0;
  uint64_t skipped_blocks = 0;  // left out, not among blocks
  uint64_t rows = 0;
  uint64_t posts = 0;                        // batches of READs
  int64_t waiting_ns = 0;                    // for blocks to arrive
  std::map<MemoryServerId, uint64_t> bytes;  // moved (in place: looked at), per memory server
};

/// Streams the blocks of chains, in order, while the next `window` are in flight (I-Store, section 4.2).
/// Per block it READs the prefix and the wanted mini-pages, neighbours merged into one READ. It works over
/// the buffer of a Channel, which it has to itself until it ends; one thread.
class BlockStream {
 public:
  /// `next_chain` is asked for the next chain to stream whenever the window has room, so threads that
  /// share a source balance their work. It must outlive the stream.
  using ChainSource = std::function<std::optional<ChainStart>()>;
  BlockStream(Channel& channel, const StreamTable& table, const StreamOptions& options,
              ChainSource next_chain);
  ~BlockStream();

  /// The next block, valid until the next call; false at the end. After an error the channel is broken.
  absl::StatusOr<bool> Next(BlockView& block);
  /// The chain of the block that Next delivered last; valid as long as the block.
  const ChainStart& chain() const { return slots_[head_ % slots_.size()].chain->start; }
  const StreamCounters& counters() const { return counters_; }

 private:
  struct Chain {
    ChainStart start;  // `end` within its blocks
    BlockLayout layout;
    std::vector<ByteRange> runs;     // of each block, one READ each
    std::vector<ByteRange> prefix;   // of one that is READ for its pointers alone
    std::vector<uint64_t> pointers;  // of the blocks whose pointers are known
    uint32_t posted = 0;
    uint32_t delivered = 0;
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
  void SkipBlocks(Chain& chain);
  bool CanSkip(const Chain& chain, uint32_t index) const;
  void MoreChainsAhead() { chains_ahead_ = std::min(2 * chains_ahead_, slots_.size()); }
  void DropDelivered();
  absl::Status Prepare(Slot& slot, uint32_t slot_number);
  absl::Status AwaitHead();
  absl::Status TakeCompletions(bool wait);
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
  size_t chains_ahead_;  // at most, with what is being delivered
  const bool posts_are_calls_;
  // Of posts that are calls: when the last were made, and so many slots are still in flight at the next.
  int64_t filled_ns_ = std::numeric_limits<int64_t>::min() / 2;
  size_t refill_at_ = 0;
  std::vector<Batch> batches_;  // a queue pair each
  std::deque<Chain> chains_;    // addresses are stable; front: being delivered
  bool source_dry_ = false;
  uint64_t claimed_ = 0;    // chains
  uint64_t head_ = 0;       // slots delivered
  uint64_t tail_ = 0;       // slots posted
  bool delivered_ = false;  // the slot at head_ is with the caller
  StreamCounters counters_;
};

}  // namespace nam::storage
