#include "plan/check_graph.h"

#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "plan/flow.h"
#include "plan/plan_error.h"
#include "plan/slot_of.h"

namespace nam::plan {

absl::Status CheckSlots(std::span<const uint32_t> slots, const Schema& input) {
  for (const uint32_t slot : slots) {
    if (slot >= input.size()) return BadPlan("a slot that is not there");
  }
  return absl::OkStatus();
}

namespace {

class GraphChecker {
 public:
  explicit GraphChecker(const PhysicalPlan& plan) : plan_(plan) {}

  absl::Status Run() const {
    NAM_RETURN_IF_ERROR(CheckStages());
    for (const Pipeline& pipeline : plan_.pipelines) NAM_RETURN_IF_ERROR(CheckPartitionMatch(pipeline));
    return CheckExchanges();
  }

 private:
  absl::Status CheckStages() const {
    for (uint32_t s = 0; s < plan_.stages.size(); ++s) {
      const Stage& stage = plan_.stages[s];
      if (stage.claimed >= plan_.pipelines.size() || plan_.pipelines[stage.claimed].stage != s)
        return BadPlan("a stage that claims another one's pieces");
      if (stage.site == Stage::Site::kSession &&
          (s + 1 != plan_.stages.size() || stage.claimed + 1 != plan_.pipelines.size()))
        return BadPlan("a result that is not the last stage's last pipeline");
      NAM_RETURN_IF_ERROR(CheckParts(s));
      const Distribution& d = stage.result;
      const bool partitioned = d.kind == Distribution::Kind::kPartitioned;
      if (partitioned != (d.parts > 0) || partitioned == d.columns.empty() || d.parts > kMostParts)
        return BadPlan("a distribution without its parts");
      NAM_ASSIGN_OR_RETURN(const Schema left, SinkOutput(plan_.pipelines[stage.claimed]));
      NAM_RETURN_IF_ERROR(CheckSlots(d.columns, left));
    }
    return absl::OkStatus();
  }

  /// Servers claim parts, or builds read them as a whole; only pipelines of servers leave rows by parts.
  absl::Status CheckParts(uint32_t number) const {
    const Stage& stage = plan_.stages[number];
    for (uint32_t p = 0; p < plan_.pipelines.size(); ++p) {
      const Pipeline& pipeline = plan_.pipelines[p];
      if (pipeline.stage != number) continue;
      NAM_RETURN_IF_ERROR(CheckSiteOfRuns(pipeline, p, stage));
      const auto* groups = std::get_if<AggregateSink>(&pipeline.sink);
      const bool leaves_parts =
          std::holds_alternative<PartitionSink>(pipeline.sink) || (groups != nullptr && groups->parts > 0);
      const auto* parts = std::get_if<PartitionSource>(&pipeline.source);
      const bool reads_parts = parts != nullptr || std::holds_alternative<JoinSource>(pipeline.source);
      if (!leaves_parts && !reads_parts) continue;
      const bool builds = parts != nullptr && !parts->merge.has_value() && p != stage.claimed &&
                          std::holds_alternative<BuildSink>(pipeline.sink);
      if ((p != stage.claimed && !builds) || stage.site != Stage::Site::kServers)
        return BadPlan("parts of a pipeline that servers do not claim");
    }
    return absl::OkStatus();
  }

  /// Pipelines that servers claim leave runs; the session merges them.
  static absl::Status CheckSiteOfRuns(const Pipeline& pipeline, uint32_t number, const Stage& stage) {
    const bool servers = stage.site == Stage::Site::kServers;
    const auto* result = std::get_if<ResultSink>(&pipeline.sink);
    if (result != nullptr && result->runs != Runs::kNever && !(servers && stage.claimed == number))
      return BadPlan("runs of a pipeline that servers do not claim");
    const auto* sort = std::get_if<SortSink>(&pipeline.sink);
    if (sort != nullptr && sort->runs != Runs::kNever && servers)
      return BadPlan("runs that the session does not merge");
    return absl::OkStatus();
  }

  /// One part of the build side is enough only if one of its keys comes from the claimed table's own rows,
  /// and only if no probe needs a fact about the whole build side.
  absl::Status CheckPartitionMatch(const Pipeline& build) const {
    const auto* scan = std::get_if<BlockScan>(&build.source);
    if (scan == nullptr || scan->co_partitioned_key < 0) return absl::OkStatus();
    const auto* sink = std::get_if<BuildSink>(&build.sink);
    if (sink == nullptr || sink->keys.empty()) return BadPlan("a partition match that is no build side");
    absl::Status status;
    for (size_t key = 0; key < sink->keys.size(); ++key) {
      status = CheckPartitionMatch(build, *sink, key);
      if (status.ok()) break;
    }
    return status;
  }

  absl::Status CheckPartitionMatch(const Pipeline& build, const BuildSink& sink, size_t key) const {
    const std::optional<uint32_t> built = BareSlot(sink.keys[key]);
    if (!built || !SourceSlotOf(build, build.steps.size(), *built))
      return BadPlan("a partition match by a key that is computed");
    const uint32_t own = static_cast<uint32_t>(&build - plan_.pipelines.data());
    const uint32_t claimed = plan_.stages[build.stage].claimed;
    if (own == claimed) return BadPlan("a partition match of the claimed table with itself");
    for (uint32_t p = 0; p < plan_.pipelines.size(); ++p) {
      const Pipeline& pipeline = plan_.pipelines[p];
      for (size_t s = 0; s < pipeline.steps.size(); ++s) {
        const auto* probe = std::get_if<ProbeStep>(&pipeline.steps[s]);
        if (probe == nullptr || probe->build != own) continue;
        const bool whole = probe->kind == JoinKind::kRight || probe->kind == JoinKind::kFull ||
                           probe->kind == JoinKind::kNullAwareAnti || probe->kind == JoinKind::kMark;
        const std::optional<uint32_t> slot = BareSlot(probe->keys[key]);
        if (whole || p != claimed || !std::holds_alternative<BlockScan>(pipeline.source) || !slot ||
            !SourceSlotOf(pipeline, s, *slot)) {
          return BadPlan("a partition match of something else than the claimed table's rows");
        }
      }
    }
    return absl::OkStatus();
  }

  /// Each exchange has one receiver, which waits for none of its senders: these wait for its credit.
  absl::Status CheckExchanges() const {
    std::set<uint32_t> received;
    for (uint32_t p = 0; p < plan_.pipelines.size(); ++p) {
      const auto* receive = std::get_if<ExchangeReceive>(&plan_.pipelines[p].source);
      if (receive == nullptr) continue;
      if (!received.insert(receive->exchange).second) return BadPlan("an exchange with two receivers");
      NAM_RETURN_IF_ERROR(CheckNoWait(p, receive->exchange));
    }
    for (const Pipeline& pipeline : plan_.pipelines) {
      const auto* send = std::get_if<ExchangeSend>(&pipeline.sink);
      if (send != nullptr && !received.contains(send->exchange))
        return BadPlan("an exchange without a receiver");
    }
    for (uint32_t s = 0; s < plan_.stages.size(); ++s) NAM_RETURN_IF_ERROR(CheckTurns(s));
    return absl::OkStatus();
  }

  /// Senders wait for the first later receiver that does not send itself: then all of them run, and these
  /// alone receive. At most one of them scans, since a thread has one channel to the tables. Only servers
  /// exchange rows, and a stage's result comes from what it receives.
  absl::Status CheckTurns(uint32_t number) const {
    const Stage& stage = plan_.stages[number];
    std::vector<uint32_t> sent;
    int scans = 0;
    bool exchanges = false;
    for (const Pipeline& pipeline : plan_.pipelines) {
      if (pipeline.stage != number) continue;
      const auto* receive = std::get_if<ExchangeReceive>(&pipeline.source);
      const auto* send = std::get_if<ExchangeSend>(&pipeline.sink);
      exchanges |= receive != nullptr || send != nullptr;
      if (receive != nullptr) std::erase(sent, receive->exchange);
      if (send != nullptr) {
        sent.push_back(send->exchange);
        scans += receive == nullptr;
        if (scans > 1) return BadPlan("two tables that are sent at the same time");
      } else if (receive != nullptr) {
        if (!sent.empty()) return BadPlan("a receiver that runs before rows that are sent have one");
        scans = 0;
      }
    }
    if (!exchanges) return absl::OkStatus();
    if (stage.site != Stage::Site::kServers) return BadPlan("an exchange in the session");
    return std::holds_alternative<ExchangeReceive>(plan_.pipelines[stage.claimed].source)
               ? absl::OkStatus()
               : BadPlan("a stage with exchanges whose result is not of what is received");
  }

  absl::Status CheckNoWait(uint32_t receiver, uint32_t exchange) const {
    std::vector<bool> seen(plan_.pipelines.size());
    std::vector<uint32_t> open = plan_.pipelines[receiver].after;
    while (!open.empty()) {
      const uint32_t p = open.back();
      open.pop_back();
      if (seen[p]) continue;
      seen[p] = true;
      const auto* send = std::get_if<ExchangeSend>(&plan_.pipelines[p].sink);
      if (send != nullptr && send->exchange == exchange)
        return BadPlan("a receiver that waits for its sender");
      open.insert(open.end(), plan_.pipelines[p].after.begin(), plan_.pipelines[p].after.end());
    }
    return absl::OkStatus();
  }

  const PhysicalPlan& plan_;
};

}  // namespace

absl::Status CheckGraph(const PhysicalPlan& plan) {
  return GraphChecker(plan).Run();
}

}  // namespace nam::plan
