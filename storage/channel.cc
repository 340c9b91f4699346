#include "storage/channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/process_limits.h"
#include "base/status_macros.h"

namespace nam::storage {
namespace {

const fabric::ServerRegions::Region* RegionOf(const fabric::ServerRegions& regions, uint64_t offset) {
  auto after = std::upper_bound(regions.regions.begin(), regions.regions.end(), offset,
                                [](uint64_t at, const auto& region) { return at < region.offset; });
  if (after == regions.regions.begin()) return nullptr;
  const auto& region = *std::prev(after);
  return offset - region.offset < region.bytes ? &region : nullptr;
}

absl::Status BuriedError(const std::string& name) {
  return absl::UnavailableError(absl::StrFormat("%s is gone: it is buried", name));
}

constexpr size_t kTransferBytes = 64 * 1024;
/// Nearly every live server answers within this time.
constexpr int64_t kConnectLookUpUs = 700'000;

/// An interruptible thread checks for interruption between tries. Each try takes twice the time of the one
/// before, so that slow servers are reached as well.
absl::StatusOr<std::unique_ptr<fabric::QueuePair>> Connect(fabric::Fabric& fabric, const std::string& address,
                                                           fabric::CompletionQueue& completions,
                                                           const ChannelOptions& options,
                                                           const fabric::MemberCredentials& member) {
  Clock& clock = fabric.clock();
  const Deadline deadline = clock.After(options.connect_timeout_us);
  for (int64_t look_up_us = kConnectLookUpUs;; look_up_us *= 2) {
    const bool looks_up = Interruption::flag() != nullptr;
    const Deadline until{looks_up ? std::min(deadline.ns, clock.After(look_up_us).ns) : deadline.ns};
    auto queue_pair =
        fabric.Connect(address, completions,
                       {.send_depth = options.queue_depth, .receive_depth = 1, .member = member}, until);
    if (queue_pair.ok() || !clock.Passed(until) || clock.Passed(deadline)) return queue_pair;
    if (Interruption::requested()) return absl::CancelledError("cancelled");
  }
}

}  // namespace

absl::StatusOr<fabric::Grant::Use> UseOf(const std::shared_ptr<fabric::Grant>& grant) {
  std::optional<fabric::Grant::Use> use = fabric::Grant::Use::Of(grant);
  if (use.has_value()) return *std::move(use);
  return absl::PermissionDeniedError(
      absl::StrFormat("allocation %d is over, so this process must no longer change its memory",
                      grant->allocation().value()));
}

absl::StatusOr<std::unique_ptr<Channel>> Channel::Open(fabric::Fabric& fabric,
                                                       fabric::RegionDirectory& directory,
                                                       const ChannelOptions& options) {
  std::unique_ptr<Channel> channel(new Channel(fabric, directory, options));
  NAM_RETURN_IF_ERROR(channel->AddBuffer(options.buffer_bytes));
  NAM_ASSIGN_OR_RETURN(channel->completions_,
                       fabric.CreateCompletionQueue((options.queue_depth + 1) * options.servers_max +
                                                    options.datagram_depth + 1));
  return channel;
}

absl::Status Channel::AddBuffer(size_t bytes) {
  NAM_ASSIGN_OR_RETURN(auto buffer, fabric_.Allocate(bytes, {.access = fabric::Access::kNone}));
  buffers_.push_back(std::move(buffer));
  return absl::OkStatus();
}

fabric::LocalKey Channel::KeyOfAdded(const std::byte* data) const {
  for (const auto& buffer : buffers_) {
    if (static_cast<size_t>(data - buffer->data()) < buffer->bytes()) return buffer->lkey();
  }
  return {};  // completes with kLocalError
}

absl::StatusOr<Channel::Endpoint*> Channel::EndpointOf(MemoryServerId server) {
  if (const auto found = endpoints_.find(server); found != endpoints_.end()) return found->second.get();
  const fabric::Gate::Pause pause(*gate_);
  auto& endpoint = endpoints_[server];
  auto fresh = std::make_unique<Endpoint>();
  auto regions = directory_.Lookup(server, /*refresh=*/false);
  if (!regions.ok()) {
    endpoints_.erase(server);
    return regions.status();
  }
  fresh->regions = *std::move(regions);
  auto queue_pair = Connect(fabric_, fresh->regions->fabric_address, *completions_, options_,
                            fabric::CredentialsFor(self_, fresh->regions->member));
  if (!queue_pair.ok()) {
    endpoints_.erase(server);
    if (IsProcessLimit(queue_pair.status())) return queue_pair.status();
    // The member is over: this channel can change nothing any more; only a new one can.
    const bool over = absl::IsPermissionDenied(queue_pair.status());
    broken_ = broken_ || over;
    return absl::Status(over ? absl::StatusCode::kUnavailable : queue_pair.status().code(),
                        absl::StrFormat("cannot connect to %s: %s", fresh->regions->name,
                                        std::string(queue_pair.status().message())));
  }
  if (directory_.Buried(fresh->regions->member,
                        /*ask=*/false)) {  // LookForBurials did not see the endpoint yet
    const std::string name = fresh->regions->name;
    endpoints_.erase(server);
    return BuriedError(name);
  }
  fresh->queue_pair = *std::move(queue_pair);
  if (in_place_) fresh->now = dynamic_cast<fabric::ImmediateOperations*>(fresh->queue_pair.get());
  endpoint = std::move(fresh);
  return endpoint.get();
}

// Another channel of the process may know the region.
absl::StatusOr<Channel::Target> Channel::Resolve(RemotePtr<void> pointer, uint64_t bytes) {
  NAM_ASSIGN_OR_RETURN(Endpoint * endpoint, EndpointOf(pointer.server()));
  const auto* region = RegionOf(*endpoint->regions, pointer.offset());
  for (const bool refresh : {false, true}) {
    if (region != nullptr) break;
    const fabric::Gate::Pause pause(*gate_);
    NAM_ASSIGN_OR_RETURN(std::shared_ptr<const fabric::ServerRegions> regions,
                         directory_.Lookup(pointer.server(), refresh));
    if (regions->member !=
        endpoint->regions->member) {  // the connection is to the storage id's former member
      broken_ = true;
      return BuriedError(endpoint->regions->name);
    }
    endpoint->regions = std::move(regions);
    region = RegionOf(*endpoint->regions, pointer.offset());
  }
  if (region == nullptr || bytes > region->bytes - (pointer.offset() - region->offset)) {
    return absl::OutOfRangeError(absl::StrFormat("%s has no memory at offset %d for %d bytes",
                                                 endpoint->regions->name, pointer.offset(), bytes));
  }
  return Target{endpoint->queue_pair.get(), {region->rkey, pointer.offset() - region->offset}, endpoint->now};
}

absl::StatusOr<Channel::Target> Channel::TargetOf(MemoryServerId server, fabric::RemoteAddress address) {
  NAM_ASSIGN_OR_RETURN(Endpoint * endpoint, EndpointOf(server));
  return Target{endpoint->queue_pair.get(), address, endpoint->now};
}

absl::StatusOr<fabric::QueuePair*> Channel::QueuePairOf(MemoryServerId server) {
  NAM_ASSIGN_OR_RETURN(Endpoint * endpoint, EndpointOf(server));
  return endpoint->queue_pair.get();
}

absl::Status Channel::Named(MemoryServerId server, const absl::Status& status) const {
  if (IsProcessLimit(status)) return status;  // not the server's
  const auto found = endpoints_.find(server);
  const std::string name = found == endpoints_.end() ? absl::StrFormat("memory server %d", server.value())
                                                     : found->second->regions->name;
  return absl::Status(status.code(), absl::StrFormat("%s: %s", name, std::string(status.message())));
}

absl::Status Channel::Error(const fabric::Completion& completion) {
  broken_ = true;
  for (const auto& [server, endpoint] : endpoints_) {
    if (endpoint->queue_pair->id() != completion.queue_pair) continue;
    return Named(server, fabric::CompletionError(completion, *endpoint->queue_pair));
  }
  return absl::InternalError("a completion came from an unknown queue pair");
}

absl::Status Channel::Error(MemoryServerId server, const absl::Status& status) {
  broken_ = true;
  return Named(server, status);
}

absl::Status Channel::TimedOut(const char* waiting_for) {
  broken_ = true;
  std::string servers;
  for (const auto& [server, endpoint] : endpoints_) {
    servers += (servers.empty() ? "" : ", ") + endpoint->regions->name;
  }
  return absl::UnavailableError(absl::StrFormat("no answer within %d ms while waiting for %s from one of: %s",
                                                options_.operation_timeout_us / 1000, waiting_for, servers));
}

absl::Status Channel::EndConnections(Deadline deadline) {
  absl::Status status;
  for (const auto& [server, endpoint] : endpoints_) {
    const MemoryServerId member = endpoint->regions->member;
    if (directory_.Buried(member, /*ask=*/false)) continue;
    const absl::Status ended = endpoint->queue_pair->Disconnect(deadline);
    if (!ended.ok() && !directory_.Buried(member, /*ask=*/true)) status.Update(ended);
  }
  return status;
}

absl::Status Channel::Disconnect(Deadline deadline) {
  NAM_CHECK(broken(), "it may still be in use");
  gate_->Enter();
  const absl::Status ended = EndConnections(deadline);
  if (!ended.ok()) {
    ParkBroken();
    return ended;
  }
  abandoned_.clear();
  gate_->Leave();
  return ended;
}

void Channel::Abandon(fabric::Grant::Use use) {
  Break();
  abandoned_.push_back(std::move(use));
}

void Channel::ParkBroken() {
  gate_->Park([this] { return EndNow(); });
}

bool Channel::EndNow() {
  return EndConnections(fabric_.clock().After(0)).ok();
}

class Channel::Remains final : public fabric::Unconfirmed {
 public:
  explicit Remains(Channel& channel)
      : directory_(channel.directory_),
        clock_(channel.fabric_.clock()),
        buffers_(std::move(channel.buffers_)),
        completions_(std::move(channel.completions_)),
        endpoints_(std::move(channel.endpoints_)),
        abandoned_(std::move(channel.abandoned_)),
        gate_(std::move(channel.gate_)) {}

  bool Confirmed() override {
    for (auto at = endpoints_.begin(); at != endpoints_.end();) {
      const bool ended = directory_.Buried(at->second->regions->member, /*ask=*/false) ||
                         at->second->queue_pair->Disconnect(clock_.After(0)).ok();
      at = ended ? endpoints_.erase(at) : std::next(at);
    }
    if (!endpoints_.empty()) return false;
    gate_->Leave();
    return true;
  }

 private:
  fabric::RegionDirectory& directory_;
  Clock& clock_;
  std::vector<std::unique_ptr<fabric::MemoryRegion>> buffers_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::map<MemoryServerId, std::unique_ptr<Endpoint>> endpoints_;
  std::vector<fabric::Grant::Use> abandoned_;
  std::shared_ptr<fabric::Gate> gate_;
};

Channel::~Channel() {
  const bool idle = gate_->idle();
  if (idle && abandoned_.empty()) return;
  gate_->Enter();  // no other thread touches the connections from here on
  if (EndNow()) {
    gate_->Leave();
    return;
  }
  directory_.grants().Leave(std::make_unique<Remains>(*this));
}

absl::Status Channel::LookForBurials() {
  const uint64_t burials = directory_.burials();
  for (const auto& [server, endpoint] : endpoints_) {
    if (!directory_.Buried(endpoint->regions->member, /*ask=*/false)) continue;
    broken_ = true;
    return BuriedError(endpoint->regions->name);
  }
  burials_seen_ = burials;
  return absl::OkStatus();
}

absl::StatusOr<size_t> Channel::WaitSome(std::span<fabric::Completion> completions,
                                         const std::atomic<bool>* cancel) {
  // Work that is complete when posted needs no look at the clock.
  if (in_place_) {
    if (const size_t n = completions_->Poll(completions); n > 0) return n;
  }
  Clock& clock = fabric_.clock();
  const Deadline deadline = clock.After(options_.operation_timeout_us);
  const bool interruptible = cancel == nullptr && Interruption::flag() != nullptr;
  while (true) {
    const bool looks_up = cancel != nullptr || interruptible;
    const Deadline look_up{looks_up ? std::min(deadline.ns, clock.After(kCancelCheckUs).ns) : deadline.ns};
    const size_t n = completions_->Wait(completions, look_up);
    if (n > 0) return n;
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      return absl::CancelledError("cancelled");
    if (interruptible && Interruption::requested()) {
      Break();
      return absl::CancelledError("cancelled");
    }
    if (clock.Passed(deadline)) return TimedOut("a completion");
  }
}

absl::Status Channel::Read(RemotePtr<void> from, std::span<std::byte> to, const std::atomic<bool>* cancel) {
  return Transfer(fabric::Opcode::kRead, from, to.data(), to.size(), cancel);
}

absl::Status Channel::Write(std::span<const std::byte> from, RemotePtr<void> to,
                            const std::shared_ptr<fabric::Grant>& grant) {
  NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, UseOf(grant));
  const absl::Status status =
      Transfer(fabric::Opcode::kWrite, to, const_cast<std::byte*>(from.data()), from.size(), nullptr);
  if (broken()) Abandon(std::move(use));
  return status;
}

absl::Status Channel::Transfer(fabric::Opcode opcode, RemotePtr<void> remote, std::byte* local, size_t bytes,
                               const std::atomic<bool>* cancel) {
  const size_t slots = std::min<size_t>(buffer().bytes() / kTransferBytes, options_.queue_depth);
  NAM_CHECK(slots > 0 && !broken());
  broken_ = true;  // until nothing is in flight
  std::array<fabric::Completion, 64> done;
  for (size_t at = 0; at < bytes;) {
    const size_t first = at;
    size_t in_flight = 0;
    for (; in_flight < slots && at < bytes; ++in_flight) {
      const fabric::LocalBuffer slot =
          buffer().Slice(in_flight * kTransferBytes, std::min(kTransferBytes, bytes - at));
      NAM_ASSIGN_OR_RETURN(const Target target, Resolve(remote.Plus(at), slot.bytes));
      if (opcode == fabric::Opcode::kWrite) std::memcpy(slot.data, local + at, slot.bytes);
      const fabric::WorkRequest request{
          .id = in_flight, .opcode = opcode, .local = slot, .remote = target.address};
      NAM_RETURN_IF_ERROR(target.queue_pair->Post({&request, 1}));
      at += slot.bytes;
    }
    while (in_flight > 0) {
      NAM_ASSIGN_OR_RETURN(const size_t n, WaitSome(done, cancel));
      for (size_t i = 0; i < n; ++i) {
        if (!done[i].ok()) return Error(done[i]);
      }
      in_flight -= n;
    }
    if (opcode == fabric::Opcode::kRead) std::memcpy(local + first, buffer().data(), at - first);
  }
  broken_ = false;
  return absl::OkStatus();
}

}  // namespace nam::storage
