#include "storage/multicast_sender.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/block.h"
#include "storage/channel.h"

namespace nam::storage {
namespace {

/// Datagrams posted together; the last one is signaled.
constexpr uint32_t kDatagramsAtOnce = 16;
/// Pauses between checks for credit: the first one, doubling up to the last.
constexpr int64_t kFirstPauseUs = 1;
constexpr int64_t kLastPauseUs = 64;

MulticastBoard& BoardOf(fabric::MemoryRegion& region) {
  return *reinterpret_cast<MulticastBoard*>(region.data());
}

}  // namespace

MulticastSender::MulticastSender(fabric::Fabric& fabric, BlockSource source,
                                 std::vector<MulticastExtent> extents, const MulticastSenderOptions& options)
    : fabric_(fabric),
      source_(std::move(source)),
      extents_(std::move(extents)),
      options_(options),
      members_(options.members),
      lengths_(options.send_depth) {}

MulticastSender::~MulticastSender() = default;

absl::StatusOr<std::unique_ptr<MulticastSender>> MulticastSender::Open(
    fabric::Fabric& fabric, const BlockSource& source, std::vector<MulticastExtent> extents,
    const MulticastSenderOptions& options) {
  if (options.members < 1 || options.members > kMulticastMembersMax) {
    return absl::InvalidArgumentError(absl::StrFormat("a multicast stream has 1 to %d members, not %d",
                                                      kMulticastMembersMax, options.members));
  }
  NAM_CHECK(options.send_depth >= 2 * kDatagramsAtOnce);
  std::unique_ptr<MulticastSender> sender(new MulticastSender(fabric, source, std::move(extents), options));
  NAM_RETURN_IF_ERROR(sender->Prepare());
  NAM_RETURN_IF_ERROR(sender->CheckExtents());
  return sender;
}

absl::Status MulticastSender::Prepare() {
  NAM_ASSIGN_OR_RETURN(completions_, fabric_.CreateCompletionQueue(options_.send_depth + 1));
  NAM_ASSIGN_OR_RETURN(
      queue_pair_, fabric_.CreateDatagramQueuePair(*completions_,
                                                   {.send_depth = options_.send_depth, .receive_depth = 1}));
  NAM_ASSIGN_OR_RETURN(group_, queue_pair_->OpenGroup(options_.group));
  NAM_ASSIGN_OR_RETURN(address_.group, queue_pair_->GroupAddress(group_));
  NAM_ASSIGN_OR_RETURN(ring_, fabric_.Allocate(size_t{options_.send_depth} * fabric::kMaxDatagramBytes,
                                               {.access = fabric::Access::kNone, .huge_pages = false}));
  NAM_ASSIGN_OR_RETURN(
      board_region_,
      fabric_.Allocate(sizeof(MulticastBoard),
                       {.access = fabric::Access::kRead | fabric::Access::kWrite, .huge_pages = false}));
  NAM_CHECK(queue_pair_->bytes_max() > sizeof(FragmentHeader));
  address_.server = options_.server;
  address_.stream = fabric_.Random();
  address_.board = board_region_->rkey();
  // A multiple of 8, so that fragments keep a block's words aligned.
  address_.fragment_bytes =
      (queue_pair_->bytes_max() - static_cast<uint32_t>(sizeof(FragmentHeader))) / 8 * 8;
  return absl::OkStatus();
}

absl::Status MulticastSender::CheckExtents() const {
  uint64_t blocks = 0, datagrams = 0;
  for (const MulticastExtent& extent : extents_) {
    uint64_t end = 0;
    for (const ByteRange& run : extent.runs) {
      if (run.bytes == 0 || run.offset < end || uint64_t{run.offset} + run.bytes > kMaxBlockBytes)
        return absl::InvalidArgumentError("the runs of a multicast block overlap, or leave the block");
      end = uint64_t{run.offset} + run.bytes;
    }
    if (end == 0) return absl::InvalidArgumentError("a multicast block of no bytes");
    for (const RemotePtr<void> block : extent.blocks) {
      if (block.server() != options_.server || source_(block, end) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrFormat("memory server %d has no block of %d bytes at offset %d to multicast",
                            options_.server.value(), end, block.offset()));
      }
    }
    blocks += extent.blocks.size();
    datagrams += extent.blocks.size() * FragmentsOf(TotalBytes(extent.runs), address_.fragment_bytes);
  }
  if (blocks <= kMulticastBlocksMax && datagrams <= kMulticastDatagramsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d blocks in %d datagrams are too many for one multicast stream", blocks, datagrams));
}

absl::Status MulticastSender::Run(const std::atomic<bool>& cancel) {
  give_up_ = fabric_.clock().After(options_.stream_timeout_us);
  absl::Status status = AwaitMembers(cancel);
  if (status.ok()) status = SendAll(cancel);
  if (status.ok()) status = Flush();
  // Destroying the queue pair would drop its pending sends.
  while (status.ok() && completed_ < posted_) status = AwaitCompletions(cancel);
  Publish(/*ended=*/true);
  return status;
}

absl::Status MulticastSender::SendAll(const std::atomic<bool>& cancel) {
  for (const MulticastExtent& extent : extents_) {
    for (const RemotePtr<void> block : extent.blocks) {
      if (limit_ == kMulticastLeft) return absl::OkStatus();  // no member waits any more
      NAM_RETURN_IF_ERROR(SendBlock(extent, block, cancel));
      ++block_;
    }
  }
  return absl::OkStatus();
}

absl::Status MulticastSender::SendBlock(const MulticastExtent& extent, RemotePtr<void> block,
                                        const std::atomic<bool>& cancel) {
  const std::byte* from = source_(block, extent.runs.back().offset + extent.runs.back().bytes);
  if (from == nullptr) return absl::DataLossError("a block that is being multicast is gone");
  FragmentHeader header = {};
  header.magic = FragmentHeader::kMagic;
  header.stream = address_.stream;
  header.block = block_;
  header.block_bytes = TotalBytes(extent.runs);
  header.fragments = FragmentsOf(header.block_bytes, address_.fragment_bytes);
  auto run = extent.runs.begin();
  uint32_t in_run = 0;
  for (; header.fragment < header.fragments; ++header.fragment) {
    if (prepared_ >= limit_) NAM_RETURN_IF_ERROR(AwaitCredit(cancel));
    NAM_ASSIGN_OR_RETURN(std::byte * to, NextBuffer(cancel));
    header.datagram = prepared_;
    header.offset = header.fragment * address_.fragment_bytes;
    header.bytes = std::min(address_.fragment_bytes, header.block_bytes - header.offset);
    EncodeFragmentHeader(header, to);
    to += sizeof(header);
    for (uint32_t left = header.bytes; left > 0;) {
      const uint32_t n = std::min(left, run->bytes - in_run);
      std::memcpy(to, from + run->offset + in_run, n);
      to += n, left -= n, in_run += n;
      if (in_run == run->bytes) ++run, in_run = 0;
    }
    lengths_[prepared_ % options_.send_depth] = static_cast<uint32_t>(sizeof(header)) + header.bytes;
    counters_.bytes += header.bytes;
    if (++prepared_ - posted_ == kDatagramsAtOnce) NAM_RETURN_IF_ERROR(Flush());
  }
  ++counters_.blocks;
  return absl::OkStatus();
}

/// A place in the ring that no send in flight uses.
absl::StatusOr<std::byte*> MulticastSender::NextBuffer(const std::atomic<bool>& cancel) {
  std::array<fabric::Completion, kDatagramsAtOnce> done;
  HandleCompletions({done.data(), completions_->Poll(done)});
  while (prepared_ - completed_ == options_.send_depth) NAM_RETURN_IF_ERROR(AwaitCompletions(cancel));
  return ring_->data() + size_t{prepared_ % options_.send_depth} * fabric::kMaxDatagramBytes;
}

absl::Status MulticastSender::AwaitCompletions(const std::atomic<bool>& cancel) {
  NAM_RETURN_IF_ERROR(CheckRunning(cancel));
  std::array<fabric::Completion, kDatagramsAtOnce> done;
  HandleCompletions({done.data(), completions_->Wait(done, fabric_.clock().After(kCancelCheckUs))});
  return absl::OkStatus();
}

absl::Status MulticastSender::Flush() {
  if (prepared_ == posted_) return absl::OkStatus();
  std::array<fabric::DatagramRequest, kDatagramsAtOnce> batch;
  size_t n = 0;
  uint64_t bytes = 0;
  for (uint32_t datagram = posted_; datagram < prepared_; ++datagram) {
    const uint32_t place = datagram % options_.send_depth;
    batch[n++] = {
        .id = datagram,
        .signal = datagram + 1 == prepared_ ? fabric::Signal::kSignaled : fabric::Signal::kUnsignaled,
        .local = ring_->Slice(size_t{place} * fabric::kMaxDatagramBytes, lengths_[place]),
        .to = group_};
    bytes += lengths_[place];
  }
  fabric_.clock().Charge(MulticastCpuNs(n, bytes));
  NAM_RETURN_IF_ERROR(queue_pair_->Post({batch.data(), n}));
  posted_ = prepared_;
  counters_.datagrams = posted_;
  Publish(/*ended=*/false);
  return absl::OkStatus();
}

/// One signaled send completes all before it.
void MulticastSender::HandleCompletions(std::span<const fabric::Completion> done) {
  for (const fabric::Completion& completion : done)
    completed_ = std::max(completed_, static_cast<uint32_t>(completion.id) + 1);
}

void MulticastSender::Publish(bool ended) {
  std::atomic_ref<uint64_t>(BoardOf(*board_region_).progress)
      .store(posted_ | (ended ? kMulticastEnded : 0), std::memory_order_release);
}

uint32_t MulticastSender::RefreshLimit() {
  MulticastBoard& board = BoardOf(*board_region_);
  uint32_t joined = 0;
  limit_ = kMulticastLeft;
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    const uint64_t credit = std::atomic_ref<uint64_t>(board.credit[m]).load(std::memory_order_acquire);
    if (credit > member.credit) {
      member.credit = credit;
      member.changed_ns = fabric_.clock().NowNs();
    }
    joined += member.credit > 0;
    if (!member.left_behind) limit_ = std::min(limit_, member.credit);
  }
  return joined;
}

absl::Status MulticastSender::CheckRunning(const std::atomic<bool>& cancel) const {
  if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
  if (!fabric_.clock().Passed(give_up_)) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrFormat("the multicast stream was not done within %d ms", options_.stream_timeout_us / 1000));
}

/// Waits briefly for members to WRITE; longer with each call in a row.
absl::Status MulticastSender::Pause(const std::atomic<bool>& cancel, int64_t& pause_us) {
  NAM_RETURN_IF_ERROR(CheckRunning(cancel));
  std::array<fabric::Completion, kDatagramsAtOnce> done;
  HandleCompletions({done.data(), completions_->Wait(done, fabric_.clock().After(pause_us))});
  pause_us = std::min(2 * pause_us, kLastPauseUs);
  return absl::OkStatus();
}

absl::Status MulticastSender::AwaitMembers(const std::atomic<bool>& cancel) {
  const int64_t from_ns = fabric_.clock().NowNs();
  const Deadline join_end = fabric_.clock().After(options_.join_timeout_us);
  int64_t pause_us = kFirstPauseUs;
  uint32_t joined = RefreshLimit();
  while (joined < members_.size() && !fabric_.clock().Passed(join_end)) {
    NAM_RETURN_IF_ERROR(Pause(cancel, pause_us));
    joined = RefreshLimit();
  }
  counters_.waiting_ns += fabric_.clock().NowNs() - from_ns;
  if (joined == 0) return absl::DeadlineExceededError("no member joined the multicast stream in time");
  for (Member& member : members_) {
    if (member.credit > 0) continue;
    member.left_behind = true;
    ++counters_.members_left_behind;
  }
  RefreshLimit();
  return absl::OkStatus();
}

absl::Status MulticastSender::AwaitCredit(const std::atomic<bool>& cancel) {
  RefreshLimit();
  if (prepared_ < limit_) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Flush());  // members may wait for unposted datagrams
  const int64_t blocked_ns = fabric_.clock().NowNs();
  int64_t pause_us = kFirstPauseUs;
  while (prepared_ >= limit_) {
    NAM_RETURN_IF_ERROR(Pause(cancel, pause_us));
    RefreshLimit();
    LeaveStalledMembersBehind(blocked_ns);
  }
  counters_.waiting_ns += fabric_.clock().NowNs() - blocked_ns;
  return absl::OkStatus();
}

void MulticastSender::LeaveStalledMembersBehind(int64_t blocked_since_ns) {
  const int64_t now_ns = fabric_.clock().NowNs();
  bool changed = false;
  for (Member& member : members_) {
    if (member.left_behind || member.credit > prepared_) continue;
    if (now_ns - std::max(blocked_since_ns, member.changed_ns) < options_.member_timeout_us * 1000) continue;
    member.left_behind = changed = true;
    ++counters_.members_left_behind;
  }
  if (changed) RefreshLimit();
}

}  // namespace nam::storage
