#include "optimizer/operator_cost.h"

#include <algorithm>
#include <variant>

#include "optimizer/replication_cost.h"
#include "partitioner/table_metadata.h"
#include "plan/work_cost.h"

namespace nam::optimizer {
namespace {

namespace work_cost = plan::work_cost;

/// Computing, by all the server's threads together, and moving.
struct Cost {
  double ps = 0;
  double bytes = 0;
};
using MaybeCost = std::optional<Cost>;

class PipelineCosts {
 public:
  PipelineCosts(const plan::PhysicalPlan& plan, uint32_t number, const TableRefs& tables)
      : plan_(plan), pipeline_(plan.pipelines[number]), number_(number), tables_(tables) {}

  std::vector<MaybeCost> Run() const {
    std::vector<MaybeCost> costs;
    costs.push_back(std::visit([this](const auto& source) { return Source(source); }, pipeline_.source));
    for (size_t s = 0; s < pipeline_.steps.size(); ++s) {
      costs.push_back(std::visit([&](const auto& step) { return Step(step, s); }, pipeline_.steps[s]));
    }
    costs.push_back(std::visit([this](const auto& sink) { return Sink(sink); }, pipeline_.sink));
    return costs;
  }

 private:
  static Cost OfRows(double rows, int64_t ps) { return {rows * static_cast<double>(ps), 0}; }
  double Out(size_t node) const { return pipeline_.estimates[node].rows; }
  double In() const { return pipeline_.estimates.back().rows; }
  double LeftBy(uint32_t pipeline) const { return RowsLeft(plan_, pipeline); }

  MaybeCost Source(const plan::BlockScan& scan) const {
    const proto::Table& table = *tables_[scan.table];
    const auto rows = static_cast<double>(table.rows());
    double width = 0;
    for (const uint32_t column : scan.columns)
      width += partitioner::StoredBytesOf(table.columns(static_cast<int>(column)));
    Cost cost = OfRows(rows, work_cost::kFirstFilterRowPs);
    cost.bytes = rows * width;
    cost.ps += cost.bytes * work_cost::kChecksumBytePs;
    return cost;
  }
  MaybeCost Source(const plan::RecordScan& scan) const {
    const double selectivity = pipeline_.estimates[0].selectivity;
    const double read = selectivity > 0 ? Out(0) / selectivity : Out(0);
    Cost cost = OfRows(read, work_cost::kRecordRowPs);
    cost.bytes = read * static_cast<double>(tables_[scan.table]->record().row_bytes());
    return cost;
  }
  MaybeCost Source(const plan::ValuesSource&) const { return OfRows(Out(0), work_cost::kFinishRowPs); }
  MaybeCost Source(const plan::FileSource& source) const {
    return OfRows(Out(0) * static_cast<double>(source.columns.size()), work_cost::kFileFieldPs);
  }
  MaybeCost Source(const plan::PageSource&) const { return OfRows(Out(0), work_cost::kFinishRowPs); }
  MaybeCost Source(const plan::WindowSource& window) const {
    Cost cost = OfRows(Out(0), work_cost::kFinishRowPs);
    cost.ps += Out(0) * static_cast<double>(window.calls.size()) * work_cost::kSinkRowPs;
    return cost;
  }
  MaybeCost Source(const plan::PartitionSource& source) const {
    return OfRows(LeftBy(source.pipeline),
                  source.merge.has_value() ? work_cost::kCombineGroupPs : work_cost::kFinishRowPs);
  }
  MaybeCost Source(const plan::JoinSource& join) const {
    Cost cost = OfRows(LeftBy(join.probe.build), work_cost::kFinishRowPs + work_cost::kInsertRowPs);
    cost.ps += LeftBy(join.probed) * (work_cost::kFinishRowPs + work_cost::kProbeKeyPs);
    cost.ps += Out(0) * work_cost::kPartnerRowPs;
    return cost;
  }
  MaybeCost Source(const plan::ExchangeReceive&) const { return std::nullopt; }

  MaybeCost Step(const plan::FilterStep& filter, size_t s) const {
    return OfRows(Out(s) * static_cast<double>(filter.conditions.size()), work_cost::kFilterRowPs);
  }
  MaybeCost Step(const plan::ProjectStep&, size_t s) const {
    return OfRows(Out(s), work_cost::kFirstFilterRowPs);
  }
  MaybeCost Step(const plan::ProbeStep& probe, size_t s) const {
    const auto* build = std::get_if<plan::BuildSink>(&plan_.pipelines[probe.build].sink);
    Cost cost;
    if (probe.keys.empty()) {
      cost.ps = Out(s) * LeftBy(probe.build) * work_cost::kFilterRowPs;
    } else if (build != nullptr && build->unique &&
               std::holds_alternative<plan::BlockScan>(pipeline_.source)) {
      cost.ps = Out(s) * work_cost::kFilterRowPs;  // the scan looks its codes up
    } else {
      cost.ps = Out(s) * work_cost::kProbeKeyPs;
    }
    if (!probe.fetch.empty()) cost.ps += Out(s + 1) * work_cost::kPartnerRowPs;
    cost.ps += Out(s + 1) * static_cast<double>(probe.residuals.size()) * work_cost::kFilterRowPs;
    return cost;
  }
  MaybeCost Step(const plan::LimitStep&, size_t s) const {
    return OfRows(Out(s + 1), work_cost::kFilterRowPs);
  }
  MaybeCost Step(const plan::ExpandStep&, size_t) const { return std::nullopt; }
  MaybeCost Step(const plan::RepeatStep&, size_t s) const {
    return OfRows(Out(s + 1), work_cost::kPartnerRowPs);
  }
  MaybeCost Step(const plan::SeriesStep&, size_t s) const {
    return OfRows(Out(s + 1), work_cost::kPartnerRowPs);
  }

  MaybeCost Sink(const plan::BuildSink&) const { return OfRows(In(), work_cost::kInsertRowPs); }
  MaybeCost Sink(const plan::AggregateSink& sink) const {
    using Phase = plan::AggregateSink::Phase;
    const bool states = sink.phase == Phase::kMerge || sink.phase == Phase::kFinal;
    return OfRows(In(), states ? work_cost::kCombineGroupPs : work_cost::kSinkRowPs);
  }
  MaybeCost Sink(const plan::ResultSink& result) const {
    Cost cost = OfRows(In(), work_cost::kSinkRowPs);
    if (!result.order.empty()) cost.ps += LeftBy(number_) * work_cost::kSortRowPs;
    return cost;
  }
  MaybeCost Sink(const plan::SortSink& sort) const {
    Cost cost = OfRows(In(), work_cost::kSinkRowPs);
    if (!sort.order.empty()) cost.ps += LeftBy(number_) * work_cost::kSortRowPs;
    return cost;
  }
  MaybeCost Sink(const plan::PartitionSink&) const { return OfRows(In(), work_cost::kSinkRowPs); }
  MaybeCost Sink(const plan::FeedSink&) const { return Cost(); }
  MaybeCost Sink(const plan::ExchangeSend&) const { return std::nullopt; }

  const plan::PhysicalPlan& plan_;
  const plan::Pipeline& pipeline_;
  const uint32_t number_;
  const TableRefs& tables_;
};

/// The share of the pipeline's rows that one server processes.
double ShareOfServer(const plan::PhysicalPlan& plan, uint32_t number, int servers) {
  const plan::Pipeline& pipeline = plan.pipelines[number];
  const auto* scan = std::get_if<plan::BlockScan>(&pipeline.source);
  const bool shared =
      plan.stages[pipeline.stage].claimed == number || (scan != nullptr && scan->co_partitioned_key >= 0);
  return shared ? 1.0 / std::max(servers, 1) : 1.0;
}

double First(double rows, int64_t offset, int64_t limit) {
  const double behind = std::max(0.0, rows - static_cast<double>(offset));
  return limit < 0 ? behind : std::min(behind, static_cast<double>(limit));
}

}  // namespace

double RowsLeft(const plan::PhysicalPlan& plan, uint32_t number) {
  const plan::Pipeline& pipeline = plan.pipelines[number];
  const double in = pipeline.estimates.back().rows;
  if (const auto* sort = std::get_if<plan::SortSink>(&pipeline.sink))
    return First(in, sort->offset, sort->limit);
  if (const auto* result = std::get_if<plan::ResultSink>(&pipeline.sink)) return First(in, 0, result->limit);
  const auto* groups = std::get_if<plan::AggregateSink>(&pipeline.sink);
  if (groups == nullptr) return in;
  // The optimizer has stated it where they are read.
  for (uint32_t p = number + 1; p < plan.pipelines.size(); ++p) {
    const plan::SourceNode& source = plan.pipelines[p].source;
    const auto* pages = std::get_if<plan::PageSource>(&source);
    const auto* parts = std::get_if<plan::PartitionSource>(&source);
    if ((pages != nullptr && pages->pipeline == number) || (parts != nullptr && parts->pipeline == number))
      return plan.pipelines[p].estimates[0].rows;
  }
  return groups->group_by.empty() ? 1 : in;
}

std::vector<std::optional<double>> OperatorCosts(const plan::PhysicalPlan& plan, uint32_t pipeline,
                                                 const TableRefs& tables, const Workers& workers) {
  const double share = ShareOfServer(plan, pipeline, workers.servers);
  std::vector<std::optional<double>> ms;
  for (const MaybeCost& cost : PipelineCosts(plan, pipeline, tables).Run()) {
    std::optional<double>& out = ms.emplace_back();
    if (!cost.has_value()) continue;
    out = share * std::max(cost->ps / std::max(workers.threads, 1) / work_cost::kPsPerMs,
                           cost->bytes / kCardBytesPerUs / 1e3);
  }
  return ms;
}

}  // namespace nam::optimizer
