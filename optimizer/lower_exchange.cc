#include <algorithm>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "optimizer/join_sides.h"
#include "optimizer/tree_lowering.h"
#include "plan/flow.h"
#include "plan/slot_of.h"

/// Joins in streamed stages: the classical grace hash join, whose partitions are the servers.
///
///     build side ─▶ send by key ══▶ receive ─▶ build
///     probe side ─▶ send by key ══▶ receive ─▶ probe ─▶ …      once the build is complete
///
/// With Bloom filters the probe side is read once the build is complete on all servers, and they have
/// exchanged the filters of their keys.
namespace nam::optimizer {

using plan::Expr;
using plan::JoinKind;

NoExchange TreeLowering::WhyNoExchange(const JoinOf& join, const Flow& probed, const Flow& built) {
  // Every server reads its share of a table. Other sources have no shares, or unknown ones.
  const auto scans = [&](const Flow& flow) {
    return flow.on_servers() && builder_.stage(flow.pipeline.stage).claims_table() &&
           std::holds_alternative<plan::BlockScan>(flow.pipeline.source);
  };
  // No single server knows whether the build side is empty, or has a NULL.
  const plan::ProbeStep probe{.kind = join.kind, .null_aware = join.null_aware};
  const bool asks = join.compared.empty() && plan::AsksForNulls(probe);
  if (asks) return NoExchange::kAsksAll;
  return scans(probed) && scans(built) ? NoExchange::kPossible : NoExchange::kNoScan;
}

Flow TreeLowering::Exchange(Flow flow, plan::ExchangeSend send) {
  send.exchange = exchanges_++;
  Flow received{.pipeline = {.source = plan::ExchangeReceive{send.exchange},
                             .steps = {},
                             .sink = {},
                             .schemas = {flow.schema()},
                             .estimates = {{flow.rows(), 1}},
                             .after = {},
                             .stage = flow.pipeline.stage},
                .layout = flow.layout};
  builder_.Close(std::move(flow), std::move(send));
  return received;
}

absl::StatusOr<Flow> TreeLowering::JoinByExchange(const JoinOf& join, Flow probed, Flow built) {
  std::vector<Expr> left = join.left, right = join.right;
  DropBlanks(left, right);
  const uint32_t stage = probed.pipeline.stage;
  builder_.MoveStage(built.pipeline.stage, stage);
  built.pipeline.stage = stage;
  ServerStage& streamed = builder_.stage(stage);
  streamed = {.streamed = true};

  const NullKeys of_built = KeepsBuilt(join.kind) ? NullKeys::kWritten : NullKeys::kLeftOut;
  NAM_ASSIGN_OR_RETURN(std::vector<uint32_t> built_keys,
                       KeepForJoin(std::move(right), join.behind, of_built, built));
  Flow build = Exchange(std::move(built), {.keys = built_keys});
  plan::BuildSink sink{.keys = {}, .payload = SlotsWhere(build.layout, join.behind)};
  for (const uint32_t key : built_keys) sink.keys.push_back(plan::SlotExpr(build.schema(), key));
  Layout payload;
  for (const uint32_t slot : sink.payload) payload.push_back(build.layout[slot]);
  const double build_rows = build.rows();
  const uint32_t number = builder_.Close(std::move(build), std::move(sink));
  NoteJoin(join, number);

  const NullKeys of_probed = KeepsProbed(join.kind) ? NullKeys::kWritten : NullKeys::kLeftOut;
  NAM_ASSIGN_OR_RETURN(std::vector<uint32_t> probed_keys,
                       KeepForJoin(std::move(left), join.behind, of_probed, probed));
  plan::ExchangeSend send{.keys = probed_keys};
  if (join.choice->algorithm == plan::JoinAlgorithm::kGhjBloom) {
    send.filtered_by = number;
    probed.pipeline.after.push_back(number);
  }
  Flow flow = Exchange(std::move(probed), std::move(send));
  std::vector<Expr> keys;
  for (const uint32_t key : probed_keys) keys.push_back(plan::SlotExpr(flow.schema(), key));
  NAM_ASSIGN_OR_RETURN(ProbeAndLayout probe, ProbeOf(join, number, std::move(keys), flow.layout, payload));
  double rows = RowsOf(join, flow.rows(), build_rows);
  if (KeepsBuilt(join.kind)) rows = std::max(rows, build_rows);
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(probe.step), std::move(probe.after), rows, flow));
  return flow;
}

}  // namespace nam::optimizer
