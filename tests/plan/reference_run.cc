#include "tests/plan/reference_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/slot_of.h"
#include "types/sql_error.h"

namespace nam::plan::testing {
namespace {

absl::StatusOr<Value> Eval(const Expr& expr, const Row& row) {
  return Evaluate(expr, [&](const Expr& e) {
    const Value& value = row.at(static_cast<size_t>(e.column.column));
    if (!(value.type == e.type)) throw std::logic_error("a column of another type than its slot");
    return value;
  });
}

absl::StatusOr<bool> AllTrue(const std::vector<Expr>& conditions, const Row& row) {
  for (const Expr& condition : conditions) {
    NAM_ASSIGN_OR_RETURN(const Value value, Eval(condition, row));
    if (value.null || value.number == 0) return false;
  }
  return true;
}

/// The conditions as one, which must not be NULL.
absl::StatusOr<std::optional<bool>> Conjunction(const std::vector<Expr>& conditions, const Row& row) {
  std::optional<bool> all = true;
  for (const Expr& condition : conditions) {
    NAM_ASSIGN_OR_RETURN(const Value value, Eval(condition, row));
    if (!value.null && value.number == 0) return std::optional<bool>(false);
    if (value.null) all = std::nullopt;
  }
  return all;
}

absl::StatusOr<Row> EvalAll(const std::vector<Expr>& exprs, const Row& row) {
  Row out;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Value value, Eval(expr, row));
    value.type = expr.type;
    out.push_back(std::move(value));
  }
  return out;
}

Row Picked(const Row& row, const std::vector<uint32_t>& slots) {
  Row out;
  for (const uint32_t slot : slots) out.push_back(row.at(slot));
  return out;
}

Row Nulls(const Schema& schema, size_t first, size_t count) {
  Row out;
  for (size_t i = 0; i < count; ++i) out.push_back(Value::Null(schema.at(first + i).type));
  return out;
}

void CheckRow(const Row& row, const Schema& schema) {
  if (row.size() != schema.size()) throw std::logic_error("a row of another width than its schema");
  for (size_t i = 0; i < row.size(); ++i) {
    const Bounds& b = schema[i].bounds;
    if (!(row[i].type == schema[i].type)) throw std::logic_error("a value of another type");
    if (row[i].null && !schema[i].nullable) throw std::logic_error("a NULL where there is none");
    if (!row[i].null && b.known && (row[i].number < b.low || row[i].number > b.high))
      throw std::logic_error("a value out of its bounds");
  }
}

class PhysicalRunner {
 public:
  PhysicalRunner(const PhysicalPlan& plan, const TableRows& tables) : plan_(plan), tables_(tables) {}

  absl::StatusOr<std::vector<Rows>> Run() {
    for (const Pipeline& pipeline : plan_.pipelines) {
      NAM_ASSIGN_OR_RETURN(Rows rows, std::visit([&](const auto& source) { return Source(pipeline, source); },
                                                 pipeline.source));
      Expect(rows, pipeline.schemas.at(0));
      for (size_t s = 0; s < pipeline.steps.size(); ++s) {
        const Schema& output = pipeline.schemas.at(s + 1);
        NAM_ASSIGN_OR_RETURN(
            rows, std::visit([&](const auto& step) { return Step(step, rows, output); }, pipeline.steps[s]));
        Expect(rows, output);
      }
      for (Row& row : fed_[sunk_.size()]) rows.push_back(std::move(row));
      Expect(rows, pipeline.schemas.back());
      left_.push_back(std::holds_alternative<AggregateSink>(pipeline.sink) ? Rows() : rows);
      NAM_RETURN_IF_ERROR(Sink(pipeline, std::move(rows)));
    }
    return std::move(sunk_);
  }

 private:
  static void Expect(const Rows& rows, const Schema& schema) {
    for (const Row& row : rows) CheckRow(row, schema);
  }

  absl::StatusOr<Rows> Source(const Pipeline&, const TableScan& scan) const {
    Rows out;
    const auto found = tables_.find(scan.table);
    if (found == tables_.end()) return out;
    for (const Row& stored : found->second) {
      const Row row = Picked(stored, scan.columns);
      CheckRow(row, scan.slots);
      NAM_ASSIGN_OR_RETURN(const bool kept, AllTrue(scan.filters, row));
      if (kept) out.push_back(Picked(row, scan.output));
    }
    return out;
  }
  absl::StatusOr<Rows> Source(const Pipeline& pipeline, const ValuesSource& values) const {
    Rows out = values.rows;
    for (Row& row : out) {
      for (size_t i = 0; i < row.size(); ++i) row[i].type = pipeline.schemas.at(0).at(i).type;
    }
    return out;
  }
  absl::StatusOr<Rows> Source(const Pipeline&, const FileSource&) const {
    return absl::UnimplementedError("no plan of these tests has files");
  }
  absl::StatusOr<Rows> Source(const Pipeline&, const PageSource& pages) const {
    return left_.at(pages.pipeline);
  }
  /// Results of groups are not computed: such a source has no rows.
  absl::StatusOr<Rows> Source(const Pipeline&, const PartitionSource& source) const {
    return source.merge.has_value() ? Rows() : left_.at(source.pipeline);
  }
  absl::StatusOr<Rows> Source(const Pipeline&, const ExchangeReceive& receive) const {
    Rows out;
    for (size_t p = 0; p < left_.size(); ++p) {
      const auto* send = std::get_if<ExchangeSend>(&plan_.pipelines[p].sink);
      if (send != nullptr && send->exchange == receive.exchange)
        out.insert(out.end(), left_[p].begin(), left_[p].end());
    }
    return out;
  }

  /// Checks all that a call names. Results of calls are not computed: such a source has no rows.
  absl::StatusOr<Rows> Source(const Pipeline&, const WindowSource& window) const {
    const auto& sort = std::get<SortSink>(plan_.pipelines.at(window.pipeline).sink);
    for (const Row& row : left_.at(window.pipeline)) {
      for (uint32_t k = 0; k < window.partition_keys + window.order_keys; ++k)
        (void)row.at(sort.order.at(k).slot);
      for (const WindowCall& call : window.calls) (void)Picked(row, call.arguments);
    }
    return Rows();
  }

  absl::StatusOr<Rows> Step(const FilterStep& filter, const Rows& in, const Schema&) const {
    Rows out;
    for (const Row& row : in) {
      NAM_ASSIGN_OR_RETURN(const bool kept, AllTrue(filter.conditions, row));
      if (kept) out.push_back(row);
    }
    return out;
  }
  absl::StatusOr<Rows> Step(const ProjectStep& project, const Rows& in, const Schema&) const {
    Rows out;
    for (const Row& row : in) {
      NAM_ASSIGN_OR_RETURN(Row projected, EvalAll(project.outputs, row));
      out.push_back(std::move(projected));
    }
    return out;
  }
  absl::StatusOr<Rows> Step(const LimitStep& limit, const Rows& in, const Schema&) const {
    const auto size = static_cast<int64_t>(in.size());
    const int64_t first = std::min(limit.offset, size);
    int64_t rows = limit.rows < 0 ? size - first : std::min(limit.rows, size - first);
    if (!limit.ties.empty() && rows > 0) {
      const Row last = Picked(in.at(static_cast<size_t>(first + rows - 1)), limit.ties);
      while (first + rows < size && Alike(last, Picked(in.at(static_cast<size_t>(first + rows)), limit.ties)))
        ++rows;
    }
    return Rows(in.begin() + first, in.begin() + first + rows);
  }

  static bool Alike(const Row& a, const Row& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](const Value& x, const Value& y) {
      return x.null || y.null ? x.null == y.null : Compare(x, y) == 0;
    });
  }

  /// The first numbers of each series: series of a random plan may be very long.
  absl::StatusOr<Rows> Step(const SeriesStep& series, const Rows& in, const Schema&) const {
    constexpr int kMost = 3;
    Rows out;
    for (const Row& row : in) {
      NAM_ASSIGN_OR_RETURN(const Row ends, EvalAll({series.first, series.last, series.step}, row));
      if (ends[0].null || ends[1].null || ends[2].null || ends[2].number == 0) continue;
      Value next = ends[0];
      for (int i = 0; i < kMost; ++i, next.number += ends[2].number) {
        if (ends[2].number < 0 ? next.number < ends[1].number : next.number > ends[1].number) break;
        out.push_back(row);
        out.back().push_back(next);
      }
    }
    return out;
  }

  absl::StatusOr<Rows> Step(const ExpandStep& expand, const Rows& in, const Schema& output) const {
    Rows out;
    for (const Row& row : in) {
      for (size_t s = 0; s < expand.sets.size(); ++s) {
        Row expanded = row;
        for (Value& null : Nulls(output, row.size(), expand.keys.size())) expanded.push_back(std::move(null));
        for (const uint32_t place : expand.sets[s])
          expanded.at(row.size() + place) = row.at(expand.keys.at(place));
        expanded.push_back(Value::Integer(static_cast<int64_t>(s)));
        out.push_back(std::move(expanded));
      }
    }
    return out;
  }
  absl::StatusOr<Rows> Step(const RepeatStep& repeat, const Rows& in, const Schema&) const {
    constexpr __int128 kMost = 3;  // numbers of a random plan may be very large
    Rows out;
    for (const Row& row : in) {
      const Value& times = row.at(repeat.times);
      for (__int128 i = 0; !times.null && i < std::min(times.number, kMost); ++i) out.push_back(row);
    }
    return out;
  }

  /// Whether keys are equal: NULL keys are not.
  static bool Equal(const Row& probe, const std::vector<Expr>& keys, const Row& build) {
    for (size_t k = 0; k < probe.size(); ++k) {
      const Value &a = probe[k], &b = build.at(k);
      if (a.null || b.null) return false;
      if (a.type.kind == TypeKind::kString && IgnoresBlanks(keys[k].type, b.type)) {
        if (WithoutBlanks(a.text) != WithoutBlanks(b.text)) return false;
      } else if (Compare(a, b) != 0) {
        return false;
      }
    }
    return true;
  }

  absl::StatusOr<Rows> Source(const Pipeline& pipeline, const JoinSource& join) const {
    Rows built;
    for (const Row& row : left_.at(join.probe.build)) {
      NAM_ASSIGN_OR_RETURN(Row keyed, EvalAll(join.build.keys, row));
      for (Value& value : Picked(row, join.build.payload)) keyed.push_back(std::move(value));
      built.push_back(std::move(keyed));
    }
    return Probe(join.probe, left_.at(join.probed), built, pipeline.schemas.at(0));
  }

  absl::StatusOr<Rows> Step(const ProbeStep& probe, const Rows& in, const Schema& output) const {
    return Probe(probe, in, sunk_.at(probe.build), output);
  }

  /// `build`: the keys of each row, then the payload.
  static absl::StatusOr<Rows> Probe(const ProbeStep& probe, const Rows& in, const Rows& build,
                                    const Schema& output) {
    const size_t keys = probe.keys.size();
    std::vector<bool> matched(build.size());
    const bool compares = !probe.compared.empty();
    const bool null_key = !compares && std::any_of(build.begin(), build.end(), [&](const Row& row) {
      return std::any_of(row.begin(), row.begin() + static_cast<ptrdiff_t>(keys),
                         [](const Value& value) { return value.null; });
    });
    Rows out;
    for (const Row& row : in) {
      NAM_ASSIGN_OR_RETURN(const Row key, EvalAll(probe.keys, row));
      const Row kept = Picked(row, probe.keep);
      uint32_t partners = 0;
      bool maybe = false;
      for (size_t b = 0; b < build.size(); ++b) {
        if (!Equal(key, probe.keys, build[b])) continue;
        const Row payload(build[b].begin() + static_cast<ptrdiff_t>(keys), build[b].end());
        Row both = kept;
        for (Value& value : Picked(payload, probe.fetch)) both.push_back(value);
        NAM_ASSIGN_OR_RETURN(const bool partner, AllTrue(probe.residuals, both));
        if (!partner) continue;
        if (compares) {
          NAM_ASSIGN_OR_RETURN(const std::optional<bool> same, Conjunction(probe.compared, both));
          maybe = maybe || !same.has_value();
          if (same != true) continue;
        }
        ++partners;
        matched[b] = true;
        if (partners > 1 && probe.kind == JoinKind::kSingle) return UserError("21000", "two partners", -1);
        if (probe.kind <= JoinKind::kFull || probe.kind == JoinKind::kSingle) out.push_back(std::move(both));
      }
      const bool in = probe.null_aware || probe.kind == JoinKind::kNullAwareAnti;
      const bool unknown =
          in && (std::any_of(key.begin(), key.end(), [](const Value& v) { return v.null; }) || null_key);
      AddAlone(probe, kept, partners, compares ? maybe : unknown && !build.empty(), output, out);
    }
    if (probe.kind == JoinKind::kRight || probe.kind == JoinKind::kFull) {
      for (size_t b = 0; b < build.size(); ++b) {
        if (matched[b]) continue;
        Row row = Nulls(output, 0, probe.keep.size());
        const Row payload(build[b].begin() + static_cast<ptrdiff_t>(keys), build[b].end());
        for (Value& value : Picked(payload, probe.fetch)) row.push_back(value);
        out.push_back(std::move(row));
      }
    }
    return out;
  }

  /// What a row yields apart from its partners.
  static void AddAlone(const ProbeStep& probe, const Row& kept, uint32_t partners, bool unknown,
                       const Schema& output, Rows& out) {
    Row row = kept;
    switch (probe.kind) {
      case JoinKind::kLeft:
      case JoinKind::kFull:
      case JoinKind::kSingle:
        for (Value& null : Nulls(output, kept.size(), probe.fetch.size())) row.push_back(null);
        if (partners == 0) out.push_back(std::move(row));
        return;
      case JoinKind::kSemi:
        if (partners > 0) out.push_back(std::move(row));
        return;
      case JoinKind::kAnti:
        if (partners == 0) out.push_back(std::move(row));
        return;
      case JoinKind::kNullAwareAnti:
        if (partners == 0 && !unknown) out.push_back(std::move(row));
        return;
      case JoinKind::kMark:
        row.push_back(partners > 0 ? Value::Bool(true)
                      : unknown    ? Value::Null(Type::Bool())
                                   : Value::Bool(false));
        out.push_back(std::move(row));
        return;
      default:
        return;
    }
  }

  absl::Status Sink(const Pipeline& pipeline, Rows rows) {
    Rows& out = sunk_.emplace_back();
    for (Row& row : rows) {
      if (const auto* build = std::get_if<BuildSink>(&pipeline.sink)) {
        NAM_ASSIGN_OR_RETURN(Row sunk, EvalAll(build->keys, row));
        for (Value& value : Picked(row, build->payload)) sunk.push_back(value);
        out.push_back(std::move(sunk));
      } else if (const auto* sink = std::get_if<AggregateSink>(&pipeline.sink)) {
        NAM_ASSIGN_OR_RETURN(Row sunk, EvalAll(sink->group_by, row));
        for (const Aggregate& aggregate : sink->aggregates) {
          const Expr* const arguments[] = {&aggregate.argument, &aggregate.second};
          for (size_t i = 0; i < ArgumentsOf(aggregate.function); ++i) {
            NAM_ASSIGN_OR_RETURN(Value value, Eval(*arguments[i], row));
            sunk.push_back(std::move(value));
          }
        }
        out.push_back(std::move(sunk));
      } else {
        if (const auto* result = std::get_if<ResultSink>(&pipeline.sink)) {
          for (const Order& order : result->order) (void)row.at(order.slot);
        } else if (const auto* send = std::get_if<ExchangeSend>(&pipeline.sink)) {
          (void)Picked(row, send->keys);
        } else if (const auto* sort = std::get_if<SortSink>(&pipeline.sink)) {
          for (const Order& order : sort->order) (void)row.at(order.slot);
        } else if (const auto* feed = std::get_if<FeedSink>(&pipeline.sink)) {
          fed_[feed->pipeline].push_back(row);
        } else {
          (void)Picked(row, std::get<PartitionSink>(pipeline.sink).keys);
        }
        out.push_back(std::move(row));
      }
    }
    return absl::OkStatus();
  }

  const PhysicalPlan& plan_;
  const TableRows& tables_;
  std::vector<Rows> sunk_;
  std::vector<Rows> left_;
  std::map<size_t, Rows> fed_;  // by pipeline: the rows that others have left for its sink
};

}  // namespace

absl::StatusOr<std::vector<Rows>> Run(const PhysicalPlan& plan, const TableRows& tables) {
  return PhysicalRunner(plan, tables).Run();
}

}  // namespace nam::plan::testing
