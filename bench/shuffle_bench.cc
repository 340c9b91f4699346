#include "bench/shuffle_bench.h"

#include <algorithm>
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

using fabric::sim::NicTraffic;

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

const char* ShuffleBench::NameOf(Plan plan) {
  switch (plan) {
    case Plan::kPipelined:
      return "pipelined";
    case Plan::kShuffle:
      return "shuffle";
    case Plan::kShuffleMaterialized:
      return "shuffle, materialized";
    case Plan::kShuffleFromMemory:
      return "shuffle, from memory servers";
  }
  return "";
}

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

double ShuffleBench::Figures::median_ms() const {
  return Median(ms);
}

const ShuffleBench::Figures* ShuffleBench::Find(uint32_t tables, uint32_t servers, Plan plan) const {
  for (const Figures& each : figures_) {
    if (each.tables == tables && each.servers == servers && each.plan == plan) return &each;
  }
  return nullptr;
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
  const auto load = [this](const proto::Table& table, uint32_t column, uint32_t /*group*/) {
    return DictionaryOf(table, column);
  };
  for (const uint32_t count : options_.tables) {
    NAM_ASSIGN_OR_RETURN(queries_.emplace_back(),
                         ShuffleQuery::Bind(QueryOf(count), tables, load, options_.messages.batch_bytes,
                                            options_.whole_tuples));
  }
  answers_.resize(queries_.size());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const storage::Dictionary>> ShuffleBench::DictionaryOf(
    const proto::Table& table, uint32_t column) {
  auto& known = dictionaries_[{table.allocation(), column}];
  if (known == nullptr) {
    const proto::Dictionary& stored = table.columns(static_cast<int>(column)).encoding().dictionary();
    NAM_ASSIGN_OR_RETURN(known, partitioner::ReadDictionary(*channel_, stored));
  }
  return known;
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
  const auto load = [this](const proto::Table& table, uint32_t column, uint32_t /*group*/) {
    return DictionaryOf(table, column);
  };
  for (const ssb::Table table : kTables) {
    const auto found = wanted.find(std::string(ssb::TableName(table)));
    if (found == wanted.end()) continue;
    const auto& [meta, columns] = found->second;
    NAM_ASSIGN_OR_RETURN(
        auto rows, ShuffleTable::Make(meta, std::vector<uint32_t>(columns.begin(), columns.end()), load));
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
  for (const uint32_t servers : options_.servers) NAM_RETURN_IF_ERROR(MeasureOn(servers, run));
  return absl::OkStatus();
}

absl::Status ShuffleBench::MeasureOn(uint32_t servers, Run& run) {
  const std::vector<fabric::Fabric*> fabrics(cluster_.fabrics.begin(), cluster_.fabrics.begin() + servers);
  NAM_ASSIGN_OR_RETURN(const auto shuffle,
                       ShuffleCluster::Open(fabrics, *cluster_.attachment,
                                            {.threads = options_.threads, .messages = options_.messages}));
  NAM_RETURN_IF_ERROR(
      cluster_.session->Execute(absl::StrCat("SET nam.compute_servers = ", servers)).status());
  NAM_RETURN_IF_ERROR(
      cluster_.session->Execute(absl::StrCat("SET nam.multicast = ", options_.multicast)).status());
  NAM_RETURN_IF_ERROR(
      cluster_.session
          ->Execute(options_.whole_tuples ? "SET nam.whole_tuples = on" : "SET nam.whole_tuples = off")
          .status());
  for (size_t q = 0; q < queries_.size(); ++q) {
    const size_t first = figures_.size();
    for (const Plan plan : kPlans)
      figures_.push_back({.tables = options_.tables[q], .servers = servers, .plan = plan});
    for (int round = 0; round <= options_.repeat; ++round) {
      for (size_t i = first; i < figures_.size(); ++i) {
        Figures& figures = figures_[i];
        if (!run.Proceed(
                absl::StrCat(figures.tables, " tables on ", servers, " servers, ", NameOf(figures.plan))))
          return absl::CancelledError("interrupted");
        NAM_RETURN_IF_ERROR(RunOnce(*shuffle, q, figures, round == 0));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ShuffleBench::RunOnce(ShuffleCluster& shuffle, size_t query, Figures& figures, bool warm_up) {
  const std::vector<NicTraffic> before = Traffic();
  session::ResultSet result;
  double elapsed_ms = 0;
  if (figures.plan == Plan::kPipelined) {
    NAM_ASSIGN_OR_RETURN(result, cluster_.session->Execute(QueryOf(figures.tables)));
    elapsed_ms = result.elapsed_ms;
  } else {
    const ShuffleMode mode{.materialize = figures.plan == Plan::kShuffleMaterialized,
                           .from_memory_servers = figures.plan == Plan::kShuffleFromMemory};
    NAM_ASSIGN_OR_RETURN(ShuffleCluster::Answer answer, shuffle.Run(queries_[query], rows_, mode));
    result = std::move(answer.result);
    elapsed_ms = answer.elapsed_ms;
    figures.sent_bytes = answer.sent_bytes;
    figures.work = answer.work;
  }
  if (answers_[query].empty()) answers_[query] = result.rows;
  figures.equal = figures.equal && SameRows(result.rows, answers_[query]);
  if (warm_up) return absl::OkStatus();
  figures.ms.push_back(elapsed_ms);
  if (cluster_.world != nullptr) LookAtCards(before, elapsed_ms, figures);
  return absl::OkStatus();
}

std::vector<NicTraffic> ShuffleBench::Traffic() const {
  std::vector<NicTraffic> traffic;
  for (const std::string& host : cluster_.hosts) traffic.push_back(cluster_.world->TrafficOf(host));
  return traffic;
}

void ShuffleBench::LookAtCards(const std::vector<NicTraffic>& before, double ms, Figures& figures) const {
  const std::vector<NicTraffic> after = Traffic();
  const double bytes_max =
      ms * 1e3 * static_cast<double>(cluster_.nic.port_bytes_per_us) * cluster_.nic.ports;
  const double messages_max = ms * 1e3 * static_cast<double>(cluster_.nic.messages_per_us);
  figures.network_bytes = 0;
  figures.busiest_fraction = -1;
  for (size_t i = 0; i < after.size(); ++i) {
    const auto look = [&](const char* what, int64_t NicTraffic::*count, double max) {
      const auto passed = static_cast<double>(after[i].*count - before[i].*count);
      if (passed / max > figures.busiest_fraction) {
        figures.busiest_fraction = passed / max;
        figures.busiest_card = absl::StrCat(cluster_.hosts[i], ", ", what);
      }
      return passed;
    };
    look("bytes out", &NicTraffic::bytes_out, bytes_max);
    look("messages out", &NicTraffic::messages_out, messages_max);
    look("messages in", &NicTraffic::messages_in, messages_max);
    figures.network_bytes += look("bytes in", &NicTraffic::bytes_in, bytes_max);
  }
}

}  // namespace nam::bench
