#include <utility>
#include <vector>

#include "fabric/sim/endpoint.h"

/// In-place operations, which the calling thread executes.
namespace nam::fabric::sim {
namespace {

/// The cost of a cache line from another processor.
constexpr int64_t kInPlaceNs = 100;

}  // namespace

const std::byte* Endpoint::View(RemoteAddress from, size_t bytes) {
  const std::shared_ptr<Endpoint> responder = peer_.lock();
  std::byte* at = nullptr;
  if (!ready_ || responder == nullptr || !responder->ready_ || bytes > kMaxMessageBytes) return nullptr;
  const Regions& regions = responder->process_.regions;
  if (regions.Resolve(from, static_cast<uint32_t>(bytes), Access::kRead, at) != CompletionStatus::kOk) {
    return nullptr;
  }
  viewed_.try_emplace(from.rkey.value, regions.MemoryOf(from.rkey));
  return at;
}

CompletionStatus Endpoint::ExecuteNow(const WorkRequest& request, uint64_t* old) {
  network_.Record(Trace::Kind::kPost, id_, posted(), static_cast<uint64_t>(request.opcode),
                  request.remote.rkey.value, request.remote.offset, request.local.bytes);
  network_.scheduler().Charge(process_.host.nic.Slowed(peers_host_->nic.Slowed(kInPlaceNs)));
  const bool breaks = Draw(network_.faults().queue_pair_error);
  if (breaks)
    network_.Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kOperationBreaks), id_, posted());
  // The operation may take effect although its connection breaks.
  const bool executes = !breaks || network_.random().Below(2) == 0;
  const bool copies = request.opcode == Opcode::kRead || request.opcode == Opcode::kWrite;
  CompletionStatus status = CompletionStatus::kOk;
  if (executes) {
    status = copies ? CopyNow(request) : ChangeWordNow(request, old);
    network_.Record(Trace::Kind::kExecute, id_, posted(), static_cast<uint64_t>(status));
  }
  if (breaks && status == CompletionStatus::kOk) status = CompletionStatus::kPeerLost;
  if (status != CompletionStatus::kOk) Fail(status, true);
  return status;
}

CompletionStatus Endpoint::ResolveNow(const WorkRequest& request, std::byte*& at) {
  Scheduler& scheduler = network_.scheduler();
  scheduler.Sync();
  while (ready_ && (executed_ < posted() || overtaken_ > 0))
    scheduler.SleepUntil({scheduler.NowNs() + kInPlaceNs});
  while (ready_ && !network_.PassesBothWays(process_.host, *peers_host_)) {
    scheduler.SleepUntil({scheduler.NowNs() + kRetransmitNs});
  }
  const std::shared_ptr<Endpoint> responder = peer_.lock();
  if (!ready_) return CompletionStatus::kFlushed;
  if (responder == nullptr || !responder->ready_) return CompletionStatus::kPeerLost;
  return responder->ResolveForPeer(request, at);
}

// The key is looked up for every part: revoking it ends the operation.
CompletionStatus Endpoint::CopyNow(const WorkRequest& request) {
  Scheduler& scheduler = network_.scheduler();
  std::vector<uint32_t> cuts = {0, request.local.bytes};
  if (request.local.bytes > 2 * kWordBytes && Draw(network_.faults().torn_operation)) {
    cuts = Cuts(request, false);
  }
  const bool backwards = cuts.size() > 2 && network_.random().Below(2) == 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (i > 0)
      scheduler.SleepUntil({scheduler.NowNs() + 1 + network_.random().UpTo(network_.faults().torn_ns_max)});
    std::byte* at = nullptr;
    const CompletionStatus status = ResolveNow(request, at);
    if (status != CompletionStatus::kOk) return status;
    const size_t part = backwards ? cuts.size() - 2 - i : i;
    const uint32_t begin = cuts[part], bytes = cuts[part + 1] - begin;
    if (request.opcode == Opcode::kRead) {
      Copy(request.local.data + begin, at + begin, bytes);
    } else {
      Copy(at + begin, request.local.data + begin, bytes);
    }
  }
  return CompletionStatus::kOk;
}

CompletionStatus Endpoint::ChangeWordNow(const WorkRequest& request, uint64_t* old) {
  std::byte* at = nullptr;
  const CompletionStatus status = ResolveNow(request, at);
  if (status == CompletionStatus::kOk) *old = ExecuteAtomic(request, at);
  return status;
}

}  // namespace nam::fabric::sim
