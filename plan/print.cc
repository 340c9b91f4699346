#include "plan/print.h"

#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plan/aggregate_slots.h"
#include "plan/flow.h"
#include "types/interval.h"
#include "types/real.h"
#include "types/value.h"

namespace nam::plan {
namespace {

using Names = std::vector<std::string>;

/// Cuts names of computed columns: names within names would grow with every step.
constexpr size_t kLongestName = 60;

std::string Shortened(std::string name) {
  if (name.size() <= kLongestName) return name;
  size_t end = kLongestName;
  while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // within a character
  name.resize(end);
  return name + "…";
}

/// Whether a name reads as one operand: no blank outside of parentheses and quotes.
bool IsOperand(std::string_view name) {
  int depth = 0;
  bool quoted = false;
  for (const char c : name) {
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ' ' && depth == 0) return false;
  }
  return depth == 0 && !quoted && !name.starts_with('-');
}

std::string Text(const Expr& expr, const Names& names) {
  if (expr.op == Op::kColumn) return names[static_cast<size_t>(expr.column.column)];
  return ToString(expr, [&](const Expr& e) {
    const std::string& name = names[static_cast<size_t>(e.column.column)];
    return IsOperand(name) ? name : absl::StrCat("(", name, ")");
  });
}

std::string All(std::span<const Expr> exprs, const Names& names, const char* between) {
  return absl::StrJoin(exprs, between,
                       [&](std::string* out, const Expr& e) { absl::StrAppend(out, Text(e, names)); });
}

Names Picked(std::span<const uint32_t> slots, const Names& names) {
  Names out;
  for (const uint32_t slot : slots) out.push_back(names[slot]);
  return out;
}

/// SQL's names for the columns of VALUES.
Names Numbered(size_t slots) {
  Names out;
  for (size_t i = 0; i < slots; ++i) out.push_back(absl::StrCat("column", i + 1));
  return out;
}

std::string Where(std::span<const Expr> conditions, const Names& names) {
  return conditions.empty() ? "" : absl::StrCat(" where ", All(conditions, names, " and "));
}

const char* NameOf(JoinKind kind) {
  static constexpr const char* kNames[] = {
      "", " left", " right", " full", " semi", " anti", " null-aware anti", " mark", " single"};
  return kNames[static_cast<size_t>(kind)];
}

const char* NameOf(AggregateSink::Phase phase) {
  static constexpr const char* kNames[] = {"partial", "merge", "final", "whole"};
  return kNames[static_cast<size_t>(phase)];
}

const char* NameOf(WindowFunction function) {
  static constexpr const char* kNames[] = {"",           "row_number", "rank", "dense_rank", "percent_rank",
                                           "cume_dist",  "ntile",      "lag",  "lead",       "first_value",
                                           "last_value", "nth_value"};
  return kNames[static_cast<size_t>(function)];
}

std::string Text(Runs runs) {
  static constexpr const char* kTexts[] = {"", ", as sorted runs if they are many", ", as sorted runs"};
  return kTexts[static_cast<size_t>(runs)];
}

/// A distance of the key's type.
std::string TextOfOffset(__int128 offset, const WindowFrame& frame, const Type& key) {
  if (frame.unit != WindowFrame::Unit::kRange || key.numeric()) return Int128ToString(offset);
  return key.real() ? RealText(FromOrderedBits(static_cast<int64_t>(offset)), /*real=*/false)
                    : absl::StrCat("'", IntervalText(UnpackInterval(offset)), "'");
}

std::string Text(const FrameBound& bound, const WindowFrame& frame, const Type& key) {
  switch (bound.kind) {
    case FrameBound::Kind::kUnboundedPreceding:
      return "unbounded preceding";
    case FrameBound::Kind::kPreceding:
      return absl::StrCat(TextOfOffset(bound.offset, frame, key), " preceding");
    case FrameBound::Kind::kCurrentRow:
      return "current row";
    case FrameBound::Kind::kFollowing:
      return absl::StrCat(TextOfOffset(bound.offset, frame, key), " following");
    case FrameBound::Kind::kUnboundedFollowing:
      return "unbounded following";
  }
  return "";
}

bool HasFrame(const WindowCall& call) {
  return call.function == WindowFunction::kAggregate || call.function >= WindowFunction::kFirstValue;
}

std::string Text(const WindowFrame& frame, const Type& key) {
  static constexpr const char* kUnits[] = {"rows", "range", "groups"};
  static constexpr const char* kExclusions[] = {"", " exclude current row", " exclude group",
                                                " exclude ties"};
  return absl::StrCat(" ", kUnits[static_cast<size_t>(frame.unit)], " between ",
                      Text(frame.start, frame, key), " and ", Text(frame.end, frame, key),
                      kExclusions[static_cast<size_t>(frame.exclusion)]);
}

std::string Text(const Order& order, const Names& names) {
  std::string text = absl::StrCat(names[order.slot], order.descending ? " desc" : "");
  if (order.nulls_first != order.descending)
    absl::StrAppend(&text, order.nulls_first ? " nulls first" : " nulls last");
  return text;
}

std::string Text(std::span<const Order> order, const Names& names) {
  return absl::StrJoin(order, ", ",
                       [&](std::string* out, const Order& o) { absl::StrAppend(out, Text(o, names)); });
}

class PlanPrinter {
 public:
  PlanPrinter(const PhysicalPlan& plan, const ColumnNames& names)
      : plan_(plan), column_names_(names), calls_(plan.pipelines.size()), fed_(plan.pipelines.size()) {}

  std::vector<PipelineText> Run() {
    for (uint32_t p = 0; p < plan_.pipelines.size(); ++p) Pipe(p);
    return std::move(pipelines_);
  }

 private:
  void Pipe(uint32_t number) {
    const Pipeline& pipeline = plan_.pipelines[number];
    const auto flows = [&](size_t at) {
      // A projection has printed it.
      const bool named = at > 0 && std::holds_alternative<ProjectStep>(pipeline.steps[at - 1]);
      const std::string names = named || names_.empty() ? "" : " => " + absl::StrJoin(names_, ", ");
      return absl::StrFormat("%s ~%.0f", names, pipeline.estimates[at].rows);
    };
    number_ = number;
    PipelineText& text = pipelines_.emplace_back();
    text.source = std::visit([&](const auto& source) { return Source(pipeline, source); }, pipeline.source);
    text.source += flows(0);
    text.place = Place(number);
    for (size_t s = 0; s < pipeline.steps.size(); ++s) {
      std::string& line = text.steps.emplace_back();
      line = std::visit([&](const auto& step) { return Step(step); }, pipeline.steps[s]);
      line += flows(s + 1);
    }
    text.sink = std::visit([&](const auto& sink) { return Sink(sink); }, pipeline.sink);
    left_.push_back(Left(pipeline));
  }

  /// Its place in the graph.
  std::string Place(uint32_t number) const {
    const Pipeline& pipeline = plan_.pipelines[number];
    std::string text;
    if (plan_.stages.size() > 1) absl::StrAppend(&text, ", stage ", pipeline.stage);
    const Stage& stage = plan_.stages[pipeline.stage];
    if (stage.site == Stage::Site::kSession) absl::StrAppend(&text, ", session");
    if (stage.claimed == number && stage.site == Stage::Site::kServers) absl::StrAppend(&text, ", claimed");
    for (size_t i = 0; i < pipeline.after.size(); ++i)
      absl::StrAppend(&text, i == 0 ? ", after P" : " P", pipeline.after[i]);
    return text;
  }

  /// The names of the sink's rows at rest.
  Names Left(const Pipeline& pipeline) {
    if (const auto* build = std::get_if<BuildSink>(&pipeline.sink)) return Picked(build->payload, names_);
    const auto* groups = std::get_if<AggregateSink>(&pipeline.sink);
    if (groups == nullptr) return names_;
    calls_[number_] = CallsOf(*groups);
    const absl::StatusOr<Schema> left = SinkOutput(pipeline);
    return NamesOf(*groups, calls_[number_], left.ok() ? left->size() : 0);
  }

  /// The calls of an aggregation as text. Those over states come from the pipeline that made the states.
  std::vector<std::string> CallsOf(const AggregateSink& sink) const {
    using Phase = AggregateSink::Phase;
    if (sink.phase == Phase::kMerge || sink.phase == Phase::kFinal) {
      const SourceNode& source = plan_.pipelines[number_].source;
      const auto* pages = std::get_if<PageSource>(&source);
      const auto* parts = std::get_if<PartitionSource>(&source);
      const uint32_t from = pages != nullptr ? pages->pipeline : parts != nullptr ? parts->pipeline : number_;
      if (from < number_ && calls_[from].size() == sink.aggregates.size()) return calls_[from];
    }
    std::vector<std::string> calls;
    for (const Aggregate& aggregate : sink.aggregates) {
      std::string& call = calls.emplace_back(NameOf(aggregate.function));
      const size_t arguments = ArgumentsOf(aggregate.function);
      if (arguments == 0) continue;
      absl::StrAppend(&call, "(", aggregate.distinct ? "distinct " : "", Text(aggregate.argument, names_));
      absl::StrAppend(&call, arguments > 1 ? ", " + Text(aggregate.second, names_) : "", ")");
    }
    return calls;
  }

  /// Names of groups: keys, then results, or states, of which an aggregate may have several or none.
  Names NamesOf(const AggregateSink& sink, const std::vector<std::string>& calls, size_t slots) const {
    using Phase = AggregateSink::Phase;
    Names names;
    for (const Expr& key : sink.group_by) names.push_back(Shortened(Text(key, names_)));
    const bool states = sink.phase == Phase::kPartial || sink.phase == Phase::kMerge;
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t of_call = states ? StateSlotsOf(sink.aggregates[i]) : 1;
      for (size_t s = 0; s < of_call; ++s)
        names.push_back(of_call == 1 ? Shortened(calls[i]) : absl::StrCat(Shortened(calls[i]), ".", s + 1));
    }
    while (names.size() < slots) names.push_back(absl::StrCat("column", names.size() + 1));
    names.resize(slots);
    return names;
  }

  // ─── Sources: they set names_, which steps change.

  std::string Scan(const char* what, const TableScan& scan) {
    Names read;
    for (const uint32_t column : scan.columns) read.push_back(column_names_(scan.table, column));
    names_ = Picked(scan.output, read);
    return absl::StrCat(what, plan_.tables[scan.table].name, " (", absl::StrJoin(read, ", "), ")",
                        Where(scan.filters, read));
  }
  std::string Source(const Pipeline&, const BlockScan& scan) {
    std::string text = Scan("scan ", scan);
    if (scan.co_partitioned_key >= 0)
      absl::StrAppend(&text, " in the partitions of key ", scan.co_partitioned_key);
    return text;
  }
  std::string Source(const Pipeline&, const RecordScan& scan) {
    std::string text = Scan("scan records ", scan);
    if (!scan.range_low.empty()) absl::StrAppend(&text, " in ", scan.range_low.size(), " ranges");
    return text;
  }
  std::string Source(const Pipeline& pipeline, const ValuesSource& values) {
    names_ = Numbered(pipeline.schemas[0].size());
    // If only fed rows flow, they are named after the first feeder's.
    if (values.rows.empty() && fed_[number_].size() == names_.size()) names_ = fed_[number_];
    return absl::StrCat("values, ", values.rows.size(), values.rows.size() == 1 ? " row" : " rows");
  }
  std::string Source(const Pipeline&, const FileSource& source) {
    names_ = source.column_names;
    return absl::StrCat("scan ", source.name, " (", absl::StrJoin(names_, ", "), ")");
  }
  std::string Source(const Pipeline&, const PageSource& pages) {
    names_ = left_[pages.pipeline];
    return absl::StrCat("rows of P", pages.pipeline, pages.in_order ? " in order" : "");
  }
  std::string Source(const Pipeline& pipeline, const PartitionSource& source) {
    names_ = left_[source.pipeline];
    if (!source.merge.has_value()) return absl::StrCat("parts of P", source.pipeline);
    std::string text = absl::StrCat("parts of P", source.pipeline, ", ", Groups(*source.merge));
    names_ = NamesOf(*source.merge, CallsOf(*source.merge), pipeline.schemas[0].size());
    return text;
  }
  std::string Source(const Pipeline&, const JoinSource& join) {
    const Names& built = left_[join.probe.build];
    names_ = left_[join.probed];
    const auto& sink = std::get<PartitionSink>(plan_.pipelines[join.probed].sink);
    const std::string text =
        absl::StrCat("join", NameOf(join.probe.kind), " P", join.probed, " with P", join.probe.build, " by ",
                     sink.parts, " parts of (", absl::StrJoin(Picked(sink.keys, names_), ", "), ")");
    return text + Partners(join.probe, Picked(join.build.payload, built));
  }
  std::string Source(const Pipeline& pipeline, const WindowSource& window) {
    names_ = left_[window.pipeline];
    const Names rows = names_;
    const std::span<const Order> order = std::get<SortSink>(plan_.pipelines[window.pipeline].sink).order;
    std::string text = absl::StrCat("window over rows of P", window.pipeline);
    if (window.partition_keys > 0)
      absl::StrAppend(&text, " partition by ", Text(order.first(window.partition_keys), rows));
    if (window.order_keys > 0)
      absl::StrAppend(&text, " order by ",
                      Text(order.subspan(window.partition_keys, window.order_keys), rows));
    const Type key =
        window.order_keys > 0 ? pipeline.schemas[0][order[window.partition_keys].slot].type : Type::Integer();
    for (const WindowCall& call : window.calls) {
      const bool aggregate = call.function == WindowFunction::kAggregate;
      std::string name = absl::StrCat(aggregate ? NameOf(call.aggregate) : NameOf(call.function), "(",
                                      absl::StrJoin(Picked(call.arguments, rows), ", "), ")");
      absl::StrAppend(&text, ", ", name, HasFrame(call) ? Text(call.frame, key) : "");
      names_.push_back(Shortened(std::move(name)));
    }
    return text;
  }
  std::string Source(const Pipeline& pipeline, const ExchangeReceive& receive) {
    names_ = Numbered(pipeline.schemas[0].size());
    for (uint32_t p = 0; p < number_; ++p) {
      const auto* const send = std::get_if<ExchangeSend>(&plan_.pipelines[p].sink);
      if (send != nullptr && send->exchange == receive.exchange) names_ = left_[p];
    }
    return absl::StrCat("receive by exchange ", receive.exchange);
  }

  // ─── Steps

  std::string Step(const FilterStep& filter) {
    return absl::StrCat("filter", Where(filter.conditions, names_));
  }
  std::string Step(const ProjectStep& project) {
    Names outputs;
    for (const Expr& expr : project.outputs) outputs.push_back(Text(expr, names_));
    std::string text = absl::StrCat("project ", absl::StrJoin(outputs, ", "));
    for (std::string& output : outputs) output = Shortened(std::move(output));
    names_ = std::move(outputs);
    return text;
  }
  std::string Step(const ProbeStep& probe) {
    std::string text =
        absl::StrCat("probe", NameOf(probe.kind), " P", probe.build,
                     probe.keys.empty() ? " in a loop" : " on ", All(probe.keys, names_, ", "));
    return text + Partners(probe, left_[probe.build]);
  }
  /// The further conditions on partners. Sets names_ to the output's.
  std::string Partners(const ProbeStep& probe, const Names& payload) {
    Names partners = Picked(probe.keep, names_);
    const size_t kept = partners.size();
    for (Names fetched = Picked(probe.fetch, payload); std::string & name : fetched)
      partners.push_back(std::move(name));
    std::string text = Where(probe.residuals, partners);
    if (probe.null_aware) absl::StrAppend(&text, " null-aware");
    if (!probe.compared.empty())
      absl::StrAppend(&text, " comparing ", All(probe.compared, partners, " and "));
    const bool partners_flow = probe.kind <= JoinKind::kFull || probe.kind == JoinKind::kSingle;
    if (!partners_flow) partners.resize(kept);
    if (probe.kind == JoinKind::kMark) partners.push_back(absl::StrCat("mark(P", probe.build, ")"));
    names_ = std::move(partners);
    return text;
  }
  std::string Step(const LimitStep& limit) {
    std::string text = limit.rows < 0 ? "all" : absl::StrCat("limit ", limit.rows);
    if (limit.offset > 0) absl::StrAppend(&text, " behind ", limit.offset);
    if (!limit.ties.empty())
      absl::StrAppend(&text, " with ties in ", absl::StrJoin(Picked(limit.ties, names_), ", "));
    return text;
  }
  std::string Step(const ExpandStep& expand) {
    const Names keys = Picked(expand.keys, names_);
    const auto set = [&](std::string* out, const std::vector<uint32_t>& places) {
      absl::StrAppend(out, "(", absl::StrJoin(Picked(places, keys), ", "), ")");
    };
    names_.insert(names_.end(), keys.begin(), keys.end());
    names_.emplace_back("set()");
    return absl::StrCat("expand to sets ", absl::StrJoin(expand.sets, ", ", set));
  }
  std::string Step(const RepeatStep& repeat) {
    return absl::StrCat("repeat ", names_[repeat.times], " times");
  }
  std::string Step(const SeriesStep& series) {
    std::string text = absl::StrCat("series from ", Text(series.first, names_), " to ",
                                    Text(series.last, names_), " by ", Text(series.step, names_));
    names_.emplace_back("series()");
    return text;
  }

  // ─── Sinks

  std::string Sink(const BuildSink& build) const {
    std::string text = absl::StrCat("build ", build.unique ? "unique " : "",
                                    build.keys.empty() ? "rows" : "on ", All(build.keys, names_, ", "));
    if (!build.payload.empty())
      absl::StrAppend(&text, " payload ", absl::StrJoin(Picked(build.payload, names_), ", "));
    return text;
  }
  std::string Sink(const AggregateSink& sink) const { return Groups(sink); }
  std::string Groups(const AggregateSink& sink) const {
    std::string text = absl::StrCat("aggregate ", NameOf(sink.phase));
    if (!sink.aggregates.empty()) absl::StrAppend(&text, " ", absl::StrJoin(CallsOf(sink), ", "));
    if (!sink.group_by.empty()) absl::StrAppend(&text, " by ", All(sink.group_by, names_, ", "));
    if (!sink.totals.empty()) absl::StrAppend(&text, " totals ", absl::StrJoin(sink.totals, ", "));
    if (sink.parts > 0) absl::StrAppend(&text, ", into ", sink.parts, " parts if they are many");
    return text;
  }
  std::string Sink(const ResultSink& result) const {
    std::string text = "result";
    if (result.limit >= 0) absl::StrAppend(&text, " first ", result.limit);
    if (!result.order.empty()) absl::StrAppend(&text, " by ", Text(result.order, names_));
    return text + Text(result.runs);
  }
  std::string Sink(const SortSink& sort) const {
    std::string text = "sort";
    if (sort.limit >= 0) absl::StrAppend(&text, " first ", sort.limit);
    if (sort.offset > 0) absl::StrAppend(&text, " after ", sort.offset);
    if (!sort.order.empty()) absl::StrAppend(&text, " by ", Text(sort.order, names_));
    return text + Text(sort.runs);
  }
  std::string Sink(const FeedSink& feed) {
    if (fed_[feed.pipeline].empty()) fed_[feed.pipeline] = names_;
    return absl::StrCat("feed P", feed.pipeline);
  }
  std::string Sink(const ExchangeSend& send) const {
    return absl::StrCat("send by exchange ", send.exchange, send.keys.empty() ? " to all" : " by ",
                        absl::StrJoin(Picked(send.keys, names_), ", "),
                        send.filtered_by.has_value()
                            ? absl::StrCat(" what the Bloom filters of P", *send.filtered_by, " leave")
                            : "");
  }
  std::string Sink(const PartitionSink& partition) const {
    return absl::StrCat(
        "partition into ", partition.parts, " by ", absl::StrJoin(Picked(partition.keys, names_), ", "),
        partition.domain.known() ? ", dense" : "", partition.counts_nulls ? " and count NULLs" : "");
  }

  const PhysicalPlan& plan_;
  const ColumnNames& column_names_;
  std::vector<PipelineText> pipelines_;
  uint32_t number_ = 0;      // the pipeline being printed
  Names names_;              // of the flow at the current place
  std::vector<Names> left_;  // by pipeline: of its sink's output
  // By pipeline of the plan:
  std::vector<std::vector<std::string>> calls_;  // of its aggregation
  std::vector<Names> fed_;                       // the first feeder's names
};

}  // namespace

std::vector<PipelineText> PrintPipelines(const PhysicalPlan& plan, const ColumnNames& names) {
  return PlanPrinter(plan, names).Run();
}

std::vector<std::string> Print(const PhysicalPlan& plan, const ColumnNames& names) {
  std::vector<std::string> lines;
  const std::vector<PipelineText> pipelines = PrintPipelines(plan, names);
  for (size_t p = 0; p < pipelines.size(); ++p) {
    lines.push_back(absl::StrCat("P", p, " ", pipelines[p].source, pipelines[p].place));
    for (const std::string& step : pipelines[p].steps) lines.push_back("   " + step);
    lines.push_back("   " + pipelines[p].sink);
  }
  return lines;
}

}  // namespace nam::plan
