#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/join_sides.h"
#include "optimizer/tree_lowering.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/function.h"
#include "plan/slot_of.h"
#include "plan/table_schema.h"

/// Joins of two flows, wherever their rows are.
namespace nam::optimizer {

using plan::Expr;
using plan::JoinAlgorithm;
using plan::JoinKind;
using plan::Op;

namespace {

/// The longest range of keys whose table takes its heads from the keys themselves: a head for each of so many
/// rows.
constexpr double kDomainOverRows = 4;

/// Trims the key's blanks where one side may have them and they are ignored. Then equal keys have equal
/// bytes.
void DropBlanksOfKey(const Type& other, Expr& key) {
  if (plan::IsChar(key.type) || !plan::IsChar(other) || !plan::IgnoresBlanks(key.type, other)) return;
  Expr trimmed = plan::MakeNode(Op::kFunction, Type::String(), -1, {std::move(key)});
  trimmed.index = static_cast<int>(plan::Function::kTrimRight);
  key = std::move(trimmed);
}

}  // namespace

void DropBlanks(std::vector<Expr>& left, std::vector<Expr>& right) {
  for (size_t k = 0; k < left.size(); ++k) {
    const Type of_left = left[k].type, of_right = right[k].type;
    DropBlanksOfKey(of_right, left[k]);
    DropBlanksOfKey(of_left, right[k]);
  }
}

absl::StatusOr<TreeLowering::Place> TreeLowering::Meet(JoinOf& join, Flow& probed, Flow& built) {
  // Every server can read all of a build side by scans. Parts are claimed, by one server each: their output
  // is written to scratch memory first.
  const auto scans = [&](const Flow& flow) {
    return flow.on_servers() && builder_.stage(flow.pipeline.stage).claims_table();
  };
  const auto swap = [&] {
    std::swap(probed, built);
    std::swap(join.left, join.right);
  };
  const bool inner = join.kind == JoinKind::kInner;
  if (inner && built.on_servers() && IsOfConstants(probed, built.rows())) swap();
  if (probed.on_servers() && join.kind != JoinKind::kFull && IsOfConstants(built, probed.rows())) {
    built.pipeline.stage = probed.pipeline.stage;
    return Place::kServers;
  }
  if (probed.on_servers() && built.on_servers()) {
    const auto fits = [&](const Flow& flow) {
      return scans(flow) && !(MayGoByParts(join.left) && IsTooLarge(flow.rows(), flow.schema()));
    };
    // Unmatched rows of a whole build side are unknown to one server, which would have to see all probes.
    const bool whole_matters = join.kind != JoinKind::kFull;
    const bool small = scans(probed) && CanBeWhole(built) && built.rows() <= probed.rows();
    if (inner && !fits(built) && fits(probed) && !small) swap();
    const bool whole = whole_matters && (scans(built) || (scans(probed) && CanBeWhole(built)));
    join.choice = Choose(join, probed, built, whole);
    if (join.choice->algorithm != JoinAlgorithm::kPipelined) {
      if (inner && probed.rows() < built.rows()) swap();
      return plan::IsStreamed(join.choice->algorithm) ? Place::kExchange : Place::kParts;
    }
    if (whole) {
      if (!scans(built)) {
        NAM_ASSIGN_OR_RETURN(built, ToAllServers(std::move(built)));
      }
      return Place::kServers;
    }
  }
  const bool refused = options_.join != JoinAlgorithm::kAuto && options_.join != JoinAlgorithm::kPipelined;
  if (!join.choice.has_value() && refused) join.choice = InSession(options_.join);
  // In the session the build side's stage runs first. If it yields more rows than the other side is expected
  // to, the other side is built.
  if (inner && probed.rows() < built.rows()) swap();
  const uint32_t stage = built.pipeline.stage;
  NAM_ASSIGN_OR_RETURN(built, ToSession(std::move(built)));
  if (inner && stage != Flow::kSession) builder_.stage(stage).barrier = true;
  if (inner && probed.rows() < built.rows()) swap();
  NAM_ASSIGN_OR_RETURN(built, ToSession(std::move(built)));
  NAM_ASSIGN_OR_RETURN(probed, ToSession(std::move(probed)));
  return Place::kSession;
}

void TreeLowering::NoteJoin(const JoinOf& join, uint32_t build) {
  if (!join.choice.has_value()) return;
  JoinChoice choice = *join.choice;
  choice.build = build;
  builder_.Note(choice);
}

absl::StatusOr<TreeLowering::ProbeAndLayout> TreeLowering::ProbeOf(const JoinOf& join, uint32_t build,
                                                                   std::vector<Expr> keys,
                                                                   const Layout& probed,
                                                                   const Layout& payload) {
  plan::ProbeStep probe{
      .build = build, .kind = join.kind, .keys = std::move(keys), .null_aware = join.null_aware};
  probe.keep = SlotsWhere(probed, join.behind);
  probe.fetch = FirstNumbers(payload.size());
  Layout partners;
  for (const uint32_t slot : probe.keep) partners.push_back(probed[slot]);
  Layout after = partners;
  partners.insert(partners.end(), payload.begin(), payload.end());
  NAM_ASSIGN_OR_RETURN(probe.residuals, OverSlots(join.residuals, partners));
  NAM_ASSIGN_OR_RETURN(probe.compared, OverSlots(join.compared, partners));
  if (join.kind == JoinKind::kMark) after.push_back(join.mark);
  if (!KeepsProbeSideAlone(join.kind)) after = std::move(partners);
  return ProbeAndLayout{std::move(probe), std::move(after)};
}

double TreeLowering::RowsOf(const JoinOf& join, double probed, double built) const {
  if (join.values > 0) return probed * (built / join.values);
  if (join.left.size() != 1 || join.kind != JoinKind::kSemi) return probed;
  // Keys of few rows are assumed to be distinct.
  const double values = cardinalities_.ValuesOf(join.left);
  return std::isfinite(values) && values > built ? probed * built / values : probed;
}

bool TreeLowering::IsOfConstants(const Flow& flow, double rows) const {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;  // of values, in the plan
  const auto* const values = std::get_if<plan::ValuesSource>(&flow.pipeline.source);
  if (values == nullptr || flow.on_servers() || flow.rows() > std::max(rows, kMostConstants)) return false;
  uint64_t bytes = 0;
  for (const std::vector<Value>& row : values->rows) {
    for (const Value& value : row) bytes += sizeof(value.number) + value.text.size();
  }
  const auto by_row = [](const plan::StepNode& step) {
    return std::holds_alternative<plan::FilterStep>(step) ||
           std::holds_alternative<plan::ProjectStep>(step) || std::holds_alternative<plan::SeriesStep>(step);
  };
  return bytes <= kMostBytes && !IsTooLarge(flow.rows(), flow.schema()) &&
         std::all_of(flow.pipeline.steps.begin(), flow.pipeline.steps.end(), by_row);
}

bool TreeLowering::IsUnique(const JoinOf& join, const Flow& built) const {
  if (join.kind != JoinKind::kInner || join.right.size() != 1 || !built.on_servers()) return false;
  if (plan::ScanOf(built.pipeline) == nullptr || !built.pipeline.steps.empty()) return false;
  // Texts of one type that differ in their blanks alone are one key beside texts of the other.
  const Type &probe = join.left[0].type, &build = join.right[0].type;
  if (plan::IsChar(probe) != plan::IsChar(build) && plan::IgnoresBlanks(probe, build)) return false;
  const StoredColumn* const stored = cardinalities_.StoredOf(join.right[0]);
  return stored != nullptr && stored->column->unique();
}

absl::StatusOr<Flow> TreeLowering::Join(JoinOf join, Flow flow, Flow build) {
  NAM_ASSIGN_OR_RETURN(const Place place, Meet(join, flow, build));
  if (place == Place::kParts) return JoinByParts(join, std::move(flow), std::move(build));
  if (place == Place::kExchange) return JoinByExchange(join, std::move(flow), std::move(build));
  plan::BuildSink sink;
  NAM_ASSIGN_OR_RETURN(sink.keys, OverSlots(join.right, build.layout));
  sink.payload = SlotsWhere(build.layout, join.behind);
  sink.unique = IsUnique(join, build);
  Layout payload;
  for (const uint32_t slot : sink.payload) payload.push_back(build.layout[slot]);
  const double build_rows = build.rows();
  const uint32_t build_site = build.pipeline.stage;
  const uint32_t built = builder_.Close(std::move(build), std::move(sink));
  NoteJoin(join, built);

  if (build_site != flow.pipeline.stage) builder_.MoveStage(build_site, flow.pipeline.stage);
  NAM_ASSIGN_OR_RETURN(std::vector<Expr> keys, OverSlots(join.left, flow.layout));
  NAM_ASSIGN_OR_RETURN(ProbeAndLayout probe, ProbeOf(join, built, std::move(keys), flow.layout, payload));
  const double rows = RowsOf(join, flow.rows(), build_rows);
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(probe.step), std::move(probe.after), rows, flow));
  return flow;
}

/// The domain of keys that are nearly as many as their range is long, if it divides into so many parts.
plan::KeyDomain DomainOf(const plan::Slot& probed, const plan::Slot& built, double built_rows,
                         uint32_t parts) {
  const auto narrow = [](const plan::Slot& key) {
    return PhysicalOf(key.type) != Physical::kTruth && PhysicalOf(key.type) != Physical::kText &&
           key.bounds.narrow();
  };
  if (!narrow(probed) || !narrow(built) || built.bounds.high < built.bounds.low) return {};
  const auto spread = static_cast<unsigned __int128>(built.bounds.high - built.bounds.low);
  if (spread >> plan::KeyDomain::kBitsMax != 0) return {};
  const auto bits = std::max(std::bit_width(static_cast<uint32_t>(spread)), std::bit_width(parts) - 1);
  const plan::KeyDomain domain{static_cast<int64_t>(built.bounds.low), static_cast<uint32_t>(bits)};
  return static_cast<double>(domain.size()) <= kDomainOverRows * built_rows ? domain : plan::KeyDomain();
}

absl::StatusOr<std::vector<uint32_t>> TreeLowering::KeepForJoin(std::vector<Expr> keys,
                                                                const ColumnSet& behind, NullKeys nulls,
                                                                Flow& flow) {
  // Computed keys come after the columns; unused columns are dropped.
  std::vector<uint32_t> places;
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> slots, SlotsOf(keys, flow));
  std::vector<uint32_t> wanted = SlotsWhere(flow.layout, behind);
  for (const uint32_t slot : slots) {
    auto place = std::find(wanted.begin(), wanted.end(), slot);
    if (place == wanted.end()) place = wanted.insert(wanted.end(), slot);
    places.push_back(static_cast<uint32_t>(place - wanted.begin()));
  }
  plan::FilterStep not_null;
  for (const uint32_t slot : slots) {
    if (nulls != NullKeys::kLeftOut || !flow.schema()[slot].nullable) continue;
    not_null.conditions.push_back(plan::MakeNode(
        Op::kNot, Type::Bool(), -1,
        {plan::MakeNode(Op::kIsNull, Type::Bool(), -1, {plan::SlotExpr(flow.schema(), slot)})}));
  }
  if (!not_null.conditions.empty()) {
    Layout layout = flow.layout;
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(not_null), std::move(layout), flow.rows(), flow));
  }
  if (wanted != FirstNumbers(flow.layout.size())) {
    plan::ProjectStep project;
    Layout layout;
    for (const uint32_t slot : wanted) {
      project.outputs.push_back(plan::SlotExpr(flow.schema(), slot));
      layout.push_back(flow.layout[slot]);
    }
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), std::move(layout), flow.rows(), flow));
  }
  return places;
}

absl::StatusOr<TreeLowering::Side> TreeLowering::ByParts(std::vector<Expr> keys, const ColumnSet& behind,
                                                         NullKeys nulls, uint32_t parts,
                                                         const plan::KeyDomain& domain, Flow flow) {
  Side side;
  NAM_ASSIGN_OR_RETURN(side.keys, KeepForJoin(std::move(keys), behind, nulls, flow));
  side.layout = flow.layout;
  side.rows = flow.schema();
  const double rows = flow.rows();
  const uint32_t stage = flow.pipeline.stage;
  side.pipeline = builder_.Close(std::move(flow),
                                 plan::PartitionSink{side.keys, parts, nulls == NullKeys::kCounted, domain});
  side.row_count = End(stage, {.rows = rows, .by_parts = true}, /*barrier=*/true).rows;
  return side;
}

absl::StatusOr<Flow> TreeLowering::JoinByParts(const JoinOf& join, Flow probed, Flow built) {
  const JoinAlgorithm algorithm = join.choice->algorithm;
  std::vector<Expr> left = join.left, right = join.right;
  DropBlanks(left, right);
  // Both sides need equally many parts, so the first one's result does not change them.
  const uint32_t parts = algorithm == JoinAlgorithm::kRdmaGhj
                             ? static_cast<uint32_t>(RdmaGhjParts(options_.cluster.workers()))
                             : PartsOfRows(built.rows(), built.schema());
  const double expected_built = built.rows();
  plan::KeyDomain domain;
  if (left.size() == 1) {
    NAM_ASSIGN_OR_RETURN(const Expr over_probed, OverSlots(left[0], probed.layout));
    NAM_ASSIGN_OR_RETURN(const Expr over_built, OverSlots(right[0], built.layout));
    NAM_ASSIGN_OR_RETURN(const plan::Slot of_probed, plan::SlotOf(over_probed, probed.schema()));
    NAM_ASSIGN_OR_RETURN(const plan::Slot of_built, plan::SlotOf(over_built, built.schema()));
    domain = DomainOf(of_probed, of_built, expected_built, parts);
  }
  plan::JoinSource source{
      .probed = 0, .build = {}, .probe = {.kind = join.kind, .null_aware = join.null_aware}};
  // Comparisons beside the keys have no slots yet; only their existence matters.
  const bool counts = join.compared.empty() && plan::AsksForNulls(source.probe);
  const NullKeys of_built = counts                  ? NullKeys::kCounted
                            : KeepsBuilt(join.kind) ? NullKeys::kWritten
                                                    : NullKeys::kLeftOut;
  const NullKeys of_probed = KeepsProbed(join.kind) ? NullKeys::kWritten : NullKeys::kLeftOut;
  NAM_ASSIGN_OR_RETURN(const Side build,
                       ByParts(std::move(right), join.behind, of_built, parts, domain, std::move(built)));
  NAM_ASSIGN_OR_RETURN(const Side probe,
                       ByParts(std::move(left), join.behind, of_probed, parts, domain, std::move(probed)));

  NoteJoin(join, build.pipeline);
  source.probed = probe.pipeline;
  source.build.payload = SlotsWhere(build.layout, join.behind);
  for (const uint32_t key : build.keys) source.build.keys.push_back(plan::SlotExpr(build.rows, key));
  std::vector<Expr> keys;
  for (const uint32_t key : probe.keys) keys.push_back(plan::SlotExpr(probe.rows, key));
  Layout payload;
  for (const uint32_t slot : source.build.payload) payload.push_back(build.layout[slot]);
  NAM_ASSIGN_OR_RETURN(ProbeAndLayout made,
                       ProbeOf(join, build.pipeline, std::move(keys), probe.layout, payload));
  source.probe = std::move(made.step);
  NAM_ASSIGN_OR_RETURN(plan::JoinSchemas schemas, plan::SchemasOf(builder_.draft(), source));
  double rows = RowsOf(join, probe.row_count, build.row_count);
  if (KeepsBuilt(join.kind)) rows = std::max(rows, build.row_count);
  const auto [first, last] = std::minmax(build.pipeline, probe.pipeline);
  return Flow{.pipeline = {.source = std::move(source),
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(schemas.output)},
                           .estimates = {{rows, 1}},
                           .after = {first, last},
                           .stage = builder_.AddStage({.parts = parts})},
              .layout = std::move(made.after)};
}

}  // namespace nam::optimizer
