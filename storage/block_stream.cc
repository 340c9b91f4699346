#include "storage/block_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "base/status_macros.h"

namespace nam::storage {
namespace {

/// Prefetched bytes of a block in place: of its prefix when it joins the window, of each column when the
/// block before it is delivered. The processor's own prefetcher continues from there.
constexpr uint32_t kPrefixFetchedMax = 512;
constexpr uint32_t kPageFetchedMax = 1024;

/// Chains claimed ahead at first. A claimed chain is taken from other threads and useless before its turn.
/// The number grows when the stream waits for blocks; and, where posts are calls, when half of the claimed
/// chains are used up within kSoonUs.
constexpr size_t kChainsAhead = 10;
constexpr int64_t kSoonUs = 1'000;
/// The paper's window; and one for posts that are system calls, each of which should carry half a window.
constexpr uint32_t kWindow = 10;
constexpr uint32_t kWindowOfCalls = 64;

}  // namespace

uint32_t DefaultWindow(const fabric::Capabilities& capabilities) {
  return capabilities.posts_are_calls ? kWindowOfCalls : kWindow;
}

BlockStream::BlockStream(Channel& channel, const StreamTable& table, const StreamOptions& options,
                         ChainSource next_chain)
    : channel_(channel),
      table_(table),
      options_(options),
      next_chain_(std::move(next_chain)),
      in_place_(options.in_place && channel.fabric().capabilities().in_place),
      chains_ahead_(std::min<size_t>(kChainsAhead, options.window)),
      posts_are_calls_(channel.fabric().capabilities().posts_are_calls) {
  NAM_CHECK(options.window >= 1 && options.window <= 64);
  slots_.resize(options.window);
  chains_.resize(options.window);
}

BlockStream::~BlockStream() {
  // READs still in flight would land in the next stream's buffer: take them first. A cancelled stream, or one
  // that met bad data, has broken its channel and does not wait.
  while (!channel_.broken() &&
         std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.reads_left > 0; })) {
    if (!PollCompletions(/*wait=*/true).ok()) channel_.Break();
  }
}

/// The chain whose next block must be posted; nullptr if there is none (yet).
absl::StatusOr<BlockStream::Chain*> BlockStream::ChainToPost() {
  while (true) {
    if (first_chain_ < end_chain_) {
      Chain& last = chain_at(end_chain_ - 1);
      SkipBlocks(last);
      if (last.posted < last.start.end) return last.posted < last.pointers.size() ? &last : nullptr;
      if (last.delivered == last.start.end) {
        --end_chain_;
        continue;
      }
    }
    if (end_chain_ - first_chain_ >= chains_ahead_) return nullptr;
    if (options_.slow_start && head_ < tail_ && claimed_ > 2 * counters_.blocks) return nullptr;
    NAM_ASSIGN_OR_RETURN(const bool more, Claim());
    if (!more) return nullptr;
  }
}

/// Takes the next chain from the source; false if there is none.
absl::StatusOr<bool> BlockStream::Claim() {
  while (!source_dry_) {
    std::optional<ChainStart> start = next_chain_();
    if (!start) {
      source_dry_ = true;
      break;
    }
    ++claimed_;
    start->end = std::min(start->end, start->blocks);
    if (start->first >= start->end) continue;
    Chain& chain = chain_at(end_chain_);
    chain.start = *std::move(start);
    chain.layout.Reset(table_.WidthsOf(chain.start), chain.start.block_rows,
                       PointerSlots(chain.start.blocks, table_.pointer_group), chain.start.text_bytes);
    chain.is_long = !in_place_ && chain.layout.bytes() > channel_.buffer().bytes() / slots_.size() / 64 * 64;
    if (chain.layout.bytes() > kMaxLongBlockBytes)
      return absl::DataLossError(absl::StrFormat("a block of %d bytes", chain.layout.bytes()));
    FindRuns(chain.layout, table_.columns, chain.runs);
    if (chain.start.first > 0) FindRuns(chain.layout, {}, chain.prefix);
    chain.pointers.assign(chain.start.head.begin(), chain.start.head.end());
    chain.posted = chain.delivered = 0;
    ++end_chain_;
    return true;
  }
  return false;
}

/// True if the block is not wanted and the pointers that it holds are known.
bool BlockStream::CanSkip(const Chain& chain, uint32_t index) const {
  const uint32_t number = chain.start.number, group = table_.pointer_group;
  if (index >= chain.start.first) {
    if (options_.known == nullptr || options_.sort_column < 0) return false;
    const auto zone = options_.known->SortZone(number, index);
    const uint64_t least = std::max(options_.sort_min, chain.start.sort_min);
    const uint64_t most = std::min(options_.sort_max, chain.start.sort_max);
    if (!zone || (zone->max >= least && zone->min <= most)) return false;
  }
  if (index % group != 0) return true;
  if (options_.known == nullptr) return false;
  // Pointers are learned in order: those of the previous group must be known.
  if (chain.pointers.size() < std::min<uint64_t>(uint64_t{index} + group, chain.start.blocks)) return false;
  for (uint64_t i = uint64_t{index} + group; i < std::min<uint64_t>(index + 2 * group, chain.start.blocks);
       ++i) {
    if (options_.known->Pointer(number, static_cast<uint32_t>(i)) == 0) return false;
  }
  return true;
}

void BlockStream::SkipBlocks(Chain& chain) {
  const uint32_t group = table_.pointer_group;
  while (chain.posted < chain.start.end && CanSkip(chain, chain.posted)) {
    if (chain.posted % group == 0) {
      const uint64_t first = uint64_t{chain.posted} + group;
      for (uint64_t i = first; i < std::min<uint64_t>(first + group, chain.start.blocks); ++i)
        chain.pointers.push_back(options_.known->Pointer(chain.start.number, static_cast<uint32_t>(i)));
    }
    counters_.skipped_blocks += chain.posted >= chain.start.first;
    ++chain.posted;
    ++chain.delivered;
  }
}

void BlockStream::DropDelivered() {
  while (first_chain_ < end_chain_ && chain_at(first_chain_).delivered == chain_at(first_chain_).start.end)
    ++first_chain_;
}

absl::Status BlockStream::Prepare(Slot& slot, uint32_t slot_number) {
  const Chain& chain = *slot.chain;
  const auto pointer = RemotePtr<void>::FromRaw(chain.pointers[slot.index]);
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(pointer, chain.layout.bytes()));
  const std::vector<ByteRange>& runs = slot.index < chain.start.first ? chain.prefix : chain.runs;
  uint64_t& bytes = counters_.bytes[pointer.server()];
  if (in_place_) {
    const auto view = target.queue_pair->View(target.address, chain.layout.bytes());
    if (!view.ok()) return channel_.Error(pointer.server(), view.status());
    slot.block = view->data();
    Prefetch<false>(slot.block, std::min(chain.layout.prefix_bytes(), kPrefixFetchedMax));
    for (const ByteRange& run : runs) bytes += run.bytes;
    return LearnPointers(slot);
  }
  if (chain.is_long) {  // nothing is in flight
    long_block_.resize(chain.layout.bytes());
    NAM_RETURN_IF_ERROR(channel_.Read(pointer, long_block_, options_.cancel));
    slot.block = long_block_.data();
    bytes += long_block_.size();
    return LearnPointers(slot);
  }
  const uint64_t at = channel_.buffer().bytes() / slots_.size() / 64 * 64 * slot_number;
  slot.block = channel_.buffer().data() + at;
  std::vector<fabric::WorkRequest>& batch = BatchOf(*target.queue_pair);
  for (const ByteRange& run : runs) {
    batch.push_back(fabric::WorkRequest::Read(slot_number,
                                              channel_.buffer().Slice(at + run.offset, run.bytes),
                                              {target.address.rkey, target.address.offset + run.offset}));
    bytes += run.bytes;
  }
  return absl::OkStatus();
}

std::vector<fabric::WorkRequest>& BlockStream::BatchOf(fabric::QueuePair& queue_pair) {
  for (Batch& batch : batches_) {
    if (batch.queue_pair == &queue_pair) return batch.reads;
  }
  return batches_.emplace_back(Batch{&queue_pair, {}}).reads;
}

absl::Status BlockStream::PostBatches() {
  for (Batch& batch : batches_) {
    if (batch.reads.empty()) continue;
    NAM_RETURN_IF_ERROR(batch.queue_pair->Post(batch.reads));
    ++counters_.posts;
    for (const fabric::WorkRequest& read : batch.reads) ++slots_[read.id].reads_left;
    batch.reads.clear();
  }
  return absl::OkStatus();
}

/// Where posts are calls, posts half a window at a time.
absl::Status BlockStream::Fill() {
  if (posts_are_calls_) {
    if (tail_ - head_ > refill_at_) return absl::OkStatus();
    const int64_t now_ns = channel_.fabric().clock().NowNs();
    if (now_ns - filled_ns_ < kSoonUs * 1000) MoreChainsAhead();
    filled_ns_ = now_ns;
  }
  while (tail_ - head_ < slots_.size()) {
    NAM_ASSIGN_OR_RETURN(Chain * chain, ChainToPost());
    if (chain == nullptr) break;
    // Such a block has the channel to itself.
    if (tail_ > head_ && (chain->is_long || slots_[(tail_ - 1) % slots_.size()].chain->is_long)) break;
    const auto number = static_cast<uint32_t>(tail_ % slots_.size());
    Slot& slot = slots_[number];
    slot = Slot{chain, chain->posted++};
    ++tail_;
    NAM_RETURN_IF_ERROR(Prepare(slot, number));
  }
  refill_at_ = (tail_ - head_) / 2;
  return PostBatches();
}

/// Learns, from a block that leads a pointer group, the pointers of the next group.
absl::Status BlockStream::LearnPointers(const Slot& slot) {
  Chain& chain = *slot.chain;
  if (slot.index % table_.pointer_group != 0 || chain.layout.pointer_slots() == 0) return absl::OkStatus();
  const BlockView view(chain.layout, slot.block);
  NAM_RETURN_IF_ERROR(
      view.CheckPrefix(table_.AllocationOf(chain.start), chain.start.partition, slot.index, options_.verify));
  for (uint64_t pointer : view.pointers()) {
    if (chain.pointers.size() >= chain.start.blocks) break;
    if (pointer == 0) return absl::DataLossError("a pointer group ends before its chain");
    if (options_.known != nullptr)
      options_.known->LearnPointer(chain.start.number, static_cast<uint32_t>(chain.pointers.size()), pointer);
    chain.pointers.push_back(pointer);
  }
  return absl::OkStatus();
}

absl::Status BlockStream::PollCompletions(bool wait) {
  std::array<fabric::Completion, 64> done;
  size_t n = channel_.completions().Poll(done);
  if (n == 0 && wait) {
    if (counters_.blocks > 0) MoreChainsAhead();
    Clock& clock = channel_.fabric().clock();
    const int64_t from_ns = clock.NowNs();
    const Deadline give_up{from_ns + channel_.options().operation_timeout_us * 1000};
    while (n == 0) {
      if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
        return absl::CancelledError("cancelled");
      }
      if (clock.Passed(give_up)) return channel_.TimedOut("blocks");
      n = channel_.completions().Wait(done, std::min(give_up, clock.After(kCancelCheckUs),
                                                     [](Deadline a, Deadline b) { return a.ns < b.ns; }));
    }
    counters_.waiting_ns += clock.NowNs() - from_ns;
  }
  for (size_t i = 0; i < n; ++i) {
    if (!done[i].ok()) return channel_.Error(done[i]);
    NAM_CHECK(done[i].id < slots_.size() && slots_[done[i].id].reads_left > 0,
              "completion of another's READ");
    Slot& slot = slots_[done[i].id];
    if (--slot.reads_left == 0) NAM_RETURN_IF_ERROR(LearnPointers(slot));
  }
  return absl::OkStatus();
}

absl::Status BlockStream::AwaitHead() {
  Slot& slot = slots_[head_ % slots_.size()];
  while (slot.reads_left > 0) NAM_RETURN_IF_ERROR(PollCompletions(/*wait=*/true));
  return absl::OkStatus();
}

absl::Status BlockStream::Deliver(Slot& slot, BlockView& block) {
  Chain& chain = *slot.chain;
  block = BlockView(chain.layout, slot.block);
  const uint32_t number = chain.start.number;
  KnownBlocks* const known = options_.known;
  // A copy is checked every time; memory read in place, once.
  const uint64_t whole = in_place_ && known != nullptr ? known->Verified(number, slot.index) : 0;
  const bool verify_prefix = options_.verify && (whole & KnownBlocks::kPrefix) == 0;
  NAM_RETURN_IF_ERROR(
      block.CheckPrefix(table_.AllocationOf(chain.start), chain.start.partition, slot.index, verify_prefix));
  uint64_t checked = verify_prefix ? KnownBlocks::kPrefix : 0;
  for (uint32_t column : table_.columns) {
    if (!options_.verify || (whole & KnownBlocks::Column(column)) != 0) continue;
    NAM_RETURN_IF_ERROR(block.CheckPage(column));
    checked |= KnownBlocks::Column(column);
  }
  if (in_place_ && known != nullptr && checked != 0) known->SetVerified(number, slot.index, checked);
  if (known != nullptr && options_.sort_column >= 0 && ((checked | whole) & KnownBlocks::kPrefix) != 0 &&
      !known->SortZone(number, slot.index)) {
    const ColumnZone& zone = block.zone(static_cast<uint32_t>(options_.sort_column));
    known->LearnSortZone(number, slot.index, {zone.min, zone.max});
  }
  ++counters_.blocks;
  counters_.rows += block.rows();
  return absl::OkStatus();
}

/// Frees the slot, and its chain after its last block.
void BlockStream::FreeHead() {
  ++slots_[head_++ % slots_.size()].chain->delivered;
  DropDelivered();
}

absl::StatusOr<bool> BlockStream::Next(BlockView& block) {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
    return absl::CancelledError("cancelled");
  }
  // The channel's previous user may have lost a connection after it had everything it wanted.
  if (channel_.broken())
    return absl::UnavailableError("a connection to a memory server was lost before; ask again");
  if (std::exchange(delivered_, false)) FreeHead();  // the caller is done with it
  while (true) {
    NAM_RETURN_IF_ERROR(Fill());
    if (head_ == tail_) return false;
    NAM_RETURN_IF_ERROR(AwaitHead());
    Slot& slot = slots_[head_ % slots_.size()];
    if (slot.index >= slot.chain->start.first) {
      NAM_RETURN_IF_ERROR(Deliver(slot, block));
      delivered_ = true;
      if (in_place_ && head_ + 1 < tail_) FetchPages(slots_[(head_ + 1) % slots_.size()]);
      return true;
    }
    FreeHead();  // READ only for its pointers
  }
}

void BlockStream::FetchPages(const Slot& slot) const {
  const BlockLayout& layout = slot.chain->layout;
  for (const uint32_t column : table_.columns) {
    Prefetch<false>(slot.block + layout.page_offset(column),
                    std::min(layout.page_bytes(column), kPageFetchedMax));
  }
}

}  // namespace nam::storage
