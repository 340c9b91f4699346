#include "bench/shuffle_cluster.h"

#include <atomic>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/exchange/send_receive_endpoint.h"
#include "session/query_result.h"
#include "session/result_collector.h"

namespace nam::bench {
namespace {

constexpr uint64_t kAttempt = 1;
constexpr int64_t kConnectUs = 10'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<ShuffleCluster>> ShuffleCluster::Open(std::vector<fabric::Fabric*> fabrics,
                                                                     const Options& options) {
  std::unique_ptr<ShuffleCluster> cluster(new ShuffleCluster(options));
  const auto count = static_cast<uint32_t>(fabrics.size());
  for (uint32_t number = 0; number < count; ++number) {
    Server& server = *cluster->servers_.emplace_back(std::make_unique<Server>());
    server.fabric = fabrics[number];
    server.run.number = number;
    server.run.servers = count;
    server.run.cancel = &cluster->cancel_;
    server.threads.resize(options.threads);
    for (Thread& thread : server.threads) {
      NAM_ASSIGN_OR_RETURN(thread.endpoint, cluster->OpenEndpoint(server));
    }
  }
  NAM_RETURN_IF_ERROR(cluster->Connect());
  return cluster;
}

absl::StatusOr<std::unique_ptr<execution::Endpoint>> ShuffleCluster::OpenEndpoint(
    const Server& server) const {
  execution::EndpointOptions options{.self = server.run.number,
                                     .message_bytes = options_.messages.batch_bytes,
                                     .credits = options_.messages.credits};
  for (uint32_t number = 0; number < server.run.servers; ++number)
    options.members.push_back(absl::StrCat("server ", number));
  options.exchanges.assign(size_t{2} * options_.messages.legs,
                           execution::RepartitionAmong(server.run.servers));
  const std::string host = server.fabric->kind() == fabric::Kind::kSim ? "" : "127.0.0.1";
  return execution::SendReceiveEndpoint::Open(*server.fabric, std::move(options), host);
}

/// Connects each endpoint with the same thread's endpoints of the other servers.
absl::Status ShuffleCluster::Connect() {
  std::vector<std::unique_ptr<fabric::Thread>> meeting;
  for (uint32_t t = 0; t < options_.threads; ++t) {
    std::vector<std::string> addresses;
    for (const auto& server : servers_) addresses.push_back(server->threads[t].endpoint->address());
    for (const auto& server : servers_) {
      meeting.push_back(server->fabric->StartThread(
          "nam-meet", [this, addresses, &server = *server, &thread = server->threads[t]] {
            thread.result =
                thread.endpoint->Connect(addresses, server.fabric->clock().After(kConnectUs), cancel_);
          }));
    }
  }
  meeting.clear();
  for (const auto& server : servers_) {
    for (const Thread& thread : server->threads) NAM_RETURN_IF_ERROR(thread.result);
  }
  return absl::OkStatus();
}

absl::Status ShuffleCluster::Prepare(const ShuffleQuery& query, const ShuffleTables& rows, bool materialize) {
  const plan::TableMetadata& tables = query.stage.tables;
  for (const auto& server : servers_) {
    ShuffleServerRun& run = server->run;
    run.plan = &query.plan;
    run.materialize = materialize;
    run.rows.clear();
    for (const auto& table : tables) {
      const auto found = rows.find(table->name());
      if (found == rows.end())
        return absl::NotFoundError(absl::StrCat("the servers hold no rows of ", table->name()));
      run.rows.push_back(found->second.get());
    }
    run.claimed.reset(new std::atomic<uint32_t>[tables.size()]);
    for (size_t t = 0; t < tables.size(); ++t) run.claimed[t] = 0;
  }
  return absl::OkStatus();
}

/// Prepares the build sides and the sink of one run.
absl::Status ShuffleCluster::PrepareStage(const ShuffleQuery& query, Server& server) {
  ShuffleServerRun& run = server.run;
  for (Thread& thread : server.threads) {
    thread.worker.reset();  // of a failed run
    NAM_RETURN_IF_ERROR(thread.endpoint->Begin(/*stage=*/0, runs_));
  }
  NAM_ASSIGN_OR_RETURN(run.stage, execution::PreparedStage::Make(query.stage, leaving_));
  run.building = static_cast<int>(options_.threads);
  run.built = server.fabric->CreateEvent();
  return absl::OkStatus();
}

absl::Status ShuffleCluster::RunThread(Server& server, Thread& thread) {
  thread.worker = std::make_unique<ShuffleWorker>(server.run, *thread.endpoint, server.fabric->clock());
  const absl::Status status = thread.worker->Run();
  if (!status.ok()) cancel_ = true;
  return status;
}

absl::Status ShuffleCluster::RunThreads() {
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (const auto& server : servers_) {
    for (Thread& thread : server->threads) {
      threads.push_back(server->fabric->StartThread(
          "nam-shuffle", [this, &server = *server, &thread] { thread.result = RunThread(server, thread); }));
    }
  }
  threads.clear();
  absl::Status cancelled;
  for (const auto& server : servers_) {
    for (const Thread& thread : server->threads) {
      // Cancellations that follow the first failure are not reported.
      if (!thread.result.ok() && !absl::IsCancelled(thread.result)) return thread.result;
      if (!thread.result.ok()) cancelled = thread.result;
    }
  }
  return cancelled;
}

/// Merges the servers' group pages, as attempts leave them, into the result.
absl::StatusOr<session::ResultSet> ShuffleCluster::Merge(const ShuffleQuery& query) {
  Clock& clock = servers_[0]->fabric->clock();
  session::ResultCollector rows;
  session::QueryResult result(query.columns, rows);
  NAM_ASSIGN_OR_RETURN(const auto finish,
                       result.PrepareStage(query.stage.plan, query.stage.tables,
                                           query.stage.settings.result_bytes_max(), clock, cancel_));
  for (const auto& server : servers_) {
    execution::PreparedStage& stage = *server->run.stage;
    execution::AggregateSink& sink = *stage.pipeline(stage.claimed()).aggregate;
    execution::TaskContext context(clock, stage.result_budget(), cancel_);
    const uint32_t parts = sink.CombineParts();
    for (uint32_t part = 0; part < parts; ++part) NAM_RETURN_IF_ERROR(sink.Combine(context, part));
    std::vector<std::span<const std::byte>> pages;
    NAM_RETURN_IF_ERROR(sink.Store(context, kAttempt, pages));
    context.Settle();
    std::vector<std::byte> stored;
    for (const std::span<const std::byte> page : pages) stored.insert(stored.end(), page.begin(), page.end());
    NAM_RETURN_IF_ERROR(finish->Add(stage.claimed(), stored, kAttempt));
  }
  NAM_RETURN_IF_ERROR(finish->Run());
  NAM_ASSIGN_OR_RETURN(session::ResultSet out, result.Finish());
  out.rows = rows.Take();
  return out;
}

absl::StatusOr<ShuffleCluster::Answer> ShuffleCluster::Run(const ShuffleQuery& query,
                                                           const ShuffleTables& rows, bool materialize) {
  Answer answer;
  for (const auto& server : servers_) {
    for (const Thread& thread : server->threads) answer.sent_bytes -= thread.endpoint->sent_bytes();
  }
  NAM_RETURN_IF_ERROR(Prepare(query, rows, materialize));
  Clock& clock = servers_[0]->fabric->clock();
  const int64_t started_ns = clock.NowNs();
  ++runs_;
  for (const auto& server : servers_) NAM_RETURN_IF_ERROR(PrepareStage(query, *server));
  NAM_RETURN_IF_ERROR(RunThreads());
  NAM_ASSIGN_OR_RETURN(answer.result, Merge(query));
  answer.elapsed_ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
  for (const auto& server : servers_) {
    for (Thread& thread : server->threads) {
      answer.sent_bytes += thread.endpoint->sent_bytes();
      answer.work.Add(thread.worker->work());
      thread.worker.reset();
    }
  }
  return answer;
}

}  // namespace nam::bench
