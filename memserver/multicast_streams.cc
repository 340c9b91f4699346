#include "memserver/multicast_streams.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::memserver {
namespace {

constexpr size_t kStreamsMax = 16;
constexpr uint32_t kTimeoutMsMin = 100;
constexpr uint32_t kTimeoutMsMax = 60'000;
/// The board survives its stream's deadline this long, for members that look at it.
constexpr int64_t kForgetAfterNs = 60'000'000'000;

absl::StatusOr<std::vector<storage::MulticastExtent>> ExtentsFrom(const proto::StartMulticastRequest& request,
                                                                  uint64_t bytes_max) {
  std::vector<storage::MulticastExtent> extents;
  uint64_t bytes = 0;
  for (const proto::MulticastExtent& from : request.extents()) {
    storage::MulticastExtent& extent = extents.emplace_back();
    if (from.run_offsets_size() != from.run_bytes_size())
      return absl::InvalidArgumentError("an extent to multicast has offsets without lengths");
    uint64_t block_bytes = 0;
    for (int i = 0; i < from.run_bytes_size(); ++i) {
      extent.runs.push_back({from.run_offsets(i), from.run_bytes(i)});
      block_bytes += from.run_bytes(i);
    }
    for (const uint64_t block : from.blocks())
      extent.blocks.push_back(storage::RemotePtr<void>::FromRaw(block));
    bytes += block_bytes * extent.blocks.size();
  }
  if (bytes <= bytes_max) return extents;
  return absl::ResourceExhaustedError(absl::StrFormat("a multicast stream of %s; at most %s are possible",
                                                      ReadableBytes(bytes), ReadableBytes(bytes_max)));
}

}  // namespace

MulticastStreams::Stream::~Stream() {
  cancel = true;
  thread.reset();  // before the sender that it uses
}

MulticastStreams::~MulticastStreams() {
  Streams all;
  const MutexLock lock(mutex_);
  all.swap(streams_);
}

/// Ends the streams of `group`, and streams that were not ended in time.
void MulticastStreams::EndStale(uint32_t group) {
  Streams stale;  // destroyed without the lock: that waits for their threads
  const int64_t now_ns = fabric_.clock().NowNs();
  const MutexLock lock(mutex_);
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto next = std::next(at);
    if (at->second->group == group || at->second->forget_ns < now_ns) stale.insert(streams_.extract(at));
    at = next;
  }
}

absl::StatusOr<proto::StartMulticastReply> MulticastStreams::Start(
    MemoryServerId self, const proto::StartMulticastRequest& request) {
  NAM_ASSIGN_OR_RETURN(std::vector<storage::MulticastExtent> extents,
                       ExtentsFrom(request, pool_.capacity_bytes()));
  const uint32_t timeout_ms = std::clamp(request.timeout_ms(), kTimeoutMsMin, kTimeoutMsMax);
  EndStale(request.group());
  const MutexLock lock(mutex_);
  if (streams_.size() >= kStreamsMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("this memory server already sends %d multicast streams", streams_.size()));
  }
  storage::MulticastSenderOptions options;
  options.server = self;
  options.group = request.group();
  options.members = request.members();
  options.stream_timeout_us = int64_t{timeout_ms} * 1000;
  auto stream = std::make_unique<Stream>();
  const auto source = [&pool = pool_](storage::RemotePtr<void> block, uint64_t bytes) {
    return pool.Find(block.offset(), bytes);
  };
  NAM_ASSIGN_OR_RETURN(stream->sender,
                       storage::MulticastSender::Open(fabric_, source, std::move(extents), options));
  stream->group = request.group();
  stream->forget_ns = fabric_.clock().NowNs() + options.stream_timeout_us * 1000 + kForgetAfterNs;
  const storage::MulticastAddress& address = stream->sender->address();
  proto::StartMulticastReply reply;
  reply.set_stream(address.stream);
  reply.set_group_address(address.group);
  reply.set_board_rkey(address.board.value);
  reply.set_fragment_bytes(address.fragment_bytes);
  // Errors on the way are ignored: members repair by READ.
  stream->thread = fabric_.StartThread(
      "nam-multicast", [stream = stream.get()] { stream->sender->Run(stream->cancel).IgnoreError(); });
  streams_.emplace(address.stream, std::move(stream));
  return reply;
}

absl::StatusOr<proto::EndMulticastReply> MulticastStreams::End(const proto::EndMulticastRequest& request) {
  Streams::node_type ended;
  {
    const MutexLock lock(mutex_);
    ended = streams_.extract(request.stream());
  }
  if (ended.empty()) return absl::NotFoundError("there is no such multicast stream any more");
  Stream& stream = *ended.mapped();
  stream.cancel = true;
  stream.thread.reset();
  const storage::MulticastSenderCounters& counters = stream.sender->counters();
  proto::EndMulticastReply reply;
  reply.set_blocks(counters.blocks);
  reply.set_datagrams(counters.datagrams);
  reply.set_bytes(counters.bytes);
  reply.set_members_left_behind(counters.members_left_behind);
  return reply;
}

}  // namespace nam::memserver
