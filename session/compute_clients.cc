#include "session/compute_clients.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/methods.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

constexpr uint64_t kBufferBytes = 1u << 20;
constexpr uint32_t kMostServers = 64;
/// A result of this size or more is released as soon as it is READ.
constexpr uint64_t kReleaseAtOnceBytes = 1u << 20;
constexpr int64_t kConnectTimeoutUs = 3'000'000;
constexpr int64_t kReadTimeoutUs = 4'000'000;
/// How often a wait for a READ checks whether the statement was cancelled.
constexpr int64_t kCancelCheckUs = 20'000;
constexpr int64_t kReleaseTimeoutUs = 1'000'000;
/// Responsive servers have answered by then.
constexpr int64_t kReleasePatienceUs = 200'000;
/// A statement's bound; Cancel ends it sooner.
constexpr int64_t kAttemptTimeoutUs = int64_t{24} * 3600 * 1'000'000;

}  // namespace

bool IsDeclined(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error.has_value() && error->sqlstate == execution::kTooManyQueries;
}

// Skipped by sessions that run no queries, or whose queries leave nothing at servers.
absl::Status ComputeClients::PrepareReads() {
  if (completions_ != nullptr) return absl::OkStatus();
  fabric::Fabric& fabric = attachment_.fabric();
  NAM_ASSIGN_OR_RETURN(buffer_, fabric.Allocate(kBufferBytes, {.access = fabric::Access::kNone}));
  NAM_ASSIGN_OR_RETURN(completions_, fabric.CreateCompletionQueue(2 * kMostServers));
  return absl::OkStatus();
}

ComputeClients::~ComputeClients() {
  EndAll();
  for (auto& [id, server] : servers_) Release(*server);
}

/// Without this message the server drops its results by itself after a while.
void ComputeClients::Release(Server& server) {
  for (const uint64_t attempt : std::exchange(server.unreleased, {}))
    Release(*server.peer, attachment_.member(), attempt);
}

void ComputeClients::Release(catalog::Peer& peer, MemberId client, uint64_t attempt) {
  const Interruption none(nullptr);
  proto::ReleaseResultRequest request;
  request.set_attempt(attempt);
  request.set_client(client.value());
  peer.Call(execution::kReleaseResult, request, kReleaseTimeoutUs).status().IgnoreError();
}

void ComputeClients::ReleaseLater(const std::shared_ptr<catalog::Peer>& peer, uint64_t attempt) {
  std::erase_if(releasing_, [](const Releasing& one) { return one.ended->IsSet(); });
  std::shared_ptr<fabric::Event> ended = attachment_.fabric().CreateEvent();
  auto started = attachment_.fabric().TryStartThread("nam-release",
                                                     [peer, client = attachment_.member(), attempt, ended] {
                                                       Release(*peer, client, attempt);
                                                       ended->Set();
                                                     });
  if (started.ok()) releasing_.push_back({ended, *std::move(started)});  // else the server drops it by itself
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

void ComputeClients::Start(std::unique_ptr<Work> work) {
  // Drops connections to servers of earlier queries when there are too many.
  if (servers_.size() >= kMostServers && !servers_.contains(work->member.id())) {
    for (auto& [id, known] : servers_) Release(*known);
    servers_.clear();
  }
  Server& server = ServerOf(work->member);
  for (const uint64_t attempt : std::exchange(server.unreleased, {})) work->request.add_release(attempt);
  auto calls = std::make_shared<Calls>();
  calls->peer = server.peer;
  calls->work = std::move(*work);
  {
    const MutexLock lock(mutex_);
    running_.push_back(calls);
  }
  std::erase_if(threads_, [](const Thread& thread) { return thread.calls->ended.load(); });
  auto started = attachment_.fabric().TryStartThread("nam-call", [this, calls] {
    Run(calls);
    calls->ended = true;
  });
  if (started.ok()) {
    threads_.push_back({calls, *std::move(started)});
    return;
  }
  auto refused = std::make_unique<Work>(calls->work);
  refused->status = started.status();
  Hand(*calls, std::move(refused));
}

absl::StatusOr<proto::OpenExchangesReply> ComputeClients::OpenExchanges(
    const proto::Member& member, const proto::OpenExchangesRequest& request, bool& lost) {
  const std::shared_ptr<catalog::Peer> peer = ServerOf(member).peer;
  absl::StatusOr<proto::OpenExchangesReply> reply =
      peer->Call(execution::kOpenExchanges, request, kAttemptTimeoutUs);
  lost = !reply.ok() && catalog::Unanswered(reply.status()) && !absl::IsCancelled(reply.status());
  if (lost) servers_.erase(member.id());
  return reply;
}

void ComputeClients::ReleaseExchanges(const proto::Member& member, uint64_t attempt) {
  ReleaseLater(ServerOf(member).peer, attempt);
}

void ComputeClients::Run(const std::shared_ptr<Calls>& calls) {
  proto::AttemptRequest request = std::move(calls->work.request);
  // The coordinator does not need the request, and further calls repeat it.
  calls->work.request.Clear();
  calls->work.request.set_attempt(request.attempt());
  calls->work.request.set_client(request.client());
  calls->work.request.set_window_bytes(request.window_bytes());
  while (true) {
    auto reply = calls->peer->Call(execution::kRunAttempt, request, kAttemptTimeoutUs, &calls->cancellation);
    auto work = std::make_unique<Work>(calls->work);
    work->status = reply.status();
    work->lost = !reply.ok() && !IsProcessLimit(reply.status()) &&
                 (catalog::Unanswered(reply.status()) ||
                  reply.status().GetPayload(execution::kServerOver).has_value());
    if (reply.ok()) work->reply = *std::move(reply);
    if (!Hand(*calls, std::move(work))) return;
    request = calls->work.request;
    request.set_resume(++calls->work.windows);
  }
}

bool ComputeClients::Hand(Calls& calls, std::unique_ptr<Work> work) {
  std::shared_ptr<fabric::Event> read;
  {
    const MutexLock lock(mutex_);
    if (work->status.ok() && work->reply.more()) read = attachment_.fabric().CreateEvent();
    calls.read = work->read = read;
    if (read == nullptr) std::erase_if(running_, [&](const auto& c) { return c.get() == &calls; });
    const bool over = calls.over;
    ended_.push_back(std::move(work));
    if (wake_ != nullptr) wake_->Set();
    if (over) return false;
  }
  if (read == nullptr) return false;
  read->Wait(Deadline::Never());
  const MutexLock lock(mutex_);
  return !calls.over;
}

std::unique_ptr<ComputeClients::Work> ComputeClients::Await(Deadline deadline,
                                                            const std::atomic<bool>& cancel,
                                                            const Room& room) {
  std::shared_ptr<fabric::Event> wake;
  {
    const MutexLock lock(mutex_);
    if (ended_.empty()) wake = wake_ = attachment_.fabric().CreateEvent();
  }
  if (wake != nullptr) wake->Wait(deadline);
  std::unique_ptr<Work> work;
  {
    const MutexLock lock(mutex_);
    wake_.reset();
    if (ended_.empty()) return nullptr;
    work = std::move(ended_.front());
    ended_.pop_front();
  }
  ReadResult(*work, cancel, room);
  // If it could not be READ, the attempt stands still until EndAll.
  if (work->read != nullptr && work->status.ok()) work->read->Set();
  return work;
}

void ComputeClients::ReadResult(Work& work, const std::atomic<bool>& cancel, const Room& room) {
  Server& server = ServerOf(work.member);
  if (work.status.ok() && work.reply.bytes() > 0) {
    work.status = room(work.reply.bytes());
    if (work.status.ok()) work.status = ReadPartial(server, work.reply, work.partial, cancel);
    work.lost = absl::IsUnavailable(work.status);
    if (!work.reply.more()) server.unreleased.push_back(work.request.attempt());
    if (!work.reply.more() && work.status.ok() && work.reply.bytes() >= kReleaseAtOnceBytes) Release(server);
  }
  if (work.status.ok() && work.reply.leaving()) Release(server);
  if (work.lost) servers_.erase(work.member.id());
}

void ComputeClients::EndAll() {
  std::vector<std::shared_ptr<Calls>> standing;
  {
    const MutexLock lock(mutex_);
    for (const std::shared_ptr<Calls>& calls : running_) {
      calls->over = true;
      calls->cancellation.Cancel();
      if (calls->read != nullptr) calls->read->Set();
      standing.push_back(calls);
    }
  }
  threads_.clear();
  std::deque<std::unique_ptr<Work>> ended;
  {
    const MutexLock lock(mutex_);
    ended.swap(ended_);
    running_.clear();
  }
  for (const std::unique_ptr<Work>& work : ended) {
    const auto server = servers_.find(work->member.id());
    if (server == servers_.end()) continue;
    // CANCELLED calls were ended by this side.
    if (work->lost && !absl::IsCancelled(work->status)) {
      servers_.erase(server);
    } else {
      // A cancelled call may have left a result, too: its server may not have noticed in time.
      server->second->unreleased.push_back(work->request.attempt());
    }
  }
  for (const std::shared_ptr<Calls>& calls : standing) {
    if (calls->work.request.window_bytes() > 0) ReleaseLater(calls->peer, calls->work.request.attempt());
  }
  const Deadline patience = attachment_.fabric().clock().After(kReleasePatienceUs);
  for (const Releasing& one : releasing_) one.ended->Wait(patience);
}

absl::Status ComputeClients::ReadPartial(Server& server, const proto::AttemptReply& reply, std::string& out,
                                         const std::atomic<bool>& cancel) {
  Clock& clock = attachment_.fabric().clock();
  NAM_RETURN_IF_ERROR(PrepareReads());
  if (!server.queue_pair || server.queue_pair->state() != fabric::QueuePairState::kReady) {
    NAM_ASSIGN_OR_RETURN(
        server.queue_pair,
        attachment_.fabric().Connect(server.member.fabric_address(), *completions_,
                                     {.send_depth = 1, .receive_depth = 1}, clock.After(kConnectTimeoutUs)));
  }
  out.reserve(reply.bytes());
  for (uint64_t at = 0; at < reply.bytes();) {
    if (cancel) return absl::CancelledError("cancelled");
    const uint64_t bytes = std::min<uint64_t>(kBufferBytes, reply.bytes() - at);
    const auto read =
        fabric::WorkRequest::Read(at, buffer_->Slice(0, bytes), {{reply.rkey()}, reply.offset() + at});
    NAM_RETURN_IF_ERROR(server.queue_pair->Post({&read, 1}));
    const absl::StatusOr<fabric::Completion> done = AwaitRead(server, cancel);
    if (!done.ok()) {
      server.queue_pair.reset();
      return done.status();
    }
    if (!done->ok()) {
      const absl::Status error = fabric::CompletionError(*done, *server.queue_pair);
      server.queue_pair.reset();
      if (IsProcessLimit(error)) return error;
      // A revoked key: the server is ending, and has given the result up.
      return absl::Status(absl::IsPermissionDenied(error) ? absl::StatusCode::kUnavailable : error.code(),
                          absl::StrCat(server.peer->name(), ": ", std::string(error.message())));
    }
    out.append(reinterpret_cast<const char*>(buffer_->data()), bytes);
    at += bytes;
  }
  return absl::OkStatus();  // every page has its own checksum
}

absl::StatusOr<fabric::Completion> ComputeClients::AwaitRead(const Server& server,
                                                             const std::atomic<bool>& cancel) {
  Clock& clock = attachment_.fabric().clock();
  const Deadline deadline = clock.After(kReadTimeoutUs);
  std::array<fabric::Completion, 1> done;
  while (true) {
    if (completions_->Wait(done, {std::min(deadline.ns, clock.After(kCancelCheckUs).ns)}) > 0) {
      // Others belong to abandoned READs and their queue pairs.
      if (done[0].queue_pair == server.queue_pair->id()) return done[0];
    } else if (cancel) {
      return absl::CancelledError("cancelled");
    } else if (clock.Passed(deadline)) {
      return absl::UnavailableError(server.peer->name() + " did not let its result be read in time");
    }
  }
}

}  // namespace nam::session
