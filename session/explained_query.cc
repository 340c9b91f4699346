#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "optimizer/operator_cost.h"
#include "session/explain.h"
#include "sql/record_access.h"

namespace nam::session {
namespace {

/// Rows of a node by the counts of a server or the session. Steps that the source absorbed come before the
/// counted ones, unless they are not counted at all.
template <typename Rows>
std::optional<uint64_t> At(const Rows& rows, size_t nodes, size_t node) {
  const size_t counted = std::min(static_cast<size_t>(rows.size()), nodes);
  if (counted == 0 || node < nodes - counted || node >= nodes) return std::nullopt;
  return static_cast<uint64_t>(rows[static_cast<int>(node - (nodes - counted))]);
}

}  // namespace

optimizer::CutParts CutPartsOf(const std::vector<ServerReport>& servers) {
  std::vector<optimizer::Assignment::Share> shares;
  for (const ServerReport& server : servers) shares.push_back(server.share);
  return optimizer::CutPartsOf(shares);
}

double ExplainedQuery::EstimatedRows(uint32_t pipeline, size_t node) const {
  if (node == SinkOf(pipeline)) return optimizer::RowsLeft(plan, pipeline);
  return plan.pipelines[pipeline].estimates[node].rows;
}

std::vector<std::optional<double>> ExplainedQuery::Costs(uint32_t pipeline) const {
  optimizer::Workers workers;
  if (!OfSession(pipeline)) {
    const std::vector<ServerReport>& servers = stages[plan.pipelines[pipeline].stage].servers;
    workers.servers = std::max(1, static_cast<int>(servers.size()));
    for (const ServerReport& server : servers) {
      const auto threads = static_cast<int>(server.member.threads());
      workers.threads = &server == servers.data() ? threads : std::min(workers.threads, threads);
    }
  }
  return optimizer::OperatorCosts(plan, pipeline, tables, workers);
}

std::optional<ActualRows> ExplainedQuery::Actual(uint32_t pipeline, size_t node) const {
  if (!analyze) return std::nullopt;
  if (node == SinkOf(pipeline)) return LeftBySink(pipeline);
  if (!OfSession(pipeline)) return OfServers(pipeline, node);
  if (pipeline >= session_rows.size()) return std::nullopt;
  const std::optional<uint64_t> rows = At(session_rows[pipeline], SinkOf(pipeline), node);
  if (!rows.has_value()) return std::nullopt;
  return ActualRows{.rows = *rows};
}

/// Servers repeat the work of a build side, whole or of the partitions that each needs: once for each attempt
/// of a server.
std::optional<ActualRows> ExplainedQuery::OfServers(uint32_t pipeline, size_t node) const {
  const uint32_t number = plan.pipelines[pipeline].stage;
  const ExplainedStage& stage = stages[number];
  const size_t nodes = SinkOf(pipeline);
  const auto place = static_cast<int>(PlaceInStage(pipeline));
  const bool streamed = std::holds_alternative<plan::ExchangeSend>(plan.pipelines[pipeline].sink) ||
                        std::holds_alternative<plan::ExchangeReceive>(plan.pipelines[pipeline].source);
  const bool shared = streamed || plan.stages[number].claimed == pipeline || stage.servers.size() < 2;
  std::optional<ActualRows> all;
  for (const ServerReport& server : stage.servers) {
    if (place >= server.reply.pipelines_size()) continue;
    const auto& counted = server.reply.pipelines(place).rows_after();
    // After a row count for each node: the rows that each step looked up, if the source absorbed it.
    const bool with_lookups = static_cast<size_t>(counted.size()) == 2 * nodes - 1;
    std::optional<uint64_t> rows = At(counted, nodes, node);
    if (!rows.has_value()) continue;
    uint64_t of = with_lookups && node > 0 ? counted.Get(static_cast<int>(nodes + node - 1)) : 0;
    const uint64_t attempts = shared ? 1 : std::max<uint64_t>(1, server.turns.size());
    rows = *rows / attempts;
    of /= attempts;
    if (!all.has_value()) {
      all = ActualRows{.rows = *rows, .each_server = !shared, .most = *rows};
    } else {
      all->rows = shared ? all->rows + *rows : std::min(all->rows, *rows);
      all->most = std::max(all->most, *rows);
    }
    if (of > 0) all->of = shared ? all->of.value_or(0) + of : std::max(all->of.value_or(0), of);
  }
  if (node == 0 && all.has_value()) return WithLookups(pipeline, *all);
  return all;
}

/// A scan that finds it cheaper looks keys up before it has tested all conditions. What its conditions drop
/// by themselves is then unknown, so its rows are those that leave it.
ActualRows ExplainedQuery::WithLookups(uint32_t pipeline, const ActualRows& scan) const {
  std::optional<uint64_t> first;
  ActualRows left = scan;
  for (size_t node = 1; node < SinkOf(pipeline); ++node) {
    const std::optional<ActualRows> step = OfServers(pipeline, node);
    if (!step.has_value() || !step->of.has_value()) break;
    if (!first.has_value()) first = step->of;
    left = *step;
  }
  if (!first.has_value() || *first == (scan.each_server ? scan.most : scan.rows)) return scan;
  left.of.reset();
  left.with_lookups = true;
  return left;
}

/// As many as come in, or as their reader has counted.
std::optional<ActualRows> ExplainedQuery::LeftBySink(uint32_t pipeline) const {
  const plan::Pipeline& of = plan.pipelines[pipeline];
  if (OfSession(pipeline) && pipeline + 1 == plan.pipelines.size())
    return ActualRows{.rows = static_cast<uint64_t>(result_rows)};
  for (uint32_t p = pipeline + 1; p < plan.pipelines.size(); ++p) {
    const plan::SourceNode& source = plan.pipelines[p].source;
    const auto* pages = std::get_if<plan::PageSource>(&source);
    const auto* window = std::get_if<plan::WindowSource>(&source);
    if ((pages != nullptr && pages->pipeline == pipeline) ||
        (window != nullptr && window->pipeline == pipeline))
      return Actual(p, 0);
    const auto* parts = std::get_if<plan::PartitionSource>(&source);
    if (parts == nullptr || parts->pipeline != pipeline || OfSession(p)) continue;
    ActualRows read;
    for (const ServerReport& server : stages[plan.pipelines[p].stage].servers) {
      const auto place = static_cast<int>(PlaceInStage(p));
      if (place < server.reply.pipelines_size()) read.rows += server.reply.pipelines(place).rows_in();
    }
    // Each server reads a build side of parts.
    if (plan.stages[plan.pipelines[p].stage].claimed == p) return read;
  }
  if (std::holds_alternative<plan::AggregateSink>(of.sink)) return std::nullopt;
  std::optional<ActualRows> in = Actual(pipeline, SinkOf(pipeline) - 1);
  if (in.has_value()) in->of.reset();
  return in;
}

size_t ExplainedQuery::PlaceInStage(uint32_t pipeline) const {
  const uint32_t stage = plan.pipelines[pipeline].stage;
  return static_cast<size_t>(std::count_if(plan.pipelines.begin(), plan.pipelines.begin() + pipeline,
                                           [&](const plan::Pipeline& p) { return p.stage == stage; }));
}

const std::string* ExplainedQuery::WhyRead(uint32_t pipeline) const {
  const ExplainedStage& stage = stages[plan.pipelines[pipeline].stage];
  for (size_t b = 0; b < stage.why_read.size(); ++b) {
    if (stage.tables.builds[b].pipeline == pipeline) return &stage.why_read[b];
  }
  return nullptr;
}

std::string ExplainedQuery::PathOf(uint32_t pipeline) const {
  for (const optimizer::TransactionScan& scan : scans) {
    if (scan.pipeline == pipeline) return sql::Describe(*tables[scan.table], scan.path);
  }
  return "";
}

std::string ExplainedQuery::ColumnName(uint32_t table, uint32_t column) const {
  return tables[table]->columns(static_cast<int>(column)).name();
}

uint32_t ExplainedQuery::StageOfJoin(const optimizer::JoinChoice& join) const {
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    const auto* source = std::get_if<plan::JoinSource>(&pipeline.source);
    if (source != nullptr && source->probe.build == join.build) return pipeline.stage;
    for (const plan::StepNode& step : pipeline.steps) {
      const auto* probe = std::get_if<plan::ProbeStep>(&step);
      if (probe != nullptr && probe->build == join.build) return pipeline.stage;
    }
  }
  return static_cast<uint32_t>(stages.size());
}

double ExplainedQuery::StageMs(uint32_t stage) const {
  double ms = 0;
  for (const ServerReport& server : stages[stage].servers) {
    for (const ServerReport::Turn& turn : server.turns) ms = std::max(ms, turn.ended_ms);
  }
  return ms;
}

std::optional<double> ExplainedQuery::ActualMs(const optimizer::JoinChoice& join) const {
  const uint32_t stage = StageOfJoin(join);
  if (!analyze || stage >= stages.size()) return std::nullopt;
  const auto* source = std::get_if<plan::JoinSource>(&plan.pipelines[plan.stages[stage].claimed].source);
  if (source == nullptr || source->probe.build != join.build) return StageMs(stage);
  return StageMs(plan.pipelines[join.build].stage) + StageMs(plan.pipelines[source->probed].stage) +
         StageMs(stage);
}

std::optional<double> ExplainedQuery::ActualMs(const optimizer::GroupChoice& groups) const {
  const uint32_t stage = plan.pipelines[groups.pipeline].stage;
  if (!analyze || stage >= stages.size()) return std::nullopt;
  double ms = StageMs(stage);
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    const auto* parts = std::get_if<plan::PartitionSource>(&pipeline.source);
    if (parts != nullptr && parts->pipeline == groups.pipeline && pipeline.stage < stages.size())
      ms += StageMs(pipeline.stage);
  }
  return ms;
}

}  // namespace nam::session
