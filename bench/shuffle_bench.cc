#include "bench/shuffle_bench.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "dataset/load.h"
#include "execution/exchange/send_receive_endpoint.h"
#include "execution/local_stage.h"
#include "partitioner/column_batch.h"
#include "partitioner/loader.h"
#include "partitioner/table_metadata.h"
#include "plan/flow.h"
#include "session/query_result.h"
#include "session/result_collector.h"
#include "ssb/generator.h"
#include "ssb/schema.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

constexpr ssb::Table kTables[] = {ssb::Table::kCustomer, ssb::Table::kPart, ssb::Table::kSupplier,
                                  ssb::Table::kLineorder};
constexpr int kLoaderThreads = 2;
constexpr uint64_t kUnitsAtOnce = 8'192;
/// Small enough that threads share a table evenly, and large enough that claiming one is cheap.
constexpr size_t kShuffleChunkRows = 4096;
constexpr uint64_t kAttempt = 1;
constexpr int64_t kConnectUs = 10'000'000;

/// The catalog's tables, fetched once, as for a statement.
class CatalogTableSource final : public sql::TableSource {
 public:
  explicit CatalogTableSource(catalog::Client& catalog) : catalog_(catalog) {}
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    return catalog_.GetTable(name);
  }
  std::vector<std::string> Names() override { return {}; }

 private:
  catalog::Client& catalog_;
};

/// Encodes a table's rows as the table in memory servers does.
class RowEncoder {
 public:
  /// `columns` are the needed ones; loads the dictionaries of their strings.
  absl::Status Open(std::shared_ptr<const proto::Table> table, std::vector<uint32_t> columns,
                    const execution::DictionaryLoader& load) {
    widths_ = partitioner::WidthsOf(*table, 0);
    texts_.resize(static_cast<size_t>(table->columns_size()));
    for (const uint32_t column : columns) {
      const proto::Column& of = table->columns(static_cast<int>(column));
      if (of.nullable()) return absl::InvalidArgumentError(absl::StrCat(of.name(), " may be NULL"));
      if (!of.encoding().has_dictionary()) continue;
      NAM_ASSIGN_OR_RETURN(texts_[column].dictionary, load(*table, column, /*group=*/0));
    }
    table_ = std::move(table);
    columns_ = std::move(columns);
    return absl::OkStatus();
  }

  /// Adds a run of the table's rows. DATA_LOSS if a value is not in the table's encoding.
  absl::Status Append(const partitioner::ColumnBatch& batch) {
    for (size_t first = 0; first < batch.rows(); first += kShuffleChunkRows) {
      const size_t rows = std::min(kShuffleChunkRows, batch.rows() - first);
      NAM_RETURN_IF_ERROR(AppendRows(batch, first, static_cast<uint32_t>(rows)));
    }
    return absl::OkStatus();
  }

  ShuffleTable Take() { return std::move(chunks_); }

 private:
  struct Text {
    std::shared_ptr<const storage::Dictionary> dictionary;
    absl::flat_hash_map<std::string, uint64_t> codes;  // cache of look-ups
  };

  absl::Status AppendRows(const partitioner::ColumnBatch& batch, size_t first, uint32_t rows) {
    ShuffleChunk& chunk = chunks_.emplace_back();
    chunk.rows = rows;
    chunk.columns.resize(widths_.size());
    for (const uint32_t column : columns_) {
      const uint8_t width = widths_[column];
      std::vector<std::byte>& codes = chunk.columns[column];
      codes.resize(size_t{rows} * width);
      for (uint32_t row = 0; row < rows; ++row) {
        NAM_ASSIGN_OR_RETURN(const uint64_t code, CodeOf(batch.column(column), first + row, column));
        std::memcpy(codes.data() + size_t{row} * width, &code, width);  // little-endian
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> CodeOf(const partitioner::ColumnBatch::Column& column, size_t row,
                                  uint32_t number) {
    const proto::Column& of = table_->columns(static_cast<int>(number));
    const auto base = static_cast<uint64_t>(of.encoding().base());
    Text& text = texts_[number];
    if (text.dictionary == nullptr) {
      const int64_t value = column.numbers[row];
      if (value < of.min() || value > of.max())
        return absl::DataLossError(absl::StrCat(of.name(), " is not what was loaded"));
      return static_cast<uint64_t>(value) - base;
    }
    const auto [known, fresh] = text.codes.try_emplace(std::string(column.strings[row]), 0);
    if (fresh) {
      const std::optional<size_t> entry = text.dictionary->Find(column.strings[row]);
      if (!entry) return absl::DataLossError(absl::StrCat(of.name(), " is not what was loaded"));
      known->second = *entry - base;
    }
    return known->second;
  }

  std::shared_ptr<const proto::Table> table_;
  std::vector<uint32_t> columns_;
  std::vector<uint8_t> widths_;
  std::vector<Text> texts_;  // by column number
  ShuffleTable chunks_;
};

/// The servers' initial rows, by table.
using ShuffleTables = std::map<std::string, ShuffleTable>;

/// Compute servers that run shuffle-based plans: one fabric each, with threads connected all to all. Used by
/// one thread.
class ShuffleCluster {
 public:
  ShuffleCluster(uint32_t threads, const ShuffleMessages& messages)
      : threads_(threads), messages_(messages) {}

  /// One server per fabric. The fabrics must outlive the cluster.
  absl::Status Open(const std::vector<fabric::Fabric*>& fabrics) {
    for (fabric::Fabric* const fabric : fabrics) {
      Server& server = *servers_.emplace_back(std::make_unique<Server>());
      server.fabric = fabric;
      server.run.number = static_cast<uint32_t>(servers_.size() - 1);
      server.run.servers = static_cast<uint32_t>(fabrics.size());
      server.run.cancel = &cancel_;
      for (uint32_t t = 0; t < threads_; ++t) {
        NAM_ASSIGN_OR_RETURN(server.endpoints.emplace_back(), OpenEndpoint(server));
      }
    }
    // Connects each endpoint with the same thread's endpoints of the other servers.
    return OnAllThreads([&](Server& server, size_t t) {
      std::vector<std::string> addresses;
      for (const auto& each : servers_) addresses.push_back(each->endpoints[t]->address());
      return server.endpoints[t]->Connect(addresses, server.fabric->clock().After(kConnectUs), cancel_);
    });
  }

  struct Answer {
    session::ResultSet result;
    double elapsed_ms = 0;  // from the start of the threads to the merged result
    uint64_t sent_bytes = 0;
    ShuffleWork work;  // of all threads
  };
  /// `materialize`: writes every join's output to memory before the next one begins; otherwise it continues
  /// at once.
  absl::StatusOr<Answer> Run(const ShuffleQuery& query, const ShuffleTables& rows, bool materialize) {
    const uint64_t sent_before = SentBytes();
    NAM_RETURN_IF_ERROR(Prepare(query, rows, materialize));
    Clock& clock = servers_[0]->fabric->clock();
    const int64_t started_ns = clock.NowNs();
    ++runs_;
    for (const auto& server : servers_) NAM_RETURN_IF_ERROR(PrepareStage(query, *server));
    std::vector<ShuffleWork> work(servers_.size() * threads_);
    NAM_RETURN_IF_ERROR(OnAllThreads([&](Server& server, size_t t) {
      return RunShuffleThread(server.run, *server.endpoints[t], server.fabric->clock(),
                              work[server.run.number * threads_ + t]);
    }));
    Answer answer;
    NAM_ASSIGN_OR_RETURN(answer.result, Merge(query));
    answer.elapsed_ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
    answer.sent_bytes = SentBytes() - sent_before;
    for (const ShuffleWork& each : work) answer.work.Add(each);
    return answer;
  }

 private:
  struct Server {
    fabric::Fabric* fabric = nullptr;
    std::vector<std::unique_ptr<execution::Endpoint>> endpoints;  // by thread
    ShuffleServerRun run;
  };

  absl::StatusOr<std::unique_ptr<execution::Endpoint>> OpenEndpoint(const Server& server) const {
    execution::EndpointOptions options{
        .self = server.run.number, .message_bytes = messages_.batch_bytes, .credits = messages_.credits};
    for (uint32_t number = 0; number < server.run.servers; ++number)
      options.members.push_back(absl::StrCat("server ", number));
    options.exchanges.assign(size_t{2} * messages_.legs, execution::RepartitionAmong(server.run.servers));
    return execution::SendReceiveEndpoint::Open(*server.fabric, std::move(options), "127.0.0.1");
  }

  /// Runs the body on every server's threads. The first failure cancels the others, and is the only one
  /// reported.
  absl::Status OnAllThreads(const std::function<absl::Status(Server&, size_t)>& body) {
    std::vector<fabric::Fabric*> fabrics;
    for (const auto& server : servers_) fabrics.insert(fabrics.end(), threads_, server->fabric);
    return RunAtOnce(fabrics, [&](size_t i) {
      const absl::Status status = body(*servers_[i / threads_], i % threads_);
      return status.ok() || cancel_.exchange(true) ? absl::OkStatus() : status;
    });
  }

  uint64_t SentBytes() const {
    uint64_t bytes = 0;
    for (const auto& server : servers_) {
      for (const auto& endpoint : server->endpoints) bytes += endpoint->sent_bytes();
    }
    return bytes;
  }

  absl::Status Prepare(const ShuffleQuery& query, const ShuffleTables& rows, bool materialize) {
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
        run.rows.push_back(&found->second);
      }
      run.claimed.reset(new std::atomic<uint32_t>[tables.size()]);
      for (size_t t = 0; t < tables.size(); ++t) run.claimed[t] = 0;
    }
    return absl::OkStatus();
  }

  /// Prepares the build sides and the sink of one run.
  absl::Status PrepareStage(const ShuffleQuery& query, Server& server) {
    ShuffleServerRun& run = server.run;
    for (const auto& endpoint : server.endpoints) NAM_RETURN_IF_ERROR(endpoint->Begin(/*stage=*/0, runs_));
    NAM_ASSIGN_OR_RETURN(run.stage, execution::PreparedStage::Make(query.stage, leaving_));
    run.building = static_cast<int>(threads_);
    run.built = server.fabric->CreateEvent();
    return absl::OkStatus();
  }

  /// Merges the servers' group pages, as attempts leave them, into the result.
  absl::StatusOr<session::ResultSet> Merge(const ShuffleQuery& query) {
    Clock& clock = servers_[0]->fabric->clock();
    session::ResultCollector rows;
    session::QueryResult result(query.columns, rows);
    NAM_ASSIGN_OR_RETURN(const auto finish, result.PrepareStage(query.stage.plan, query.stage.tables,
                                                                query.stage.settings.result_bytes_max(),
                                                                *servers_[0]->fabric, cancel_));
    for (const auto& server : servers_) {
      execution::PreparedStage& stage = *server->run.stage;
      execution::Sink& sink = *stage.pipeline(stage.claimed()).sink;
      execution::TaskContext context(clock, stage.result_budget(), cancel_);
      const uint32_t parts = sink.CombineParts();
      for (uint32_t part = 0; part < parts; ++part) NAM_RETURN_IF_ERROR(sink.Combine(context, part));
      std::vector<std::span<const std::byte>> pages;
      NAM_RETURN_IF_ERROR(sink.Store(context, kAttempt, pages));
      context.Settle();
      std::vector<std::byte> stored;
      for (const std::span<const std::byte> page : pages)
        stored.insert(stored.end(), page.begin(), page.end());
      NAM_RETURN_IF_ERROR(finish->Add(stage.claimed(), stored, kAttempt));
    }
    NAM_RETURN_IF_ERROR(finish->Run());
    NAM_ASSIGN_OR_RETURN(session::ResultSet out, result.Finish());
    out.rows = rows.Take();
    return out;
  }

  const uint32_t threads_;  // per server
  const ShuffleMessages messages_;
  std::atomic<bool> cancel_ = false;
  const std::atomic<bool> leaving_ = false;  // servers never leave
  uint64_t runs_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
};

std::string QueryOf(uint32_t tables) {
  switch (tables) {
    case 2:
      return "select c_nation, sum(lo_revenue) from lineorder, customer where lo_custkey = c_custkey "
             "group by c_nation";
    case 3:
      return "select c_nation, p_mfgr, sum(lo_revenue) from lineorder, customer, part "
             "where lo_custkey = c_custkey and lo_partkey = p_partkey group by c_nation, p_mfgr";
    default:
      return "select c_nation, p_mfgr, s_region, sum(lo_revenue) from lineorder, customer, part, supplier "
             "where lo_custkey = c_custkey and lo_partkey = p_partkey and lo_suppkey = s_suppkey "
             "group by c_nation, p_mfgr, s_region";
  }
}

class Bench {
 public:
  Bench(const ShuffleEnvironment& cluster, const ShuffleOptions& options)
      : cluster_(cluster), options_(options) {}

  absl::Status Load(Run& run) {
    const ssb::Generator generator({.scale_factor = options_.scale_factor, .seed = options_.seed});
    for (const ssb::Table table : kTables) {
      if (!run.Proceed(absl::StrCat("loading ", std::string(ssb::TableName(table)))))
        return absl::CancelledError("interrupted");
      partitioner::LoadOptions load{.expected_rows = generator.Rows(table), .threads = kLoaderThreads};
      NAM_ASSIGN_OR_RETURN(
          const auto loader,
          partitioner::BeginLoad(*cluster_.attachment, ssb::Schema(table, options_.fan_out), load));
      const auto sink = [&](const partitioner::ColumnBatch& batch) { return loader->Append(batch); };
      NAM_RETURN_IF_ERROR(dataset::LoadGenerated(cluster_.attachment->fabric(), generator, table, sink,
                                                 {.threads = kLoaderThreads})
                              .status());
      NAM_RETURN_IF_ERROR(loader->Commit().status());
    }
    NAM_RETURN_IF_ERROR(Bind());
    if (!run.Proceed("giving the shuffle's servers their rows")) return absl::CancelledError("interrupted");
    NAM_RETURN_IF_ERROR(KeepRows());
    channel_.reset();  // all dictionaries are loaded
    return absl::OkStatus();
  }

  absl::Status Measure(Run& run) {
    ShuffleCluster shuffle(options_.threads, options_.messages);
    NAM_RETURN_IF_ERROR(shuffle.Open(cluster_.fabrics));
    const size_t servers = cluster_.fabrics.size();
    for (const std::string& setting :
         {absl::StrCat("compute_servers = ", servers), absl::StrCat("multicast = ", options_.multicast),
          absl::StrCat("whole_tuples = ", options_.whole_tuples ? "on" : "off")})
      NAM_RETURN_IF_ERROR(cluster_.session->Execute("SET nam." + setting).status());
    for (size_t q = 0; q < queries_.size(); ++q) {
      ShuffleCase& measured = figures_.cases.emplace_back(ShuffleCase{.tables = options_.tables[q]});
      std::vector<Contender> plans;
      for (const char* plan : {kPipelined, kShuffle, kMaterialized})
        plans.push_back({plan, [&, q, plan] { return TakeTurn(shuffle, q, plan, measured.moved[plan]); }});
      std::optional<Rows> expected;
      const auto right = [&](const Rows& rows) {
        if (!expected.has_value()) expected = rows;
        return SameRows(rows, *expected);
      };
      measured.figures.title = absl::StrCat(measured.tables, " tables");
      measured.figures.settings = {{"tables", measured.tables}, {"compute_servers", servers}};
      const auto proceed = [&](const std::string& turn) {
        return run.Proceed(absl::StrCat(measured.tables, " tables on ", servers, " servers, ", turn));
      };
      NAM_ASSIGN_OR_RETURN(measured.figures.contenders,
                           TakeTurns(plans, right, {.repeat = options_.repeat, .proceed = proceed}));
      for (const ContenderTimes& plan : measured.figures.contenders) {
        if (!plan.refusal.empty()) return absl::ResourceExhaustedError(plan.refusal);
      }
    }
    return absl::OkStatus();
  }

  ShuffleFigures Take() { return std::move(figures_); }

 private:
  absl::Status Bind() {
    NAM_ASSIGN_OR_RETURN(channel_,
                         storage::Channel::Open(cluster_.attachment->fabric(), *cluster_.attachment, {}));
    CatalogTableSource tables(cluster_.attachment->catalog());
    for (const uint32_t count : options_.tables) {
      NAM_ASSIGN_OR_RETURN(queries_.emplace_back(),
                           ShuffleQuery::Bind(QueryOf(count), tables, Loader(), options_.messages.batch_bytes,
                                              options_.whole_tuples));
    }
    return absl::OkStatus();
  }

  /// Each dictionary is read once.
  execution::DictionaryLoader Loader() {
    return [this](const proto::Table& table, uint32_t column,
                  uint32_t /*group*/) -> absl::StatusOr<std::shared_ptr<const storage::Dictionary>> {
      auto& known = dictionaries_[{table.allocation(), column}];
      if (known == nullptr) {
        const proto::Dictionary& stored = table.columns(static_cast<int>(column)).encoding().dictionary();
        NAM_ASSIGN_OR_RETURN(known, partitioner::ReadDictionary(*channel_, stored));
      }
      return known;
    };
  }

  /// Loads the columns that the queries read.
  absl::Status KeepRows() {
    std::map<std::string, std::pair<std::shared_ptr<const proto::Table>, std::set<uint32_t>>> wanted;
    for (const ShuffleQuery& query : queries_) {
      for (const plan::Pipeline& pipeline : query.stage.plan.pipelines) {
        const plan::TableScan* const scan = plan::ScanOf(pipeline);
        if (scan == nullptr) continue;
        auto& [table, columns] = wanted[query.stage.tables[scan->table]->name()];
        table = query.stage.tables[scan->table];
        columns.insert(scan->columns.begin(), scan->columns.end());
      }
    }
    const ssb::Generator generator({.scale_factor = options_.scale_factor, .seed = options_.seed});
    figures_.lineorder_rows = generator.Rows(ssb::Table::kLineorder);
    for (const ssb::Table table : kTables) {
      const auto found = wanted.find(std::string(ssb::TableName(table)));
      if (found == wanted.end()) continue;
      const auto& [meta, columns] = found->second;
      RowEncoder rows;
      NAM_RETURN_IF_ERROR(rows.Open(meta, std::vector<uint32_t>(columns.begin(), columns.end()), Loader()));
      partitioner::ColumnBatch batch(static_cast<size_t>(meta->columns_size()));
      for (uint64_t first = 0; first < generator.Units(table); first += kUnitsAtOnce) {
        generator.Fill(table, first, std::min(kUnitsAtOnce, generator.Units(table) - first), batch);
        NAM_RETURN_IF_ERROR(rows.Append(batch));
      }
      rows_[meta->name()] = rows.Take();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Turn> TakeTurn(ShuffleCluster& shuffle, size_t query, const std::string& plan,
                                ShuffleMoved& moved) {
    moved = {};
    std::optional<CardWatch> watch;
    if (cluster_.world != nullptr) watch.emplace(*cluster_.world, cluster_.nic, cluster_.cards);
    Turn turn;
    if (plan == kPipelined) {
      NAM_ASSIGN_OR_RETURN(session::ResultSet result,
                           cluster_.session->Execute(QueryOf(options_.tables[query])));
      turn = {std::move(result.rows), result.elapsed_ms};
    } else {
      NAM_ASSIGN_OR_RETURN(ShuffleCluster::Answer answer,
                           shuffle.Run(queries_[query], rows_, /*materialize=*/plan == kMaterialized));
      turn = {std::move(answer.result.rows), answer.elapsed_ms};
      moved.sent_bytes = answer.sent_bytes;
      moved.work = answer.work;
    }
    if (!watch.has_value()) return turn;
    const std::vector<CardUse> uses = watch->Uses();
    for (const CardUse& use : uses) moved.network_bytes += static_cast<double>(use.received_bytes);
    moved.busiest = BusiestOf(uses)->Busiest();
    return turn;
  }

  const ShuffleEnvironment& cluster_;
  const ShuffleOptions& options_;
  std::unique_ptr<storage::Channel> channel_;  // for dictionaries
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<const storage::Dictionary>> dictionaries_;
  std::vector<ShuffleQuery> queries_;  // as options_.tables
  ShuffleTables rows_;
  ShuffleFigures figures_;
};

}  // namespace

absl::StatusOr<ShuffleFigures> MeasureShuffle(const ShuffleEnvironment& environment,
                                              const ShuffleOptions& options, Run& run) {
  Bench bench(environment, options);
  NAM_RETURN_IF_ERROR(bench.Load(run));
  NAM_RETURN_IF_ERROR(bench.Measure(run));
  return bench.Take();
}

}  // namespace nam::bench
