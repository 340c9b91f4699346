#include "computeserver/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/attachment.h"
#include "computeserver/attempt_queue.h"
#include "computeserver/attempt_run.h"
#include "computeserver/compactor.h"
#include "computeserver/open_attempts.h"
#include "computeserver/open_exchanges.h"
#include "computeserver/result_store.h"
#include "computeserver/start_over_fabric.h"
#include "computeserver/table_cache.h"
#include "execution/channel_pool.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/exchange/send_receive_endpoint.h"
#include "execution/methods.h"
#include "execution/partition/open_scratch.h"
#include "execution/prepared_stage.h"
#include "execution/stage_inputs.h"
#include "plan/codec.h"
#include "plan/table_schema.h"
#include "storage/row_pages.h"
#include "txn/cluster_tables.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::computeserver {
namespace {

/// Attempts whose results leave in windows. With the running and waiting ones, no more than the control plane
/// has threads for their calls.
constexpr size_t kOpenAttemptsMax = 48;
constexpr int64_t kDrainCheckUs = 2'000;
constexpr uint32_t kRowPagesAtOnce = 8;  // READs in flight for a transaction's rows
/// How long a leaving server waits for coordinators to read results, or the next window of one. Coordinators
/// repeat the rest elsewhere.
constexpr int64_t kReadResultsUs = 500'000;
/// A member that is idle for so long is lost. The session usually notices before.
constexpr int64_t kExchangeTimeoutUs = 30'000'000;
/// For channels that carry one FETCH_ADD at a time. They are separate from those of streams: otherwise each
/// would have to connect where the other had been.
constexpr storage::ChannelOptions kClaimChannel = {
    .queue_depth = 4, .datagram_depth = 1, .buffer_bytes = 64 << 10};

class ComputeServerImpl final : public ComputeServer {
 public:
  ComputeServerImpl(const ComputeServerOptions& options, std::unique_ptr<catalog::Attachment> attachment,
                    catalog::FabricOpener open_fabric)
      : options_(options),
        open_fabric_(std::move(open_fabric)),
        attachment_(std::move(attachment)),
        channels_(attachment_->fabric(), *attachment_),
        claim_channels_(attachment_->fabric(), *attachment_, kClaimChannel),
        cache_(attachment_->catalog(), channels_),
        records_(*attachment_),
        compactor_(*attachment_),
        handlers_("nam.proto.Compute"),
        queue_(attachment_->fabric(), {.running_max = options.running_max,
                                       .waiting_max = options.waiting_max,
                                       .open_max = kOpenAttemptsMax,
                                       .memory_bytes = MemoryOf(options)}),
        open_(attachment_->fabric()),
        exchanges_(attachment_->fabric()) {
    handlers_.Add(execution::kRunAttempt,
                  [this](const proto::AttemptRequest& request, const catalog::IncomingCall& call) {
                    return OrOver(Run(call, request));
                  });
    handlers_.Add(execution::kOpenExchanges,
                  [this](const proto::OpenExchangesRequest& request, const catalog::IncomingCall& call) {
                    return OpenEnds(call, request);
                  });
    handlers_.Add(execution::kReleaseResult,
                  [this](const proto::ReleaseResultRequest& request, const catalog::IncomingCall&) {
                    Release(request.attempt(), MemberId(request.client()));
                    return absl::StatusOr<proto::ReleaseResultReply>(proto::ReleaseResultReply());
                  });
    handlers_.Add(execution::kCompactTable,
                  [this](const proto::CompactTableRequest& request, const catalog::IncomingCall&) {
                    compactor_.Look(request.table());
                    return absl::StatusOr<proto::CompactTableReply>(proto::CompactTableReply());
                  });
  }
  ~ComputeServerImpl() override { Shutdown(attachment_->fabric().clock().After(1'000'000)); }

  absl::Status Listen();
  absl::Status Join();

  MemberId id() const override {
    const std::shared_ptr<catalog::Membership> membership = Now();
    return membership ? membership->id() : MemberId();
  }
  std::string control_address() const override { return control_address_; }
  std::string fabric_address() const override { return fabric_address_; }
  Load load() override {
    return {.memory_used_bytes = queue_.memory().used(),
            .waiting = queue_.waiting(),
            .open = open_.size(),
            .results = !results_->empty()};
  }
  void Shutdown(Deadline deadline) override {
    const MutexLock lock(shutdown_mutex_);
    stopping_ = true;
    compactor_.Stop();
    exchanges_.End();  // the turns that they hold end, too
    Drain(deadline);   // with the keys of a member: memory servers accept no connection of a former one
    EndMembership();
    if (control_server_) control_server_->Shutdown(deadline);
    open_.EndAll();
    listener_.reset();
  }

 private:
  /// Null before Join, and once the server has shut down.
  std::shared_ptr<catalog::Membership> Now() const {
    const MutexLock lock(membership_mutex_);
    return membership_;
  }
  void EndMembership() {
    std::shared_ptr<catalog::Membership> over;  // leaves without the lock
    const MutexLock lock(membership_mutex_);
    over.swap(membership_);
  }
  /// Waits until attempts have finished what they had claimed and their results have been read, as long as
  /// coordinators read them.
  void Drain(Deadline deadline);
  absl::StatusOr<proto::AttemptReply> Run(const catalog::IncomingCall& call,
                                          const proto::AttemptRequest& request);
  using Place = std::shared_ptr<AttemptQueue::Place>;
  using Endpoints = std::vector<std::unique_ptr<execution::Endpoint>>;
  static uint64_t MemoryOf(const ComputeServerOptions& options);
  std::string Advertised(const std::string& address) const;
  AttemptQueue::Needs NeedsOf(const proto::StreamSettings& settings, bool whole_memory, bool windows) const;
  absl::StatusOr<proto::OpenExchangesReply> OpenEnds(const catalog::IncomingCall& call,
                                                     const proto::OpenExchangesRequest& request);
  /// The cluster's, or one over TCP beside it.
  absl::StatusOr<fabric::Fabric*> ExchangeFabric(bool sockets);
  absl::StatusOr<std::unique_ptr<execution::Endpoint>> OpenEndpoint(execution::EndpointOptions options,
                                                                    bool sockets);
  static absl::StatusOr<execution::EndpointOptions> EndpointOptionsOf(
      const proto::OpenExchangesRequest& request);
  /// The exchanges that the request's attempt has opened.
  absl::StatusOr<execution::ExchangeLanes> LanesOf(const proto::AttemptRequest& request,
                                                   const plan::PhysicalPlan& plan, Endpoints endpoints) const;
  absl::StatusOr<OpenExchanges::Ends> Begin(const catalog::IncomingCall& call,
                                            const proto::AttemptRequest& request);
  absl::StatusOr<execution::TableTarget> TargetOf(const proto::TableWrite& write);
  absl::StatusOr<std::vector<std::string>> LoadRows(const proto::RecordRows& rows, uint32_t row_bytes);
  absl::StatusOr<std::unique_ptr<execution::PreparedStage>> Prepare(const proto::AttemptRequest& request,
                                                                    const Place& place);
  absl::StatusOr<std::unique_ptr<AttemptRun>> NewRun(const proto::AttemptRequest& request, const Place& place,
                                                     Endpoints endpoints);
  absl::StatusOr<proto::AttemptReply> Resume(const catalog::IncomingCall& call,
                                             const proto::AttemptRequest& request);
  /// Replaces errors after the membership's end: without keys, errors of all kinds occur, which are not the
  /// query's.
  absl::StatusOr<proto::AttemptReply> OrOver(absl::StatusOr<proto::AttemptReply> reply) const;
  /// Drops an attempt whose result has been read, or is not wanted.
  void Release(uint64_t attempt, MemberId client);
  /// The clients with open attempts or results here.
  std::set<MemberId> Clients();
  /// Renewals also tell which of them are gone.
  catalog::Membership::Hooks HooksOfMembership();

  const ComputeServerOptions options_;
  const catalog::FabricOpener open_fabric_;
  const std::unique_ptr<catalog::Attachment> attachment_;
  Mutex sockets_mutex_;
  // For exchanges, opened on demand; outlives them.
  std::unique_ptr<fabric::Fabric> sockets_ ABSL_GUARDED_BY(sockets_mutex_);
  execution::ChannelPool channels_;
  execution::ChannelPool claim_channels_;
  TableCache cache_;
  txn::ClusterTables records_;
  Compactor compactor_;
  std::unique_ptr<ResultStore> results_;
  catalog::Handlers handlers_;
  std::string control_address_, fabric_address_;
  std::string exchange_host_;  // where exchanges listen, if the kind of fabric has hosts
  AttemptQueue queue_;
  OpenAttempts open_;  // use the members above
  OpenExchanges exchanges_;
  std::atomic<bool> stopping_ = false;
  Mutex shutdown_mutex_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<catalog::ControlServer> control_server_;
  mutable Mutex membership_mutex_;
  std::shared_ptr<catalog::Membership> membership_ ABSL_GUARDED_BY(membership_mutex_);
};

void ComputeServerImpl::Drain(Deadline deadline) {
  if (!results_) return;
  Clock& clock = attachment_->fabric().clock();
  const std::unique_ptr<fabric::Event> never = attachment_->fabric().CreateEvent();
  const int64_t since_ns = clock.NowNs();
  while (!clock.Passed(deadline)) {
    const Deadline read_by{std::max(since_ns, open_.handed_over_ns()) + 1000 * kReadResultsUs};
    const bool read = results_->empty() && open_.size() == 0;
    if (queue_.empty() && (read || clock.Passed(read_by))) return;
    never->Wait(clock.After(kDrainCheckUs));
  }
}

uint64_t ComputeServerImpl::MemoryOf(const ComputeServerOptions& options) {
  if (options.memory_bytes > 0) return options.memory_bytes;
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) /
         2;
}

AttemptQueue::Needs ComputeServerImpl::NeedsOf(const proto::StreamSettings& settings, bool whole_memory,
                                               bool windows) const {
  const uint64_t build = settings.build_bytes_max(),
                 result = execution::ResultBytesMax(settings, options_.threads);
  const uint64_t all = build > UINT64_MAX - result ? UINT64_MAX : build + result;
  return {.memory_bytes = whole_memory ? all : std::min(all, options_.first_memory_bytes),
          .windows = windows};
}

absl::StatusOr<proto::OpenExchangesReply> ComputeServerImpl::OpenEnds(
    const catalog::IncomingCall& call, const proto::OpenExchangesRequest& request) {
  proto::OpenExchangesReply reply;
  exchanges_.DropOld();
  if (request.client() == 0 || request.threads() < 1 ||
      request.threads() > static_cast<uint32_t>(std::max(1, options_.threads)))
    return absl::InvalidArgumentError("exchanges of no client, or of more threads than the server has");
  NAM_ASSIGN_OR_RETURN(const execution::EndpointOptions endpoint, EndpointOptionsOf(request));
  const uint64_t registered = request.threads() * execution::SendReceiveEndpoint::RegisteredBytes(endpoint);
  AttemptQueue::Needs needs = NeedsOf(request.settings(), request.whole_memory(), /*windows=*/false);
  needs.memory_bytes += std::min(registered, UINT64_MAX - needs.memory_bytes);
  NAM_ASSIGN_OR_RETURN(AttemptQueue::Beginning begun,
                       queue_.Begin(call, needs, [this] { open_.EndStanding(options_.standing_us_max); }));
  if (!begun.place->Keep(registered)) {
    return UserError(
        sqlstate::kOutOfMemory,
        absl::StrFormat("the exchanges of the query need %d MiB of a compute server, which has %d "
                        "MiB for queries",
                        registered >> 20, begun.place->memory().bytes_most() >> 20),
        -1, "SET nam.join = 'rrj', or start compute servers with a larger --memory");
  }
  OpenExchanges::Ends ends{std::move(begun), {}};
  for (uint32_t t = 0; t < request.threads(); ++t) {
    NAM_ASSIGN_OR_RETURN(ends.endpoints.emplace_back(), OpenEndpoint(endpoint, request.sockets()));
    reply.add_addresses(Advertised(ends.endpoints.back()->address()));
  }
  if (!exchanges_.Put(request.attempt(), MemberId(request.client()), std::move(ends)))
    return absl::UnavailableError("the compute server opens no exchange of this attempt");
  return reply;
}

absl::StatusOr<execution::EndpointOptions> ComputeServerImpl::EndpointOptionsOf(
    const proto::OpenExchangesRequest& request) {
  execution::EndpointOptions options{.self = request.self(),
                                     .message_bytes = request.message_bytes(),
                                     .stage = request.stage(),
                                     .attempt = request.attempt() - request.self(),
                                     .timeout_us = kExchangeTimeoutUs};
  if (request.members_size() > static_cast<int>(execution::EndpointOptions::kMembersMax) ||
      request.exchanges() > execution::EndpointOptions::kExchangesMax)
    return absl::InvalidArgumentError("too many members, or exchanges");
  for (const uint32_t member : request.members())
    options.members.push_back(absl::StrCat("compute server ", member));
  options.exchanges.assign(request.exchanges(),
                           execution::RepartitionAmong(static_cast<uint32_t>(request.members_size())));
  return options;
}

absl::StatusOr<std::unique_ptr<execution::Endpoint>> ComputeServerImpl::OpenEndpoint(
    execution::EndpointOptions options, bool sockets) {
  NAM_ASSIGN_OR_RETURN(fabric::Fabric* const fabric, ExchangeFabric(sockets));
  // Simulated hosts have no sockets, but pay for them.
  if (sockets && fabric->capabilities().simulated) options.message_cost = execution::kIpOverInfinibandCost;
  return execution::SendReceiveEndpoint::Open(*fabric, std::move(options), exchange_host_);
}

absl::StatusOr<fabric::Fabric*> ComputeServerImpl::ExchangeFabric(bool sockets) {
  fabric::Fabric& own = attachment_->fabric();
  if (!sockets || own.capabilities().sockets) return &own;
  const MutexLock lock(sockets_mutex_);
  if (sockets_ == nullptr) {
    NAM_ASSIGN_OR_RETURN(sockets_, open_fabric_({.kind = fabric::Kind::kTcp,
                                                 .secret = options_.catalog.secret,
                                                 .host = exchange_host_}));
  }
  return sockets_.get();
}

absl::StatusOr<execution::ExchangeLanes> ComputeServerImpl::LanesOf(const proto::AttemptRequest& request,
                                                                    const plan::PhysicalPlan& plan,
                                                                    Endpoints endpoints) const {
  execution::ExchangeLanes lanes{std::move(endpoints), {}};
  if (lanes.endpoints.empty()) return lanes;
  NAM_ASSIGN_OR_RETURN(const execution::ExchangeShape shape,
                       execution::ExchangeShapeOf(plan, request.stage()));
  for (size_t t = 0; t < lanes.endpoints.size(); ++t) {
    const execution::EndpointOptions& options = lanes.endpoints[t]->options();
    if (options.exchanges.size() != shape.exchanges || options.message_bytes < shape.message_bytes ||
        options.stage != request.stage() || options.self != request.exchanges().self() ||
        options.members.size() != static_cast<size_t>(request.exchanges().members_size()))
      return absl::InvalidArgumentError("an attempt with other exchanges than it has opened");
    std::vector<std::string>& addresses = lanes.addresses.emplace_back();
    for (const proto::ExchangeMember& member : request.exchanges().members()) {
      if (member.addresses_size() != static_cast<int>(lanes.endpoints.size()))
        return absl::InvalidArgumentError("a member of an exchange with another number of threads");
      addresses.push_back(member.addresses(static_cast<int>(t)));
    }
  }
  return lanes;
}

/// The table as the client describes it, if no catalog has it; otherwise null.
std::shared_ptr<const proto::Table> UncommittedOf(const proto::AttemptRequest& request,
                                                  const plan::TableRef& table) {
  for (const proto::Table& told : request.uncommitted()) {
    if (told.allocation() == table.allocation && told.name() == table.name && !told.has_record())
      return std::make_shared<proto::Table>(told);
  }
  return nullptr;
}

absl::StatusOr<execution::TableTarget> ComputeServerImpl::TargetOf(const proto::TableWrite& write) {
  if (write.allocation() == 0) return absl::InvalidArgumentError("a table is written without memory");
  execution::TableTarget target{.attachment = attachment_.get(),
                                .allocation = AllocationId(write.allocation()),
                                .table = write.table(),
                                .given = {}};
  for (const proto::GivenColumn& given : write.given()) {
    partitioner::GivenColumn& out = target.given.emplace_back();
    out.slot = std::max(given.slot(), -1);
    if (out.slot >= 0) continue;
    NAM_ASSIGN_OR_RETURN(out.absent, ValueOf(given.absent()));
  }
  return target;
}

absl::StatusOr<std::vector<std::string>> ComputeServerImpl::LoadRows(const proto::RecordRows& rows,
                                                                     uint32_t row_bytes) {
  std::vector<std::string> out;
  if (rows.few().size() % row_bytes != 0) return absl::InvalidArgumentError("rows of another size");
  for (size_t at = 0; at < rows.few().size(); at += row_bytes)
    out.push_back(rows.few().substr(at, row_bytes));
  const proto::PartPages& more = rows.more();
  if (more.pages_size() != more.bytes_size()) return absl::InvalidArgumentError("pages without sizes");
  if (more.pages_size() == 0) return out;
  storage::RowPages pages{.pages = {}, .rows = more.rows()};
  for (int i = 0; i < more.pages_size(); ++i)
    pages.pages.push_back({storage::RemotePtr<void>::FromRaw(more.pages(i)), more.bytes(i)});
  NAM_ASSIGN_OR_RETURN(const execution::ChannelPool::Lease channel, channels_.Acquire());
  storage::ScratchReader reader(*channel, storage::kRowPageBytes, kRowPagesAtOnce, stopping_);
  NAM_RETURN_IF_ERROR(storage::ReadRowPages(reader, pages, row_bytes, out));
  return out;
}

absl::StatusOr<std::unique_ptr<execution::PreparedStage>> ComputeServerImpl::Prepare(
    const proto::AttemptRequest& request, const Place& place) {
  execution::StageInputs inputs{.settings = request.settings(), .threads = std::max(1, options_.threads)};
  inputs.memory = std::shared_ptr<execution::MemoryGrant>(place, &place->memory());
  if (inputs.settings.window() < 1 || inputs.settings.window() > 64)
    return absl::InvalidArgumentError("the window must be 1 to 64 blocks");
  NAM_ASSIGN_OR_RETURN(inputs.plan, plan::FromProto(request.plan()));
  for (const plan::TableRef& table : inputs.plan.tables) {
    std::shared_ptr<const proto::Table> meta = UncommittedOf(request, table);
    if (meta == nullptr) {
      NAM_ASSIGN_OR_RETURN(meta, cache_.Table(table.name, table.allocation));
    }
    inputs.known.push_back(meta->has_record() ? nullptr : cache_.Known(*meta));
    inputs.tables.push_back(std::move(meta));
  }
  NAM_RETURN_IF_ERROR(plan::CheckTables(inputs.plan, inputs.tables));
  inputs.stage = request.stage();
  if (inputs.stage >= inputs.plan.stages.size() ||
      inputs.plan.stages[inputs.stage].site != plan::Stage::Site::kServers)
    return absl::InvalidArgumentError("not a stage of compute servers");
  for (const proto::Piece& piece : request.pieces())
    inputs.pieces.push_back({piece.partition(), piece.first_block(), piece.blocks()});
  if (request.has_counter()) {
    const auto word = storage::RemotePtr<void>::FromRaw(request.counter().word());
    if (word.offset() % sizeof(uint64_t) != 0)
      return absl::InvalidArgumentError("not a work counter: its word is not aligned");
    const AllocationId allocation(request.counter().allocation());
    NAM_ASSIGN_OR_RETURN(std::shared_ptr<fabric::Grant> grant,
                         attachment_->OpenAllocation(word.server(), allocation));
    inputs.counter = {word, allocation, request.counter().base(), std::move(grant)};
  }
  inputs.load_dictionary = [this](const proto::Table& table, uint32_t column, uint32_t group) {
    return cache_.Dictionary(table, column, group);
  };
  inputs.records = &records_;
  inputs.record_inputs.assign(request.records().begin(), request.records().end());
  inputs.load_rows = [this](const proto::RecordRows& rows, uint32_t row_bytes) {
    return LoadRows(rows, row_bytes);
  };
  inputs.window_bytes = request.window_bytes();
  inputs.attempt = request.attempt();
  inputs.always_by_parts = options_.always_by_parts;
  if (request.has_exchanges()) {
    inputs.member = request.exchanges().self();
    inputs.members = static_cast<uint32_t>(request.exchanges().members_size());
    if (inputs.member >= inputs.members) return absl::InvalidArgumentError("no member of its exchanges");
    // As many threads as its ends, or LanesOf refuses it.
    inputs.threads = std::clamp(request.exchanges().members(0).addresses_size(), 1, inputs.threads);
  }
  if (request.has_write()) {
    NAM_ASSIGN_OR_RETURN(inputs.table_target, TargetOf(request.write()));
  }
  inputs.directories.assign(request.inputs().begin(), request.inputs().end());
  if (request.scratch() != 0) {
    inputs.scratch = execution::OpenScratch(*attachment_, AllocationId(request.scratch()), request.attempt());
  }
  return execution::PreparedStage::Make(std::move(inputs), stopping_);
}

absl::StatusOr<proto::AttemptReply> ComputeServerImpl::OrOver(
    absl::StatusOr<proto::AttemptReply> reply) const {
  const bool perhaps = !reply.ok() && !absl::IsCancelled(reply.status()) && !SqlErrorOf(reply.status());
  if (!perhaps) return reply;
  const std::shared_ptr<catalog::Membership> membership = Now();
  if (membership == nullptr || !absl::IsNotFound(membership->Ask())) return reply;
  absl::Status over = reply.status();
  over.SetPayload(execution::kServerOver, absl::Cord());
  return over;
}

/// A turn of its own, or the one that it has had since its exchanges were opened.
absl::StatusOr<OpenExchanges::Ends> ComputeServerImpl::Begin(const catalog::IncomingCall& call,
                                                             const proto::AttemptRequest& request) {
  if (request.has_exchanges()) {
    std::optional<OpenExchanges::Ends> open = exchanges_.Take(request.attempt(), MemberId(request.client()));
    if (open.has_value()) return *std::move(open);
    absl::Status closed =
        absl::UnavailableError("the exchanges of the attempt are not open, or not any more");
    closed.SetPayload(execution::kExchangeMemberLost, absl::Cord());
    return closed;
  }
  const AttemptQueue::Needs needs =
      NeedsOf(request.settings(), request.whole_memory(), request.window_bytes() > 0);
  NAM_ASSIGN_OR_RETURN(AttemptQueue::Beginning begun,
                       queue_.Begin(call, needs, [this] { open_.EndStanding(options_.standing_us_max); }));
  return OpenExchanges::Ends{std::move(begun), {}};
}

absl::StatusOr<proto::AttemptReply> ComputeServerImpl::Run(const catalog::IncomingCall& call,
                                                           const proto::AttemptRequest& request) {
  for (const uint64_t attempt : request.release()) Release(attempt, MemberId(request.client()));
  if (request.resume() > 0) return Resume(call, request);
  NAM_ASSIGN_OR_RETURN(OpenExchanges::Ends begun, Begin(call, request));
  if (stopping_) {
    proto::AttemptReply reply;
    reply.set_leaving(true);
    return reply;
  }
  const Place& place = begun.beginning.place;
  absl::StatusOr<std::unique_ptr<AttemptRun>> run = NewRun(request, place, std::move(begun.endpoints));
  if (!run.ok()) {
    return OrCrowded(run.status(), place->memory(), request.whole_memory(), 0,
                     request.settings().result_bytes_max());
  }
  if (request.window_bytes() == 0) {
    absl::StatusOr<proto::AttemptReply> reply = (*run)->Advance(call);
    if (call.Cancelled())
      (*run)->Cancel();  // the caller is gone and could neither read the result nor release it
    return reply;
  }
  return open_.Begin(request.attempt(), MemberId(request.client()), *std::move(run), call);
}

absl::StatusOr<proto::AttemptReply> ComputeServerImpl::Resume(const catalog::IncomingCall& call,
                                                              const proto::AttemptRequest& request) {
  std::optional<AttemptQueue::Turn> turn;
  const auto await_turn = [&] {
    absl::StatusOr<AttemptQueue::Turn> came = queue_.Resume(call);
    if (came.ok()) turn.emplace(*std::move(came));
    return came.status();
  };
  auto reply =
      open_.Resume(request.attempt(), MemberId(request.client()), request.resume(), call, await_turn);
  if (absl::IsResourceExhausted(reply.status()))
    results_->Release(request.attempt(), MemberId(request.client()));  // the window that it stood still with
  return reply;
}

void ComputeServerImpl::Release(uint64_t attempt, MemberId client) {
  exchanges_.Release(attempt, client);
  open_.Release(attempt, client);
  results_->Release(attempt, client);
}

absl::StatusOr<std::unique_ptr<AttemptRun>> ComputeServerImpl::NewRun(const proto::AttemptRequest& request,
                                                                      const Place& place,
                                                                      Endpoints endpoints) {
  if (request.client() == 0) return absl::InvalidArgumentError("a result is for a member of the cluster");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<execution::PreparedStage> stage, Prepare(request, place));
  std::vector<std::vector<uint32_t>> needed;
  for (size_t p = 0; p < stage->plan().pipelines.size(); ++p) needed.push_back(stage->pipeline(p).partitions);
  NAM_ASSIGN_OR_RETURN(
      execution::MulticastBuild multicast,
      execution::MulticastBuild::From(request.multicast(), stage->plan(), stage->inputs().tables, needed));
  for (const uint32_t p : multicast.pipelines) {
    if (stage->plan().pipelines[p].stage != request.stage())
      return absl::InvalidArgumentError("a build side of another stage by multicast");
  }
  NAM_ASSIGN_OR_RETURN(execution::ExchangeLanes lanes, LanesOf(request, stage->plan(), std::move(endpoints)));
  return std::make_unique<AttemptRun>(AttemptRun::Server{.channels = channels_,
                                                         .claim_channels = claim_channels_,
                                                         .results = *results_,
                                                         .leaving = stopping_},
                                      request.attempt(), MemberId(request.client()), request.whole_memory(),
                                      std::move(stage), std::move(multicast), std::move(lanes));
}

std::set<MemberId> ComputeServerImpl::Clients() {
  std::set<MemberId> clients = results_->Clients();
  clients.merge(open_.Clients());
  clients.merge(exchanges_.Clients());
  return clients;
}

catalog::Membership::Hooks ComputeServerImpl::HooksOfMembership() {
  catalog::Membership::Hooks hooks = attachment_->HooksOfMembership();
  hooks.before_renew = [this, before = std::move(hooks.before_renew)](proto::RenewRequest& request) {
    before(request);
    exchanges_.DropOld();
    for (const MemberId client : Clients()) request.add_watched_members(client.value());
  };
  hooks.after_renew = [this, after = std::move(hooks.after_renew)](const proto::RenewReply& reply) {
    proto::RenewReply others = reply;
    others.clear_over();
    const std::set<MemberId> clients = Clients();
    for (const uint32_t over : reply.over()) {
      if (clients.contains(MemberId(over))) {
        exchanges_.DropOf(MemberId(over));
        open_.EndOf(MemberId(over));
        results_->DropOf(MemberId(over));
      } else {
        others.add_over(over);
      }
    }
    after(others);
  };
  return hooks;
}

/// The address for others; addresses without a host are unchanged.
std::string ComputeServerImpl::Advertised(const std::string& address) const {
  if (!catalog::SplitAddress(address).ok()) return address;
  return catalog::AdvertisedAddress(address, options_.advertised_host,
                                    options_.catalog.control_plane->host_name());
}

absl::Status ComputeServerImpl::Listen() {
  NAM_ASSIGN_OR_RETURN(results_, ResultStore::Create(attachment_->fabric()));
  catalog::ControlPlane& control_plane = *options_.catalog.control_plane;
  NAM_ASSIGN_OR_RETURN(control_server_, control_plane.Serve({.address = options_.control_listen_address,
                                                             .secret = options_.catalog.secret,
                                                             .handlers = &handlers_}));
  control_address_ = Advertised(control_server_->address());
  std::string address = options_.fabric_listen_address;
  if (address.empty()) {
    NAM_ASSIGN_OR_RETURN(const auto control, catalog::SplitAddress(control_server_->address()));
    address = fabric::AnyAddress(attachment_->fabric().kind(), control.first);
  }
  NAM_ASSIGN_OR_RETURN(listener_, attachment_->fabric().Listen({.address = address, .passive = true}));
  fabric_address_ = listener_->address();
  // Over shared memory the fabric has no host, but sockets beside it do.
  const bool has_host = catalog::SplitAddress(fabric_address_).ok();
  NAM_ASSIGN_OR_RETURN(const auto listens,
                       catalog::SplitAddress(has_host ? fabric_address_ : control_server_->address()));
  exchange_host_ = listens.first;
  if (has_host) fabric_address_ = Advertised(fabric_address_);
  if (attachment_->fabric().capabilities().one_host) return absl::OkStatus();
  return catalog::CheckAdvertised(options_.catalog.address, {control_address_, fabric_address_});
}

absl::Status ComputeServerImpl::Join() {
  proto::Member self;
  self.set_role(proto::ROLE_COMPUTE);
  self.set_host(options_.catalog.control_plane->host_name());
  self.set_pid(static_cast<uint32_t>(::getpid()));
  self.set_control_address(control_address_);
  self.set_fabric_address(fabric_address_);
  self.set_threads(static_cast<uint32_t>(std::max(1, options_.threads)));
  catalog::Membership::Hooks hooks = HooksOfMembership();
  hooks.on_lost = options_.on_lost;
  NAM_ASSIGN_OR_RETURN(
      std::shared_ptr<catalog::Membership> joined,
      catalog::Membership::Join(attachment_->catalog(), attachment_->fabric(), self, std::move(hooks)));
  attachment_->ActAs(*joined);
  LogInfo(absl::StrFormat("joined the cluster as compute server %d", joined->id().value()));
  const MutexLock lock(membership_mutex_);
  membership_ = std::move(joined);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeServer>> StartOverFabric(const ComputeServerOptions& options,
                                                               const catalog::FabricOpener& open) {
  // The membership comes last, with the addresses that are known only then.
  NAM_ASSIGN_OR_RETURN(auto attachment,
                       catalog::AttachOverFabric({.catalog = options.catalog,
                                                  .role = proto::ROLE_UNKNOWN,
                                                  .rdma = options.rdma,
                                                  .host = catalog::FabricHost(options.advertised_host,
                                                                              options.fabric_listen_address,
                                                                              options.control_listen_address),
                                                  .multicast_interface = options.multicast_interface,
                                                  .multicast_ttl = options.multicast_ttl},
                                                 open));
  auto server = std::make_unique<ComputeServerImpl>(options, std::move(attachment), open);
  NAM_RETURN_IF_ERROR(server->Listen());
  NAM_RETURN_IF_ERROR(server->Join());
  return server;
}

}  // namespace nam::computeserver
