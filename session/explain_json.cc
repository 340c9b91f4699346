#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/flow.h"
#include "plan/print.h"
#include "session/explain.h"
#include "session/explained_choice.h"

namespace nam::session {
namespace {

using Json = nlohmann::ordered_json;

Json Counters(const ServerReport& server, size_t place) {
  const proto::PipelineCounters& c = server.reply.pipelines(static_cast<int>(place));
  Json out = {{"server", server.member.id()},
              {"rows_in", c.rows_in()},
              {"rows_out", c.rows_out()},
              {"blocks", c.blocks()},
              {"skipped_blocks", c.skipped_blocks()},
              {"total_ms", static_cast<double>(c.total_us()) / 1000},
              {"waiting_ms", static_cast<double>(c.waiting_us()) / 1000},
              {"multicast_blocks", c.multicast_blocks()},
              {"repaired_blocks", c.repaired_blocks()},
              {"duplicate_datagrams", c.duplicate_datagrams()}};
  if (!c.multicast_failure().empty()) out["multicast_failure"] = c.multicast_failure();
  Json bytes = Json::array();
  for (const proto::ServerBytes& from : c.bytes())
    bytes.push_back({{"memory_server", from.server()}, {"bytes", from.bytes()}});
  out["bytes"] = std::move(bytes);
  if (c.exchange_bytes_received() > 0) out["exchange_bytes_received"] = c.exchange_bytes_received();
  if (c.exchange_bytes_sent() > 0) out["exchange_bytes_sent"] = c.exchange_bytes_sent();
  return out;
}

class Document {
 public:
  explicit Document(const ExplainedQuery& query)
      : query_(query), texts_(plan::PrintPipelines(query.plan, [&](uint32_t table, uint32_t column) {
          return query.ColumnName(table, column);
        })) {}

  Json Run() const {
    Json stages = Json::array();
    for (uint32_t s = 0; s < query_.plan.stages.size(); ++s) stages.push_back(Stage(s));
    Json out = {{"stages", std::move(stages)}};
    if (!query_.joins.empty()) out["joins"] = Joins();
    if (!query_.groups.empty()) out["groups"] = Groups();
    if (!query_.replanned.empty()) out["planned_anew"] = query_.replanned;
    if (query_.analyze) out["result"] = {{"rows", query_.result_rows}, {"ms", query_.result_ms}};
    return out;
  }

 private:
  Json Joins() const {
    Json joins = Json::array();
    for (const optimizer::JoinChoice& join : query_.joins) {
      Json& out = joins.emplace_back(Json{{"build", join.build},
                                          {"stage", query_.StageOfJoin(join)},
                                          {"algorithm", plan::NameOf(join.algorithm)},
                                          {"why", WhyText(join)}});
      for (size_t a = 0; a < join.costs.size(); ++a) {
        if (std::isfinite(join.costs[a]))
          out["estimated_ms"][plan::NameOf(static_cast<plan::JoinAlgorithm>(a))] = join.costs[a];
      }
      if (const auto actual = query_.ActualMs(join); actual.has_value()) out["actual_ms"] = *actual;
    }
    return joins;
  }

  Json Groups() const {
    Json all = Json::array();
    for (const optimizer::GroupChoice& groups : query_.groups) {
      Json& out = all.emplace_back(
          Json{{"pipeline", groups.pipeline},
               {"algorithm", plan::NameOf(groups.algorithm)},
               {"why", WhyText(groups)},
               {"estimated_ms", {{"rdma", groups.costs.rdma_ms}, {"dist", groups.costs.dist_ms}}}});
      if (const auto actual = query_.ActualMs(groups); actual.has_value()) out["actual_ms"] = *actual;
    }
    return all;
  }

  Json Stage(uint32_t number) const {
    Json pipelines = Json::array();
    for (uint32_t p = 0; p < query_.plan.pipelines.size(); ++p) {
      if (query_.plan.pipelines[p].stage == number) pipelines.push_back(Pipeline(p));
    }
    if (number >= query_.stages.size()) return {{"site", "session"}, {"pipelines", std::move(pipelines)}};
    const ExplainedStage& stage = query_.stages[number];
    Json out = {{"site", "compute servers"},
                {"window", query_.settings.window()},
                {"in_place", query_.settings.in_place()},
                {"pipelines", std::move(pipelines)}};
    if (stage.parts > 0) {
      out["claimed_parts"] = stage.parts;
      if (const optimizer::CutParts cut = CutPartsOf(stage.servers); cut.parts > 0)
        out["skew"] = {{"parts", cut.parts}, {"pieces", cut.pieces}};
    } else if (stage.streamed) {
      out["streamed"] = true;
    } else {
      out["claimed_table"] = stage.tables.claimed->table->name();
    }
    Json servers = Json::array();
    for (const ServerReport& server : stage.servers) servers.push_back(Server(stage, server));
    out["servers"] = std::move(servers);
    return out;
  }

  Json Server(const ExplainedStage& stage, const ServerReport& server) const {
    Json out = {{"server", server.member.id()},
                {"address", server.member.control_address()},
                {"threads", server.member.threads()},
                {"planned_rows", server.share.rows},
                {"planned_bytes", server.share.driving_bytes},
                {"planned_build_bytes", server.share.build_bytes}};
    if (!query_.analyze) return out;
    out["thread_rows"] = server.thread_rows;
    Json turns = Json::array();
    for (const ServerReport::Turn& turn : server.turns) {
      Json& t = turns.emplace_back(Json{{"started_ms", turn.started_ms},
                                        {"ended_ms", turn.ended_ms},
                                        {"pieces", turn.pieces},
                                        {"claims", turn.claims}});
      if (turn.share_of.has_value()) t["share_of_server"] = stage.servers[*turn.share_of].member.id();
    }
    out["turns"] = std::move(turns);
    return out;
  }

  Json Node(uint32_t pipeline, size_t node, const std::string& text,
            const std::vector<std::optional<double>>& costs) const {
    Json out = {{"text", text}, {"estimated_rows", query_.EstimatedRows(pipeline, node)}};
    if (const auto actual = query_.Actual(pipeline, node); actual.has_value()) {
      out["rows"] = actual->each_server ? actual->most : actual->rows;
      if (actual->each_server) {
        out["rows_least"] = actual->rows;
        out["rows_of"] = "each server";
      }
      if (actual->of.has_value()) out["rows_looked_up"] = *actual->of;
      if (actual->with_lookups) out["rows_with_lookups"] = true;
    }
    out["estimated_ms"] = costs[node].has_value() ? Json(*costs[node]) : Json(nullptr);
    return out;
  }

  Json Pipeline(uint32_t number) const {
    const plan::Pipeline& pipeline = query_.plan.pipelines[number];
    const plan::PipelineText& text = texts_[number];
    const std::vector<std::optional<double>> costs = query_.Costs(number);
    Json out = {{"pipeline", number}, {"after", pipeline.after}};
    out["source"] = Node(number, 0, text.source, costs);
    if (const plan::TableScan* scan = plan::ScanOf(pipeline); scan != nullptr)
      out["table"] = query_.tables[scan->table]->name();
    if (const std::string path = query_.PathOf(number); !path.empty()) out["path"] = path;
    Json steps = Json::array();
    for (size_t s = 0; s < text.steps.size(); ++s) steps.push_back(Node(number, s + 1, text.steps[s], costs));
    out["steps"] = std::move(steps);
    out["sink"] = Node(number, query_.SinkOf(number), text.sink, costs);
    if (!query_.analyze || pipeline.stage >= query_.stages.size()) return out;
    const ExplainedStage& stage = query_.stages[pipeline.stage];
    if (const std::string* why = query_.WhyRead(number); why != nullptr) {
      out["multicast"] = why->empty();
      if (!why->empty()) out["why_read"] = *why;
    }
    Json servers = Json::array();
    const size_t place = query_.PlaceInStage(number);
    for (const ServerReport& server : stage.servers) {
      if (static_cast<int>(place) < server.reply.pipelines_size()) servers.push_back(Counters(server, place));
    }
    out["servers"] = std::move(servers);
    return out;
  }

  const ExplainedQuery& query_;
  const std::vector<plan::PipelineText> texts_;
};

/// In an array, as PostgreSQL prints it. Constants of a query may hold any bytes.
std::string JsonText(Json document) {
  return Json::array({std::move(document)}).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string ExplainAsJson(const ExplainedQuery& query) {
  return JsonText(Document(query).Run());
}

std::string ExplainChangeAsJson(const ExplainedChange& change, const std::string& query) {
  Json of = {{"kind", change.kind}, {"table", change.table}, {"how", change.how}};
  if (!change.conditions.empty()) of["conditions"] = change.conditions;
  if (change.command.has_value()) {
    of["command"] = *change.command;
    of["ms"] = change.ms;
  }
  Json out = {{"change", std::move(of)}};
  if (!query.empty()) out.update(Json::parse(query).at(0));
  return JsonText(std::move(out));
}

}  // namespace nam::session
