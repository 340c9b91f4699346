#include "execution/scan/absorb.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::JoinKind;

/// A column's origin: the scan, or the step that adds it.
struct Origin {
  static constexpr int32_t kScan = -1;
  int32_t step = kScan;
  uint32_t number = 0;  // slot of the scan; place in a probe's payload after its mark; output
  auto operator<=>(const Origin&) const = default;
};
using Origins = std::vector<Origin>;

bool Contains(const Origins& origins, const Origin& origin) {
  return std::find(origins.begin(), origins.end(), origin) != origins.end();
}
uint32_t PlaceOf(const Origins& origins, const Origin& origin) {
  const auto found = std::find(origins.begin(), origins.end(), origin);
  NAM_CHECK(found != origins.end());
  return static_cast<uint32_t>(found - origins.begin());
}

void AddColumns(const Expr& expr, const Origins& input, Origins& needed) {
  for (const plan::ColumnRef ref : plan::ColumnsOf(expr)) {
    const Origin& origin = input[static_cast<size_t>(ref.column)];
    if (!Contains(needed, origin)) needed.push_back(origin);
  }
}
void AddColumns(const std::vector<Expr>& exprs, const Origins& input, Origins& needed) {
  for (const Expr& expr : exprs) AddColumns(expr, input, needed);
}

void AddSlots(std::span<const uint32_t> slots, const Origins& input, Origins& needed) {
  for (const uint32_t slot : slots) {
    if (!Contains(needed, input[slot])) needed.push_back(input[slot]);
  }
}

void Renumber(Expr& expr, const Origins& from, const Origins& to) {
  if (expr.op == plan::Op::kColumn) {
    expr.column.column = static_cast<int>(PlaceOf(to, from[static_cast<size_t>(expr.column.column)]));
  }
  for (Expr& child : expr.children) Renumber(child, from, to);
}
void Renumber(std::vector<Expr>& exprs, const Origins& from, const Origins& to) {
  for (Expr& expr : exprs) Renumber(expr, from, to);
}
void Renumber(std::vector<uint32_t>& slots, const Origins& from, const Origins& to) {
  for (uint32_t& slot : slots) slot = PlaceOf(to, from[slot]);
}

bool FetchFlowsOn(JoinKind kind) {
  return kind != JoinKind::kSemi && kind != JoinKind::kAnti && kind != JoinKind::kNullAwareAnti &&
         kind != JoinKind::kMark;
}

class Absorption {
 public:
  Absorption(const plan::Pipeline& in, std::span<const uint8_t> direct, std::span<const uint8_t> plain)
      : in_(in), direct_(direct), plain_(plain), scan_(std::get<plan::BlockScan>(in.source)) {}

  AbsorbedPipeline Run() {
    Trace();
    FindNeeded();
    MakeSource();
    for (size_t i = 0; i < in_.steps.size(); ++i) {
      if (probe_of_[i] < 0) MakeStep(i);
    }
    MakeSink();
    return std::move(out_);
  }

 private:
  /// Finds the origins of the columns before and after each step, and the absorbed steps.
  void Trace() {
    Origins& source = at_.emplace_back();
    for (const uint32_t slot : scan_.output) source.push_back({Origin::kScan, slot});
    for (size_t i = 0; i < in_.steps.size(); ++i) {
      const Origins input = at_.back();
      const auto* probe = std::get_if<plan::ProbeStep>(&in_.steps[i]);
      probe_of_.push_back(probe != nullptr && may_absorb_ && IsAbsorbed(*probe, input)
                              ? static_cast<int32_t>(out_.probes.size())
                              : -1);
      if (probe_of_.back() >= 0) {
        const auto key = static_cast<size_t>(probe->keys[0].column.column);
        out_.probes.push_back({probe->build, input[key].number});
        out_.probe_steps.push_back(static_cast<uint32_t>(i));
      }
      at_.push_back(OutputOf(i, input));
      NAM_CHECK(at_.back().size() == in_.schemas[i + 1].size());
    }
  }

  bool IsAbsorbed(const plan::ProbeStep& probe, const Origins& input) const {
    if (probe.kind != JoinKind::kInner && probe.kind != JoinKind::kSemi) return false;
    if (direct_[probe.build] == 0 || !probe.residuals.empty() || probe.keys.size() != 1) return false;
    const Expr& key = probe.keys[0];
    if (key.op != plan::Op::kColumn || PhysicalOf(key.type) == Physical::kText) return false;
    const Origin& origin = input[static_cast<size_t>(key.column.column)];
    return origin.step == Origin::kScan && (plain_.empty() || plain_[origin.number] == 0);
  }

  Origins OutputOf(size_t i, const Origins& input) {
    const auto step = static_cast<int32_t>(i);
    Origins output;
    if (const auto* probe = std::get_if<plan::ProbeStep>(&in_.steps[i])) {
      may_absorb_ = may_absorb_ && probe->kind != JoinKind::kRight && probe->kind != JoinKind::kFull;
      output = KeptOf(*probe, input);
      if (FetchFlowsOn(probe->kind)) {
        for (const uint32_t column : probe->fetch) output.push_back({step, column});
      }
      if (probe->kind == JoinKind::kMark) output.push_back(MarkOf(i));
      return output;
    }
    if (std::holds_alternative<plan::FilterStep>(in_.steps[i])) return input;
    may_absorb_ = false;
    if (std::holds_alternative<plan::LimitStep>(in_.steps[i]) ||
        std::holds_alternative<plan::RepeatStep>(in_.steps[i])) {
      return input;
    }
    if (std::holds_alternative<plan::SeriesStep>(in_.steps[i])) {
      output = input;
      output.push_back({step, 0});
      return output;
    }
    if (const auto* expand = std::get_if<plan::ExpandStep>(&in_.steps[i])) {
      output = input;
      for (uint32_t n = 0; n <= expand->keys.size(); ++n) output.push_back({step, n});
      return output;
    }
    const size_t outputs = std::get<plan::ProjectStep>(in_.steps[i]).outputs.size();
    for (uint32_t n = 0; n < outputs; ++n) output.push_back({step, n});
    return output;
  }
  static Origins KeptOf(const plan::ProbeStep& probe, const Origins& input) {
    Origins kept;
    for (const uint32_t slot : probe.keep) kept.push_back(input[slot]);
    return kept;
  }
  static Origin MarkOf(size_t step) { return {static_cast<int32_t>(step), UINT32_MAX}; }
  /// The columns that a probe's residual conditions read.
  static Origins ResidualsScope(size_t i, const plan::ProbeStep& probe, const Origins& input) {
    Origins scope = KeptOf(probe, input);
    for (const uint32_t column : probe.fetch) scope.push_back({static_cast<int32_t>(i), column});
    return scope;
  }

  /// Finds, backwards, the columns of each step's output that are needed.
  void FindNeeded() {
    needed_.resize(in_.steps.size() + 1);
    needed_.back() = NeededBySink();
    for (size_t i = in_.steps.size(); i-- > 0;) {
      Origins& needed = needed_[i];
      if (probe_of_[i] >= 0) {
        needed = needed_[i + 1];
      } else if (const auto* probe = std::get_if<plan::ProbeStep>(&in_.steps[i])) {
        Origins all = needed_[i + 1];
        AddColumns(probe->residuals, ResidualsScope(i, *probe, at_[i]), all);
        AddColumns(probe->compared, ResidualsScope(i, *probe, at_[i]), all);
        std::erase_if(all, [&](const Origin& o) { return o.step == static_cast<int32_t>(i); });
        needed = std::move(all);
        AddColumns(probe->keys, at_[i], needed);
      } else if (const auto* project = std::get_if<plan::ProjectStep>(&in_.steps[i])) {
        AddColumns(project->outputs, at_[i], needed);
      } else {
        needed = needed_[i + 1];
        if (const auto* filter = std::get_if<plan::FilterStep>(&in_.steps[i]))
          AddColumns(filter->conditions, at_[i], needed);
        if (const auto* repeat = std::get_if<plan::RepeatStep>(&in_.steps[i]))
          AddSlots({&repeat->times, 1}, at_[i], needed);
        if (const auto* limit = std::get_if<plan::LimitStep>(&in_.steps[i]))
          AddSlots(limit->ties, at_[i], needed);
        if (const auto* series = std::get_if<plan::SeriesStep>(&in_.steps[i])) {
          std::erase(needed, Origin{static_cast<int32_t>(i), 0});
          for (const Expr* end : {&series->first, &series->last, &series->step})
            AddColumns(*end, at_[i], needed);
        }
        if (const auto* expand = std::get_if<plan::ExpandStep>(&in_.steps[i])) {
          std::erase_if(needed, [&](const Origin& o) { return o.step == static_cast<int32_t>(i); });
          AddSlots(expand->keys, at_[i], needed);
        }
      }
    }
  }

  Origins NeededBySink() const {
    const Origins& input = at_.back();
    Origins needed;
    if (const auto* build = std::get_if<plan::BuildSink>(&in_.sink)) {
      AddColumns(build->keys, input, needed);
      AddSlots(build->payload, input, needed);
      return needed;
    }
    const auto* aggregate = std::get_if<plan::AggregateSink>(&in_.sink);
    if (aggregate == nullptr) return input;  // all columns, in this order
    AddColumns(aggregate->group_by, input, needed);
    for (const plan::Aggregate& each : aggregate->aggregates) {
      AddColumns(each.argument, input, needed);
      AddColumns(each.second, input, needed);
    }
    return needed;
  }

  void MakeSource() {
    plan::BlockScan scan = scan_;
    scan.output.clear();
    now_ = needed_[0];
    std::sort(now_.begin(), now_.end());
    plan::Schema& schema = out_.pipeline.schemas.emplace_back();
    for (const Origin& origin : now_) {
      if (origin.step == Origin::kScan) {
        scan.output.push_back(origin.number);
        out_.outputs.push_back({ScanOutput::kScanned, origin.number});
      } else {
        out_.outputs.push_back({probe_of_[static_cast<size_t>(origin.step)], origin.number});
      }
      schema.push_back(SlotAt(0, origin));
    }
    out_.pipeline.source = std::move(scan);
    out_.pipeline.after = in_.after;
    out_.pipeline.stage = in_.stage;
    size_t last = 0;  // the source now covers the steps up to here
    while (last < probe_of_.size() && probe_of_[last] >= 0) ++last;
    AddEstimate(last);
  }

  /// The slot of a column after so many steps of the old pipeline. The place of an absorbed probe tells what
  /// it adds.
  const plan::Slot& SlotAt(size_t steps, const Origin& origin) const {
    if (Contains(at_[steps], origin)) return in_.schemas[steps][PlaceOf(at_[steps], origin)];
    if (origin.step == Origin::kScan) return scan_.slots[origin.number];
    const auto added = static_cast<size_t>(origin.step) + 1;
    return in_.schemas[added][PlaceOf(at_[added], origin)];
  }
  void AddEstimate(size_t steps) {
    if (in_.estimates.size() == in_.schemas.size()) out_.pipeline.estimates.push_back(in_.estimates[steps]);
  }

  void MakeStep(size_t i) {
    plan::StepNode step = in_.steps[i];
    if (auto* probe = std::get_if<plan::ProbeStep>(&step)) {
      MakeProbe(i, *probe);
    } else if (auto* project = std::get_if<plan::ProjectStep>(&step)) {
      Renumber(project->outputs, at_[i], now_);
      now_ = at_[i + 1];
    } else if (auto* filter = std::get_if<plan::FilterStep>(&step)) {
      Renumber(filter->conditions, at_[i], now_);
    } else if (auto* repeat = std::get_if<plan::RepeatStep>(&step)) {
      repeat->times = PlaceOf(now_, at_[i][repeat->times]);
    } else if (auto* limit = std::get_if<plan::LimitStep>(&step)) {
      Renumber(limit->ties, at_[i], now_);
    } else if (auto* series = std::get_if<plan::SeriesStep>(&step)) {
      for (Expr* end : {&series->first, &series->last, &series->step}) Renumber(*end, at_[i], now_);
      now_.push_back({static_cast<int32_t>(i), 0});
    } else if (auto* expand = std::get_if<plan::ExpandStep>(&step)) {
      Renumber(expand->keys, at_[i], now_);
      for (uint32_t n = 0; n <= expand->keys.size(); ++n) now_.push_back({static_cast<int32_t>(i), n});
    }
    out_.pipeline.steps.push_back(std::move(step));
    AddSchema(i + 1);
    AddEstimate(i + 1);
  }
  void AddSchema(size_t steps) {
    plan::Schema& schema = out_.pipeline.schemas.emplace_back();
    for (const Origin& origin : now_) schema.push_back(SlotAt(steps, origin));
  }

  void MakeProbe(size_t i, plan::ProbeStep& probe) {
    const Origins scope = ResidualsScope(i, probe, at_[i]);
    Origins needed = needed_[i + 1];
    AddColumns(probe.residuals, scope, needed);
    AddColumns(probe.compared, scope, needed);
    Renumber(probe.keys, at_[i], now_);
    probe.keep.clear();
    Origins output;
    for (uint32_t slot = 0; slot < now_.size(); ++slot) {
      if (!Contains(needed, now_[slot])) continue;
      probe.keep.push_back(slot);
      output.push_back(now_[slot]);
    }
    std::erase_if(probe.fetch, [&](uint32_t column) {
      return !Contains(needed, {static_cast<int32_t>(i), column});
    });
    Origins new_scope = output;
    for (const uint32_t column : probe.fetch) new_scope.push_back({static_cast<int32_t>(i), column});
    Renumber(probe.residuals, scope, new_scope);
    Renumber(probe.compared, scope, new_scope);
    if (probe.kind == JoinKind::kMark) output.push_back(MarkOf(i));
    now_ = FetchFlowsOn(probe.kind) ? std::move(new_scope) : std::move(output);
  }

  void MakeSink() {
    out_.pipeline.sink = in_.sink;
    const Origins& old = at_.back();
    if (auto* build = std::get_if<plan::BuildSink>(&out_.pipeline.sink)) {
      Renumber(build->keys, old, now_);
      Renumber(build->payload, old, now_);
    } else if (auto* aggregate = std::get_if<plan::AggregateSink>(&out_.pipeline.sink)) {
      Renumber(aggregate->group_by, old, now_);
      for (plan::Aggregate& each : aggregate->aggregates) {
        Renumber(each.argument, old, now_);
        Renumber(each.second, old, now_);
      }
    } else if (now_ != old) {
      Reorder(old);
    }
  }
  /// Restores the order for a sink that takes rows as they are.
  void Reorder(const Origins& wanted) {
    plan::ProjectStep project;
    for (size_t slot = 0; slot < wanted.size(); ++slot) {
      Expr& output = project.outputs.emplace_back();
      output.op = plan::Op::kColumn;
      output.type = in_.schemas.back()[slot].type;
      output.column = {0, static_cast<int>(PlaceOf(now_, wanted[slot]))};
    }
    out_.pipeline.steps.emplace_back(std::move(project));
    out_.pipeline.schemas.push_back(in_.schemas.back());
    AddEstimate(in_.steps.size());
  }

  const plan::Pipeline& in_;
  const std::span<const uint8_t> direct_, plain_;
  const plan::BlockScan& scan_;
  bool may_absorb_ = true;
  std::vector<int32_t> probe_of_;  // of each old step: the number of the absorbed probe, -1 if it stays
  std::vector<Origins> at_;        // after so many old steps
  std::vector<Origins> needed_;    // the same
  Origins now_;                    // after the new steps so far
  AbsorbedPipeline out_;
};

}  // namespace

AbsorbedPipeline Absorb(const plan::Pipeline& pipeline, std::span<const uint8_t> direct,
                        std::span<const uint8_t> plain) {
  if (!std::holds_alternative<plan::BlockScan>(pipeline.source)) return {.pipeline = pipeline};
  return Absorption(pipeline, direct, plain).Run();
}

KeyLookup LookupOf(const DirectTable& table, uint32_t slot, uint32_t key, int32_t co_partitioned_key,
                   const proto::Table& scanned) {
  KeyLookup lookup{.table = &table, .slot = slot};
  if (co_partitioned_key < 0 || co_partitioned_key >= scanned.partitioning_size()) return lookup;
  const proto::PartitionKey& by = scanned.partitioning(co_partitioned_key);
  if (by.function() != proto::MODULO || by.column() != scanned.columns(static_cast<int>(key)).name())
    return lookup;
  lookup.parts = by.parts();
  for (int k = co_partitioned_key + 1; k < scanned.partitioning_size(); ++k)
    lookup.divisor *= scanned.partitioning(k).parts();
  return lookup;
}

}  // namespace nam::execution
