#include "plan/codec.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/check.h"
#include "plan/expression_codec.h"
#include "plan/plan_error.h"
#include "types/wire.h"

namespace nam::plan {
namespace {

// ─── To messages

template <typename Numbers>
void Put(const std::vector<uint32_t>& from, Numbers* to) {
  to->Add(from.begin(), from.end());
}

template <typename Messages>
void PutAll(const std::vector<Expr>& from, Messages* to) {
  for (const Expr& expr : from) *to->Add() = ToProto(expr);
}

void Put(const TableScan& scan, proto::TableScan* out) {
  out->set_table(scan.table);
  Put(scan.columns, out->mutable_columns());
  *out->mutable_slots() = ToProto(scan.slots);
  PutAll(scan.filters, out->mutable_filters());
  Put(scan.output, out->mutable_output());
}

void Put(const BlockScan& scan, proto::SourceNode* out) {
  Put(scan, out->mutable_block_scan()->mutable_scan());
  out->mutable_block_scan()->set_co_partitioned_key(scan.co_partitioned_key);
}

void Put(const RecordScan& scan, proto::SourceNode* out) {
  proto::RecordScan& to = *out->mutable_record_scan();
  Put(scan, to.mutable_scan());
  to.set_snapshot(scan.snapshot);
  to.mutable_range_low()->Add(scan.range_low.begin(), scan.range_low.end());
  to.mutable_range_high()->Add(scan.range_high.begin(), scan.range_high.end());
}

void Put(const ValuesSource& values, proto::SourceNode* out) {
  proto::ValuesSource& to = *out->mutable_values();
  for (const std::vector<Value>& row : values.rows) {
    proto::ValuesRow& cells = *to.add_rows();
    for (const Value& value : row) *cells.add_values() = nam::ToProto(value);
  }
}

void Put(const FileSource& source, proto::SourceNode* out) {
  proto::FileSource& to = *out->mutable_files();
  to.set_files(source.files);
  to.set_name(source.name);
  to.mutable_columns()->Add(source.columns.begin(), source.columns.end());
  to.mutable_column_names()->Add(source.column_names.begin(), source.column_names.end());
}

void Put(const PageSource& pages, proto::SourceNode* out) {
  out->mutable_pages()->set_pipeline(pages.pipeline);
  out->mutable_pages()->set_in_order(pages.in_order);
}

void Put(const FrameBound& bound, proto::FrameBound* out) {
  out->set_kind(static_cast<uint32_t>(bound.kind));
  if (bound.offset != 0) *out->mutable_offset() = ToProto(bound.offset);
}

void Put(const WindowSource& window, proto::SourceNode* out) {
  proto::WindowSource& to = *out->mutable_window();
  to.set_pipeline(window.pipeline);
  to.set_partition_keys(window.partition_keys);
  to.set_order_keys(window.order_keys);
  for (const WindowCall& call : window.calls) {
    proto::WindowCall& into = *to.add_calls();
    into.set_function(static_cast<uint32_t>(call.function));
    into.set_aggregate(static_cast<uint32_t>(call.aggregate));
    Put(call.arguments, into.mutable_arguments());
    into.set_frame_unit(static_cast<uint32_t>(call.frame.unit));
    Put(call.frame.start, into.mutable_frame_start());
    Put(call.frame.end, into.mutable_frame_end());
    into.set_frame_exclusion(static_cast<uint32_t>(call.frame.exclusion));
    *into.mutable_type() = nam::ToProto(call.type);
  }
}

void PutGroups(const AggregateSink& sink, proto::AggregateSink& to) {
  PutAll(sink.group_by, to.mutable_group_by());
  for (const Aggregate& aggregate : sink.aggregates) {
    proto::AggregateCall& call = *to.add_aggregates();
    call.set_function(static_cast<uint32_t>(aggregate.function));
    if (ArgumentsOf(aggregate.function) > 0) *call.mutable_argument() = ToProto(aggregate.argument);
    if (ArgumentsOf(aggregate.function) > 1) *call.mutable_second() = ToProto(aggregate.second);
    *call.mutable_type() = nam::ToProto(aggregate.type);
    call.set_distinct(aggregate.distinct);
  }
  to.set_phase(static_cast<uint32_t>(sink.phase));
  Put(sink.totals, to.mutable_totals());
  to.set_parts(sink.parts);
}

void Put(const PartitionSource& source, proto::SourceNode* out) {
  out->mutable_partition()->set_pipeline(source.pipeline);
  if (source.merge.has_value()) PutGroups(*source.merge, *out->mutable_partition()->mutable_merge());
}

void Put(const BuildSink& build, proto::BuildSink& to) {
  PutAll(build.keys, to.mutable_keys());
  Put(build.payload, to.mutable_payload());
  to.set_unique(build.unique);
}

void Put(const ProbeStep& probe, proto::ProbeStep& to) {
  to.set_build(probe.build);
  to.set_kind(static_cast<uint32_t>(probe.kind));
  PutAll(probe.keys, to.mutable_keys());
  Put(probe.keep, to.mutable_keep());
  Put(probe.fetch, to.mutable_fetch());
  PutAll(probe.residuals, to.mutable_residuals());
  to.set_null_aware(probe.null_aware);
  PutAll(probe.compared, to.mutable_compared());
}

void Put(const JoinSource& join, proto::SourceNode* out) {
  out->mutable_join()->set_probed(join.probed);
  Put(join.build, *out->mutable_join()->mutable_build());
  Put(join.probe, *out->mutable_join()->mutable_probe());
}

void Put(const ExchangeReceive& receive, proto::SourceNode* out) {
  out->mutable_receive()->set_exchange(receive.exchange);
}

void Put(const FilterStep& filter, proto::StepNode* out) {
  PutAll(filter.conditions, out->mutable_filter()->mutable_conditions());
}

void Put(const ProjectStep& project, proto::StepNode* out) {
  PutAll(project.outputs, out->mutable_project()->mutable_outputs());
}

void Put(const ProbeStep& probe, proto::StepNode* out) {
  Put(probe, *out->mutable_probe());
}

void Put(const LimitStep& limit, proto::StepNode* out) {
  out->mutable_limit()->set_rows(limit.rows);
  out->mutable_limit()->set_offset(limit.offset);
  Put(limit.ties, out->mutable_limit()->mutable_ties());
}

void Put(const ExpandStep& expand, proto::StepNode* out) {
  Put(expand.keys, out->mutable_expand()->mutable_keys());
  for (const std::vector<uint32_t>& set : expand.sets)
    Put(set, out->mutable_expand()->add_sets()->mutable_keys());
}

void Put(const RepeatStep& repeat, proto::StepNode* out) {
  out->mutable_repeat()->set_times(repeat.times);
}

void Put(const SeriesStep& series, proto::StepNode* out) {
  *out->mutable_series()->mutable_first() = ToProto(series.first);
  *out->mutable_series()->mutable_last() = ToProto(series.last);
  *out->mutable_series()->mutable_step() = ToProto(series.step);
}

void Put(const BuildSink& build, proto::SinkNode* out) {
  Put(build, *out->mutable_build());
}

void Put(const AggregateSink& sink, proto::SinkNode* out) {
  PutGroups(sink, *out->mutable_aggregate());
}

template <typename Orders>
void Put(const std::vector<Order>& from, Orders* to) {
  for (const Order& order : from) {
    proto::SlotOrder& by = *to->Add();
    by.set_slot(order.slot);
    by.set_descending(order.descending);
    by.set_nulls_first(order.nulls_first);
  }
}

void Put(const ResultSink& result, proto::SinkNode* out) {
  Put(result.order, out->mutable_result()->mutable_order());
  out->mutable_result()->set_limit(result.limit);
  out->mutable_result()->set_runs(static_cast<uint32_t>(result.runs));
}

void Put(const SortSink& sort, proto::SinkNode* out) {
  Put(sort.order, out->mutable_sort()->mutable_order());
  out->mutable_sort()->set_limit(sort.limit);
  out->mutable_sort()->set_offset(sort.offset);
  out->mutable_sort()->set_runs(static_cast<uint32_t>(sort.runs));
}

void Put(const FeedSink& feed, proto::SinkNode* out) {
  out->mutable_feed()->set_pipeline(feed.pipeline);
}

void Put(const ExchangeSend& send, proto::SinkNode* out) {
  out->mutable_send()->set_exchange(send.exchange);
  Put(send.keys, out->mutable_send()->mutable_keys());
  if (send.filtered_by.has_value()) out->mutable_send()->set_filtered_by(*send.filtered_by);
}

void Put(const PartitionSink& partition, proto::SinkNode* out) {
  Put(partition.keys, out->mutable_partition()->mutable_keys());
  out->mutable_partition()->set_parts(partition.parts);
  out->mutable_partition()->set_counts_nulls(partition.counts_nulls);
  out->mutable_partition()->set_domain_low(partition.domain.low);
  out->mutable_partition()->set_domain_bits(partition.domain.bits);
}

void Put(const Pipeline& pipeline, proto::Pipeline* out) {
  std::visit([&](const auto& source) { Put(source, out->mutable_source()); }, pipeline.source);
  for (const StepNode& node : pipeline.steps) {
    std::visit([&](const auto& step) { Put(step, out->add_steps()); }, node);
  }
  std::visit([&](const auto& sink) { Put(sink, out->mutable_sink()); }, pipeline.sink);
  for (const Schema& schema : pipeline.schemas) *out->add_schemas() = ToProto(schema);
  for (const Estimate& estimate : pipeline.estimates) {
    proto::Estimate& to = *out->add_estimates();
    to.set_rows(estimate.rows);
    to.set_selectivity(estimate.selectivity);
  }
  Put(pipeline.after, out->mutable_after());
  out->set_stage(pipeline.stage);
}

// ─── From messages

template <typename Numbers>
std::vector<uint32_t> NumbersOf(const Numbers& from) {
  return {from.begin(), from.end()};
}

template <typename Texts>
std::vector<std::string> TextsOf(const Texts& from) {
  return {from.begin(), from.end()};
}

template <typename Messages>
absl::Status Decode(const Messages& from, std::vector<Expr>& to) {
  for (const proto::Expression& expression : from) {
    NAM_ASSIGN_OR_RETURN(Expr expr, FromProto(expression));
    to.push_back(std::move(expr));
  }
  return absl::OkStatus();
}

/// The enum's value of a number, if there is one up to `last`.
template <typename Enum>
absl::Status Decode(uint32_t from, Enum last, Enum& to) {
  if (from > static_cast<uint32_t>(last)) return BadPlan("a number that names nothing");
  to = static_cast<Enum>(from);
  return absl::OkStatus();
}

absl::Status Decode(const proto::TableScan& from, TableScan& to) {
  to.table = from.table();
  to.columns = NumbersOf(from.columns());
  NAM_ASSIGN_OR_RETURN(to.slots, FromProto(from.slots()));
  NAM_RETURN_IF_ERROR(Decode(from.filters(), to.filters));
  to.output = NumbersOf(from.output());
  return absl::OkStatus();
}

absl::Status Decode(const proto::ValuesSource& from, ValuesSource& to) {
  for (const proto::ValuesRow& cells : from.rows()) {
    std::vector<Value>& row = to.rows.emplace_back();
    for (const proto::Value& cell : cells.values()) {
      NAM_ASSIGN_OR_RETURN(Value value, ValueOf(cell));
      row.push_back(std::move(value));
    }
  }
  return absl::OkStatus();
}

absl::Status Decode(const proto::FrameBound& from, FrameBound& to) {
  if (from.has_offset()) to.offset = NumberOf(from.offset());
  return Decode(from.kind(), FrameBound::Kind::kUnboundedFollowing, to.kind);
}

absl::Status Decode(const proto::WindowSource& from, WindowSource& to) {
  to.pipeline = from.pipeline();
  to.partition_keys = from.partition_keys();
  to.order_keys = from.order_keys();
  for (const proto::WindowCall& call : from.calls()) {
    WindowCall& into = to.calls.emplace_back();
    NAM_RETURN_IF_ERROR(Decode(call.function(), WindowFunction::kNthValue, into.function));
    NAM_RETURN_IF_ERROR(Decode(call.aggregate(), kLastAggregate, into.aggregate));
    into.arguments = NumbersOf(call.arguments());
    NAM_RETURN_IF_ERROR(Decode(call.frame_unit(), WindowFrame::Unit::kGroups, into.frame.unit));
    NAM_RETURN_IF_ERROR(Decode(call.frame_start(), into.frame.start));
    NAM_RETURN_IF_ERROR(Decode(call.frame_end(), into.frame.end));
    NAM_RETURN_IF_ERROR(Decode(call.frame_exclusion(), WindowFrame::Exclusion::kTies, into.frame.exclusion));
    NAM_ASSIGN_OR_RETURN(into.type, TypeOf(call.type()));
  }
  return absl::OkStatus();
}

absl::Status Decode(const proto::AggregateSink& from, AggregateSink& to) {
  NAM_RETURN_IF_ERROR(Decode(from.group_by(), to.group_by));
  for (const proto::AggregateCall& call : from.aggregates()) {
    Aggregate& aggregate = to.aggregates.emplace_back();
    NAM_RETURN_IF_ERROR(Decode(call.function(), kLastAggregate, aggregate.function));
    NAM_ASSIGN_OR_RETURN(aggregate.type, TypeOf(call.type()));
    aggregate.distinct = call.distinct();
    if (ArgumentsOf(aggregate.function) > 0) {
      NAM_ASSIGN_OR_RETURN(aggregate.argument, FromProto(call.argument()));
    }
    if (ArgumentsOf(aggregate.function) > 1) {
      NAM_ASSIGN_OR_RETURN(aggregate.second, FromProto(call.second()));
    }
  }
  to.totals = NumbersOf(from.totals());
  to.parts = from.parts();
  return Decode(from.phase(), AggregateSink::Phase::kWhole, to.phase);
}

absl::Status Decode(const proto::ProbeStep& from, ProbeStep& to) {
  to.build = from.build();
  NAM_RETURN_IF_ERROR(Decode(from.kind(), JoinKind::kSingle, to.kind));
  NAM_RETURN_IF_ERROR(Decode(from.keys(), to.keys));
  to.keep = NumbersOf(from.keep());
  to.fetch = NumbersOf(from.fetch());
  to.null_aware = from.null_aware();
  NAM_RETURN_IF_ERROR(Decode(from.compared(), to.compared));
  return Decode(from.residuals(), to.residuals);
}

absl::Status Decode(const proto::BuildSink& from, BuildSink& to) {
  to.payload = NumbersOf(from.payload());
  to.unique = from.unique();
  return Decode(from.keys(), to.keys);
}

absl::Status Decode(const proto::SourceNode& from, SourceNode& to) {
  switch (from.node_case()) {
    case proto::SourceNode::kBlockScan:
      to.emplace<BlockScan>().co_partitioned_key = from.block_scan().co_partitioned_key();
      return Decode(from.block_scan().scan(), std::get<BlockScan>(to));
    case proto::SourceNode::kRecordScan: {
      RecordScan& scan = to.emplace<RecordScan>();
      scan.snapshot = from.record_scan().snapshot();
      scan.range_low = TextsOf(from.record_scan().range_low());
      scan.range_high = TextsOf(from.record_scan().range_high());
      return Decode(from.record_scan().scan(), scan);
    }
    case proto::SourceNode::kValues:
      return Decode(from.values(), to.emplace<ValuesSource>());
    case proto::SourceNode::kFiles:
      to = FileSource{from.files().files(), from.files().name(), NumbersOf(from.files().columns()),
                      TextsOf(from.files().column_names())};
      return absl::OkStatus();
    case proto::SourceNode::kPages:
      to = PageSource{from.pages().pipeline(), from.pages().in_order()};
      return absl::OkStatus();
    case proto::SourceNode::kWindow:
      return Decode(from.window(), to.emplace<WindowSource>());
    case proto::SourceNode::kReceive:
      to.emplace<ExchangeReceive>().exchange = from.receive().exchange();
      return absl::OkStatus();
    case proto::SourceNode::kPartition: {
      PartitionSource& source = to.emplace<PartitionSource>();
      source.pipeline = from.partition().pipeline();
      if (!from.partition().has_merge()) return absl::OkStatus();
      return Decode(from.partition().merge(), source.merge.emplace());
    }
    case proto::SourceNode::kJoin: {
      JoinSource& join = to.emplace<JoinSource>();
      join.probed = from.join().probed();
      NAM_RETURN_IF_ERROR(Decode(from.join().build(), join.build));
      return Decode(from.join().probe(), join.probe);
    }
    case proto::SourceNode::NODE_NOT_SET:
      break;
  }
  return BadPlan("a pipeline without a source");
}

absl::Status Decode(const proto::StepNode& from, StepNode& to) {
  switch (from.node_case()) {
    case proto::StepNode::kFilter:
      return Decode(from.filter().conditions(), to.emplace<FilterStep>().conditions);
    case proto::StepNode::kProject:
      return Decode(from.project().outputs(), to.emplace<ProjectStep>().outputs);
    case proto::StepNode::kProbe:
      return Decode(from.probe(), to.emplace<ProbeStep>());
    case proto::StepNode::kLimit:
      to = LimitStep{.rows = from.limit().rows(),
                     .offset = from.limit().offset(),
                     .ties = NumbersOf(from.limit().ties())};
      return absl::OkStatus();
    case proto::StepNode::kExpand: {
      ExpandStep& expand = to.emplace<ExpandStep>();
      expand.keys = NumbersOf(from.expand().keys());
      for (const proto::GroupingSet& set : from.expand().sets()) expand.sets.push_back(NumbersOf(set.keys()));
      return absl::OkStatus();
    }
    case proto::StepNode::kRepeat:
      to.emplace<RepeatStep>().times = from.repeat().times();
      return absl::OkStatus();
    case proto::StepNode::kSeries: {
      SeriesStep& series = to.emplace<SeriesStep>();
      NAM_ASSIGN_OR_RETURN(series.first, FromProto(from.series().first()));
      NAM_ASSIGN_OR_RETURN(series.last, FromProto(from.series().last()));
      NAM_ASSIGN_OR_RETURN(series.step, FromProto(from.series().step()));
      return absl::OkStatus();
    }
    case proto::StepNode::NODE_NOT_SET:
      break;
  }
  return BadPlan("a step that does nothing");
}

template <typename Orders>
std::vector<Order> OrdersOf(const Orders& from) {
  std::vector<Order> out;
  for (const proto::SlotOrder& by : from) out.push_back({by.slot(), by.descending(), by.nulls_first()});
  return out;
}

absl::Status Decode(const proto::SinkNode& from, SinkNode& to) {
  switch (from.node_case()) {
    case proto::SinkNode::kBuild:
      return Decode(from.build(), to.emplace<BuildSink>());
    case proto::SinkNode::kAggregate:
      return Decode(from.aggregate(), to.emplace<AggregateSink>());
    case proto::SinkNode::kResult: {
      ResultSink& result = to.emplace<ResultSink>();
      result.order = OrdersOf(from.result().order());
      result.limit = from.result().limit();
      return Decode(from.result().runs(), Runs::kAlways, result.runs);
    }
    case proto::SinkNode::kSend: {
      ExchangeSend send{from.send().exchange(), NumbersOf(from.send().keys())};
      if (from.send().has_filtered_by()) send.filtered_by = from.send().filtered_by();
      to = std::move(send);
      return absl::OkStatus();
    }
    case proto::SinkNode::kPartition:
      to = PartitionSink{NumbersOf(from.partition().keys()),
                         from.partition().parts(),
                         from.partition().counts_nulls(),
                         {from.partition().domain_low(), from.partition().domain_bits()}};
      return absl::OkStatus();
    case proto::SinkNode::kSort: {
      SortSink& sort = to.emplace<SortSink>();
      sort.order = OrdersOf(from.sort().order());
      sort.limit = from.sort().limit();
      sort.offset = from.sort().offset();
      return Decode(from.sort().runs(), Runs::kAlways, sort.runs);
    }
    case proto::SinkNode::kFeed:
      to.emplace<FeedSink>().pipeline = from.feed().pipeline();
      return absl::OkStatus();
    case proto::SinkNode::NODE_NOT_SET:
      break;
  }
  return BadPlan("a pipeline without a sink");
}

absl::Status Decode(const proto::Pipeline& from, Pipeline& to) {
  NAM_RETURN_IF_ERROR(Decode(from.source(), to.source));
  for (const proto::StepNode& step : from.steps()) {
    NAM_RETURN_IF_ERROR(Decode(step, to.steps.emplace_back()));
  }
  NAM_RETURN_IF_ERROR(Decode(from.sink(), to.sink));
  for (const proto::Schema& schema : from.schemas()) {
    NAM_ASSIGN_OR_RETURN(Schema slots, FromProto(schema));
    to.schemas.push_back(std::move(slots));
  }
  for (const proto::Estimate& estimate : from.estimates())
    to.estimates.push_back({estimate.rows(), estimate.selectivity()});
  to.after = NumbersOf(from.after());
  to.stage = from.stage();
  return absl::OkStatus();
}

absl::Status Decode(const proto::Stage& from, Stage& to) {
  to.claimed = from.claimed();
  NAM_RETURN_IF_ERROR(Decode(from.result().kind(), Distribution::Kind::kPartitioned, to.result.kind));
  NAM_RETURN_IF_ERROR(Decode(from.result().function(), Distribution::Function::kHash, to.result.function));
  to.result.parts = from.result().parts();
  to.result.columns = NumbersOf(from.result().columns());
  return Decode(from.site(), Stage::Site::kSession, to.site);
}

}  // namespace

proto::PhysicalPlan ToProto(const PhysicalPlan& plan) {
  proto::PhysicalPlan out;
  for (const TableRef& table : plan.tables) {
    proto::TableRef& to = *out.add_tables();
    to.set_name(table.name);
    to.set_allocation(table.allocation);
    to.set_records(table.records);
  }
  for (const Pipeline& pipeline : plan.pipelines) Put(pipeline, out.add_pipelines());
  for (const Stage& stage : plan.stages) {
    proto::Stage& to = *out.add_stages();
    to.set_claimed(stage.claimed);
    to.mutable_result()->set_kind(static_cast<uint32_t>(stage.result.kind));
    to.mutable_result()->set_function(static_cast<uint32_t>(stage.result.function));
    to.mutable_result()->set_parts(stage.result.parts);
    Put(stage.result.columns, to.mutable_result()->mutable_columns());
    to.set_site(static_cast<uint32_t>(stage.site));
  }
  return out;
}

absl::StatusOr<PhysicalPlan> FromProto(const proto::PhysicalPlan& plan) {
  PhysicalPlan out;
  for (const proto::TableRef& table : plan.tables())
    out.tables.push_back({table.name(), table.allocation(), table.records()});
  for (const proto::Pipeline& pipeline : plan.pipelines()) {
    NAM_RETURN_IF_ERROR(Decode(pipeline, out.pipelines.emplace_back()));
  }
  for (const proto::Stage& stage : plan.stages()) {
    NAM_RETURN_IF_ERROR(Decode(stage, out.stages.emplace_back()));
  }
  NAM_RETURN_IF_ERROR(Check(out));
  return out;
}

}  // namespace nam::plan
