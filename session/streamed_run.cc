#include "session/streamed_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/exchange/endpoint.h"
#include "execution/methods.h"
#include "session/loaded_rows.h"

namespace nam::session {
namespace {

bool IsOfMember(const absl::Status& status) {
  return status.GetPayload(execution::kExchangeMemberLost).has_value();
}

}  // namespace

absl::Status StreamedRun::Run() {
  std::sort(options_.servers.begin(), options_.servers.end(),
            [](const ServerReport& a, const ServerReport& b) { return a.member.id() < b.member.id(); });
  servers_.resize(options_.servers.size());
  for (int round = 0; round < kMostLossRounds; ++round) {
    absl::StatusOr<bool> counts = RunOnce();
    // Running attempts have nothing to add.
    options_.clients.EndAll();
    NAM_RETURN_IF_ERROR(counts.status());
    if (*counts) return absl::OkStatus();
  }
  return first_loss_.ok() ? absl::UnavailableError("the members of a streamed stage are lost again and again")
                          : first_loss_;
}

absl::StatusOr<bool> StreamedRun::RunOnce() {
  NAM_ASSIGN_OR_RETURN(const std::vector<size_t> members, FindMembers());
  // Each has its own, which distinguishes its pages. Messages carry the first one.
  const uint64_t first_attempt = options_.next_attempt();
  for (uint64_t m = 1; m < members.size(); ++m)
    NAM_CHECK(options_.next_attempt() == first_attempt + m, "attempts of a stage are consecutive");
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> allocations, BeginAttempts(members.size()));
  const absl::StatusOr<bool> open = OpenAll(members, first_attempt);
  if (!open.ok() || !*open) {
    AbortAttempts(allocations);
    return open;
  }
  StartAll(members, first_attempt, allocations);
  std::vector<Work> ended;
  const absl::StatusOr<bool> counts = AwaitAll(members, ended);
  if (counts.ok() && *counts) {
    NAM_RETURN_IF_ERROR(Deliver(std::move(ended)));
    return true;
  }
  options_.clients.EndAll();
  for (uint64_t m = 0; options_.request.scratch() != 0 && m < members.size(); ++m)
    options_.drop_scratch(first_attempt + m);
  AbortAttempts(allocations);
  return counts;
}

absl::StatusOr<std::vector<uint64_t>> StreamedRun::BeginAttempts(size_t members) {
  std::vector<uint64_t> allocations;
  while (options_.output.table != nullptr && allocations.size() < members) {
    NAM_ASSIGN_OR_RETURN(const uint64_t allocation, options_.output.table->BeginAttempt());
    allocations.push_back(allocation);
  }
  return allocations;
}

void StreamedRun::AbortAttempts(const std::vector<uint64_t>& allocations) {
  for (const uint64_t allocation : allocations) options_.output.table->AbortAttempt(allocation);
}

absl::StatusOr<std::vector<size_t>> StreamedRun::FindMembers() {
  std::vector<size_t> members;
  const auto find = [&] {
    for (size_t s = 0; s < servers_.size(); ++s) {
      if (!servers_[s].gone) members.push_back(s);
    }
  };
  find();
  if (members.empty()) {
    const auto living = options_.members();
    for (size_t m = 0; living.ok() && m < living->size(); ++m) {
      const proto::Member& member = (*living)[m];
      const bool known =
          std::any_of(options_.servers.begin(), options_.servers.end(),
                      [&](const ServerReport& server) { return server.member.id() == member.id(); });
      if (known) continue;
      options_.servers.push_back({.member = member});
      servers_.emplace_back();
    }
    find();
  }
  if (members.empty())
    return first_loss_.ok() ? absl::UnavailableError("all compute servers of the query have left it")
                            : first_loss_;
  threads_ = UINT32_MAX;
  for (const size_t s : members)
    threads_ = std::min(threads_, std::max(options_.servers[s].member.threads(), 1u));
  return members;
}

absl::StatusOr<bool> StreamedRun::OpenAll(const std::vector<size_t>& members, uint64_t first_attempt) {
  proto::OpenExchangesRequest request;
  request.set_client(options_.request.client());
  *request.mutable_settings() = options_.request.settings();
  request.set_stage(options_.request.stage());
  for (const size_t s : members) request.add_members(options_.servers[s].member.id());
  request.set_threads(threads_);
  request.set_exchanges(options_.exchanges);
  request.set_message_bytes(options_.message_bytes);
  request.set_sockets(options_.sockets);
  for (size_t m = 0; m < members.size(); ++m) {
    const proto::Member& member = options_.servers[members[m]].member;
    request.set_attempt(first_attempt + m);
    request.set_self(static_cast<uint32_t>(m));
    request.set_whole_memory(servers_[members[m]].crowded);
    bool lost = false;
    absl::StatusOr<proto::OpenExchangesReply> opened = absl::CancelledError("cancelled");
    if (!options_.cancel) opened = options_.clients.OpenExchanges(member, request, lost);
    if (opened.ok() && opened->addresses_size() == static_cast<int>(threads_)) {
      servers_[members[m]].addresses.assign(opened->addresses().begin(), opened->addresses().end());
      continue;
    }
    for (size_t before = 0; before < m; ++before)
      options_.clients.ReleaseExchanges(options_.servers[members[before]].member, first_attempt + before);
    if (opened.ok())
      return absl::InternalError("a compute server opens other exchanges than it is asked for");
    // Skips a server where too many wait, unless there is no other.
    if (!lost && (!IsDeclined(opened.status()) || members.size() == 1)) return opened.status();
    Lose(members[m], opened.status());
    return false;
  }
  return true;
}

void StreamedRun::StartAll(const std::vector<size_t>& members, uint64_t first_attempt,
                           const std::vector<uint64_t>& allocations) {
  proto::Exchanges exchanges;
  for (const size_t s : members) {
    proto::ExchangeMember& member = *exchanges.add_members();
    for (const std::string& address : servers_[s].addresses) member.add_addresses(address);
  }
  for (size_t m = 0; m < members.size(); ++m) {
    auto work = std::make_unique<ComputeClients::Work>();
    work->member = options_.servers[members[m]].member;
    work->server = members[m];
    work->request = options_.request;
    work->request.set_attempt(first_attempt + m);
    if (!allocations.empty()) {
      work->allocation = allocations[m];
      work->request.mutable_write()->set_allocation(work->allocation);
    }
    work->request.set_whole_memory(servers_[members[m]].crowded);
    exchanges.set_self(static_cast<uint32_t>(m));
    *work->request.mutable_exchanges() = exchanges;
    servers_[members[m]].started_ms = NowMs();
    options_.clients.Start(std::move(work));
  }
}

absl::StatusOr<bool> StreamedRun::AwaitAll(const std::vector<size_t>& members, std::vector<Work>& ended) {
  uint64_t held_bytes = 0;
  const auto room = [&](uint64_t bytes) -> absl::Status {
    NAM_RETURN_IF_ERROR(options_.output.room(held_bytes + bytes));
    held_bytes += bytes;
    return absl::OkStatus();
  };
  std::vector<size_t> running = members;
  std::optional<int64_t> failed_ns;
  while (!running.empty()) {
    if (options_.cancel) return absl::CancelledError("cancelled");
    Work work = options_.clients.Await(options_.clock.After(kAwaitUs), options_.cancel, room);
    if (work != nullptr) {
      std::erase(running, work->server);
      servers_[work->server].ended_ms = NowMs();
      NAM_ASSIGN_OR_RETURN(const bool counts, Look(*work));
      // The others would wait for it until their exchanges' timeouts.
      if (servers_[work->server].gone) return false;
      if (!counts && !failed_ns.has_value()) failed_ns = options_.clock.NowNs();
      if (counts) ended.push_back(std::move(work));
    }
    if (!failed_ns.has_value() || options_.clock.NowNs() - *failed_ns < kNoticeLossNs) continue;
    for (const size_t silent : running)
      Lose(silent, absl::UnavailableError("a member of a streamed stage does not answer"));
    break;
  }
  return !failed_ns.has_value();
}

absl::StatusOr<bool> StreamedRun::Look(const ComputeClients::Work& work) {
  if (work.lost || (work.status.ok() && work.reply.leaving())) {
    Lose(work.server, work.status);
    return false;
  }
  if (work.status.ok() && !work.reply.crowded()) return true;
  if (work.status.ok()) {
    servers_[work.server].crowded = true;
    return false;
  }
  // The lost member's own attempt tells, or nothing does: then only a connection was lost.
  if (!IsOfMember(work.status)) return work.status;
  if (first_loss_.ok()) first_loss_ = work.status;
  return false;
}

void StreamedRun::Lose(size_t server, const absl::Status& why) {
  servers_[server].gone = true;
  if (first_loss_.ok()) first_loss_ = why;
}

absl::Status StreamedRun::Deliver(std::vector<Work> ended) {
  for (Work& work : ended) {
    ServerReport& report = options_.servers[work->server];
    *report.reply.mutable_pipelines() = work->reply.pipelines();
    if (!work->partial.empty())
      NAM_RETURN_IF_ERROR(options_.output.add(work->partial, work->request.attempt()).status());
    work->partial = std::string();
    if (options_.output.table != nullptr)
      NAM_RETURN_IF_ERROR(options_.output.table->Take(work->allocation, work->reply));
    if (!work->reply.has_directory()) continue;
    if (!options_.output.parts || work->reply.directory().attempt() != work->request.attempt())
      return absl::InternalError("a compute server reports parts that were not requested");
    NAM_RETURN_IF_ERROR(options_.output.parts(std::move(*work->reply.mutable_directory())));
  }
  std::vector<ServerReport> took_part;
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].gone) continue;
    ServerReport& report = took_part.emplace_back(std::move(options_.servers[s]));
    report.turns = {{.share_of = took_part.size() - 1,
                     .started_ms = servers_[s].started_ms,
                     .ended_ms = servers_[s].ended_ms}};
  }
  options_.servers = std::move(took_part);
  return absl::OkStatus();
}

}  // namespace nam::session
