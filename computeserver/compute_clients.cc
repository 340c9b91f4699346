#include "computeserver/compute_clients.h"

#include <algorithm>
#include <array>
#include <deque>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "computeserver/methods.h"
#include "storage/checksum.h"

namespace nam::computeserver {
namespace {

constexpr uint64_t kBufferBytes = 1u << 20;
constexpr uint32_t kMostServers = 64;
constexpr int64_t kCancelCheckUs = 5'000;
constexpr int64_t kConnectTimeoutUs = 3'000'000;
constexpr int64_t kReadTimeoutUs = 4'000'000;
constexpr int64_t kReleaseTimeoutUs = 1'000'000;
/// A statement's bound; Cancel ends it sooner.
constexpr int64_t kFragmentTimeoutUs = int64_t{24} * 3600 * 1'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeClients>> ComputeClients::Open(catalog::Attachment& attachment) {
  std::unique_ptr<ComputeClients> clients(new ComputeClients(attachment));
  NAM_ASSIGN_OR_RETURN(clients->buffer_,
                       attachment.fabric().Allocate(kBufferBytes, {.access = fabric::Access::kNone}));
  NAM_ASSIGN_OR_RETURN(clients->completions_, attachment.fabric().CreateCompletionQueue(2 * kMostServers));
  return clients;
}

ComputeClients::~ComputeClients() {
  for (auto& [id, server] : servers_) {
    if (!server->unreleased) continue;
    proto::ReleaseResultRequest request;
    request.set_query(*server->unreleased);
    // Unheard, the server drops the result by itself after a while.
    server->peer->Call(kReleaseResult, request, kReleaseTimeoutUs).status().IgnoreError();
  }
}

ComputeClients::Server& ComputeClients::ServerOf(const proto::Member& member) {
  std::unique_ptr<Server>& server = servers_[member.id()];
  if (!server) {
    const std::string name = absl::StrFormat("compute server %d (%s)", member.id(), member.control_address());
    server = std::make_unique<Server>();
    server->member = member;
    server->peer = attachment_.OpenPeer(name, member.control_address());
  }
  return *server;
}

absl::Status ComputeClients::Run(std::vector<Work>& work, const std::atomic<bool>& cancel) {
  // Connections to servers that this query does not need are given up when there are too many.
  if (servers_.size() + work.size() > kMostServers) servers_.clear();
  if (work.size() > kMostServers)
    return absl::ResourceExhaustedError("more than 64 compute servers for one query");
  fabric::Fabric& fabric = attachment_.fabric();
  std::deque<catalog::CallCancellation> cancellations(work.size());
  std::vector<absl::Status> statuses(work.size());
  std::atomic<size_t> running = work.size();
  std::atomic<bool> failed = false;
  const std::unique_ptr<fabric::Event> all_done = fabric.CreateEvent();
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (size_t i = 0; i < work.size(); ++i) {
    Server& server = ServerOf(work[i].member);
    if (server.unreleased) work[i].request.add_release(*server.unreleased);
    server.unreleased.reset();
  }
  for (size_t i = 0; i < work.size(); ++i) {
    threads.push_back(fabric.StartThread(
        absl::StrFormat("nam-call-%d", i), [&, i, peer = ServerOf(work[i].member).peer.get()] {
          auto reply = peer->Call(kRunFragment, work[i].request, kFragmentTimeoutUs, &cancellations[i]);
          statuses[i] = reply.status();
          if (reply.ok()) work[i].reply = *std::move(reply);
          if (!statuses[i].ok()) failed = true;
          if (running.fetch_sub(1) == 1) all_done->Set();
        }));
  }
  bool stopped = false;
  while (!work.empty() && !all_done->Wait(fabric.clock().After(kCancelCheckUs))) {
    if (stopped || !(cancel || failed)) continue;
    stopped = true;
    for (catalog::CallCancellation& cancellation : cancellations) cancellation.Cancel();
  }
  threads.clear();
  absl::Status first_error;
  for (size_t i = 0; i < work.size(); ++i) {
    if (statuses[i].ok()) continue;
    if (first_error.ok() || absl::IsCancelled(first_error)) first_error = statuses[i];
  }
  for (size_t i = 0; i < work.size(); ++i) {
    if (!statuses[i].ok()) continue;
    Server& server = ServerOf(work[i].member);
    if (first_error.ok()) first_error = ReadPartial(server, work[i].reply, work[i].partial);
    server.unreleased = work[i].request.query();
  }
  if (cancel && !first_error.ok()) return absl::CancelledError("cancelled");
  return first_error;
}

absl::Status ComputeClients::ReadPartial(Server& server, const proto::FragmentReply& reply,
                                         std::string& out) {
  Clock& clock = attachment_.fabric().clock();
  if (!server.queue_pair || server.queue_pair->state() != fabric::QueuePairState::kReady) {
    NAM_ASSIGN_OR_RETURN(
        server.queue_pair,
        attachment_.fabric().Connect(server.member.fabric_address(), *completions_,
                                     {.send_depth = 1, .receive_depth = 1}, clock.After(kConnectTimeoutUs)));
  }
  out.resize(reply.bytes());
  for (uint64_t at = 0; at < out.size();) {
    const uint64_t bytes = std::min<uint64_t>(kBufferBytes, out.size() - at);
    const auto read =
        fabric::WorkRequest::Read(at, buffer_->Slice(0, bytes), {{reply.rkey()}, reply.offset() + at});
    NAM_RETURN_IF_ERROR(server.queue_pair->Post({&read, 1}));
    std::array<fabric::Completion, 1> done;
    if (completions_->Wait(done, clock.After(kReadTimeoutUs)) == 0) {
      server.queue_pair.reset();
      return absl::UnavailableError(server.peer->name() + " did not let its result be read in time");
    }
    if (!done[0].ok()) {
      const absl::Status error = fabric::CompletionError(done[0], *server.queue_pair);
      server.queue_pair.reset();
      return absl::Status(error.code(),
                          absl::StrCat(server.peer->name(), ": ", std::string(error.message())));
    }
    std::copy_n(reinterpret_cast<const char*>(buffer_->data()), bytes, out.data() + at);
    at += bytes;
  }
  if (storage::Checksum(std::as_bytes(std::span(out))) == reply.checksum()) return absl::OkStatus();
  return absl::DataLossError(server.peer->name() + ": the checksum of its result does not match");
}

}  // namespace nam::computeserver
