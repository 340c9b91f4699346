#include "bench/shuffle_bench.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "dataset/load.h"
#include "partitioner/loader.h"
#include "partitioner/table_metadata.h"
#include "plan/flow.h"
#include "ssb/generator.h"
#include "ssb/schema.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

constexpr ssb::Table kTables[] = {ssb::Table::kCustomer, ssb::Table::kPart, ssb::Table::kSupplier,
                                  ssb::Table::kLineorder};
constexpr int kLoaderThreads = 2;
constexpr uint64_t kUnitsAtOnce = 8'192;

/// The catalog's tables, fetched once, as for a statement.
class Tables final : public sql::TableSource {
 public:
  explicit Tables(catalog::Client& catalog) : catalog_(catalog) {}
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    return catalog_.GetTable(name);
  }
  std::vector<std::string> Names() override { return {}; }

 private:
  catalog::Client& catalog_;
};

}  // namespace

std::string ShuffleBench::QueryOf(uint32_t tables) {
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

absl::Status ShuffleBench::Load(Run& run) {
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

absl::Status ShuffleBench::Bind() {
  NAM_ASSIGN_OR_RETURN(channel_,
                       storage::Channel::Open(cluster_.attachment->fabric(), *cluster_.attachment, {}));
  Tables tables(cluster_.attachment->catalog());
  for (const uint32_t count : options_.tables) {
    NAM_ASSIGN_OR_RETURN(queries_.emplace_back(),
                         ShuffleQuery::Bind(QueryOf(count), tables, Loader(), options_.messages.batch_bytes,
                                            options_.whole_tuples));
  }
  return absl::OkStatus();
}

/// Each dictionary is read once.
execution::DictionaryLoader ShuffleBench::Loader() {
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
absl::Status ShuffleBench::KeepRows() {
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
  lineorder_rows_ = generator.Rows(ssb::Table::kLineorder);
  for (const ssb::Table table : kTables) {
    const auto found = wanted.find(std::string(ssb::TableName(table)));
    if (found == wanted.end()) continue;
    const auto& [meta, columns] = found->second;
    NAM_ASSIGN_OR_RETURN(
        auto rows, ShuffleTable::Make(meta, std::vector<uint32_t>(columns.begin(), columns.end()), Loader()));
    partitioner::ColumnBatch batch(static_cast<size_t>(meta->columns_size()));
    for (uint64_t first = 0; first < generator.Units(table); first += kUnitsAtOnce) {
      generator.Fill(table, first, std::min(kUnitsAtOnce, generator.Units(table) - first), batch);
      NAM_RETURN_IF_ERROR(rows->Append(batch));
    }
    rows_[meta->name()] = std::move(rows);
  }
  return absl::OkStatus();
}

absl::Status ShuffleBench::Measure(Run& run) {
  NAM_ASSIGN_OR_RETURN(
      const auto shuffle,
      ShuffleCluster::Open(cluster_.fabrics, {.threads = options_.threads, .messages = options_.messages}));
  const size_t servers = cluster_.fabrics.size();
  for (const std::string& setting :
       {absl::StrCat("compute_servers = ", servers), absl::StrCat("multicast = ", options_.multicast),
        absl::StrCat("whole_tuples = ", options_.whole_tuples ? "on" : "off")})
    NAM_RETURN_IF_ERROR(cluster_.session->Execute("SET nam." + setting).status());
  for (size_t q = 0; q < queries_.size(); ++q) {
    Case& measured = cases_.emplace_back(Case{.tables = options_.tables[q]});
    std::vector<Contender> plans;
    for (const char* plan : {kPipelined, kShuffle, kMaterialized})
      plans.push_back({plan, [&, q, plan] { return TakeTurn(*shuffle, q, plan, measured.moved[plan]); }});
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

absl::StatusOr<Turn> ShuffleBench::TakeTurn(ShuffleCluster& shuffle, size_t query, const std::string& plan,
                                            Moved& moved) {
  moved = {};
  std::optional<CardWatch> watch;
  if (simulated()) watch.emplace(*cluster_.world, cluster_.nic, cluster_.cards);
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

}  // namespace nam::bench
