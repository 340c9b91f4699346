#include "computeserver/sink.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "computeserver/group_table.h"
#include "computeserver/vector_expression.h"
#include "execution/partial_result.h"
#include "execution/row_order.h"
#include "plan/aggregate.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

using plan::AggregateFunction;

/// One aggregate over all groups, by columns.
class Aggregator {
 public:
  Aggregator(const plan::Aggregate& aggregate, const ColumnSpace& space) : aggregate_(aggregate) {
    if (aggregate.function != AggregateFunction::kCountRows) argument_ = Compile(aggregate.argument, space);
  }

  absl::Status Consume(const Batch& batch, const uint32_t* groups, uint32_t group_count) {
    Grow(group_count);
    if (!argument_) {
      for (uint32_t i = 0; i < batch.size; ++i) ++counts_[groups[i]];
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(const Vector* values, argument_->Evaluate(batch));
    switch (aggregate_.function) {
      case AggregateFunction::kSum:
      case AggregateFunction::kAverage:
        return Sum(*values, groups, batch.size);
      case AggregateFunction::kMin:
      case AggregateFunction::kMax:
        Best(*values, groups, batch.size);
        return absl::OkStatus();
      case AggregateFunction::kCountDistinct:
        Distinct(*values, groups, batch.size);
        return absl::OkStatus();
      default:
        for (uint32_t i = 0; i < batch.size; ++i) counts_[groups[i]] += !values->null(i);
        return absl::OkStatus();
    }
  }

  absl::Status Merge(const Aggregator& other, const std::vector<uint32_t>& group_of, uint32_t group_count) {
    Grow(group_count);
    for (uint32_t g = 0; g < group_of.size(); ++g) {
      const uint32_t mine = group_of[g];
      counts_[mine] += other.counts_[g];
      if (g < other.sums_.size() && __builtin_add_overflow(sums_[mine], other.sums_[g], &sums_[mine]))
        return SumOutOfRange();
      if (g < other.best_.size()) Improve(mine, other.best_[g]);
      if (g < other.distinct_.size()) {
        for (const std::string& value : other.distinct_[g]) AddDistinct(mine, value);
      }
    }
    return absl::OkStatus();
  }

  void Store(uint32_t group, std::string& out) const {
    execution::PutU64(out, static_cast<uint64_t>(counts_[group]));
    execution::PutNumber(out, sums_.empty() ? 0 : sums_[group]);
    if (!best_.empty()) execution::PutValue(out, best_[group]);
    if (distinct_.empty()) return;
    execution::PutU64(out, distinct_[group].size());
    // In one order, whatever the hash: equal results are equal bytes.
    std::vector<std::string_view> values(distinct_[group].begin(), distinct_[group].end());
    std::sort(values.begin(), values.end());
    for (const std::string_view value : values) out += value;
  }

  /// Every group has its state from now on.
  void Grow(uint32_t groups) {
    if (counts_.size() >= groups) return;
    counts_.resize(groups);
    switch (aggregate_.function) {
      case AggregateFunction::kSum:
      case AggregateFunction::kAverage:
        sums_.resize(groups);
        break;
      case AggregateFunction::kMin:
      case AggregateFunction::kMax:
        best_.resize(groups, Value::Null(aggregate_.type));
        break;
      case AggregateFunction::kCountDistinct:
        distinct_.resize(groups);
        break;
      default:
        break;
    }
  }
  uint64_t bytes() const {
    return counts_.size() * 8 + sums_.size() * 16 + best_.size() * sizeof(Value) + distinct_bytes_;
  }

 private:
  absl::Status Sum(const Vector& values, const uint32_t* groups, uint32_t n) {
    if (values.kind == Vector::Kind::kNarrow) {  // 2^64 of them fit 128 bits
      const int64_t* numbers = values.narrow.data();
      for (uint32_t i = 0; i < n; ++i) {
        if (values.null(i)) continue;
        sums_[groups[i]] += numbers[i];
        ++counts_[groups[i]];
      }
      return absl::OkStatus();
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (values.null(i)) continue;
      __int128& sum = sums_[groups[i]];
      if (__builtin_add_overflow(sum, values.number(i), &sum)) return SumOutOfRange();
      ++counts_[groups[i]];
    }
    return absl::OkStatus();
  }

  void Improve(uint32_t group, const Value& value) {
    if (value.null) return;
    Value& best = best_[group];
    const bool least = aggregate_.function == AggregateFunction::kMin;
    if (best.null || (least ? Compare(value, best) < 0 : Compare(value, best) > 0)) best = value;
  }

  void Best(const Vector& values, const uint32_t* groups, uint32_t n) {
    const bool least = aggregate_.function == AggregateFunction::kMin;
    for (uint32_t i = 0; i < n; ++i) {
      if (values.null(i)) continue;
      const Value& best = best_[groups[i]];
      ++counts_[groups[i]];
      // Look before building a Value: most tuples do not improve anything.
      if (!best.null && values.kind != Vector::Kind::kText) {
        const __int128 number = values.number(i);
        if (least ? number >= best.number : number <= best.number) continue;
      } else if (!best.null) {
        const int order = values.text[i].compare(best.text);
        if (least ? order >= 0 : order <= 0) continue;
      }
      best_[groups[i]] = ValueAt(values, i, aggregate_.type);
    }
  }

  void AddDistinct(uint32_t group, const std::string& stored) {
    if (distinct_[group].insert(stored).second) distinct_bytes_ += stored.size() + 48;
  }

  void Distinct(const Vector& values, const uint32_t* groups, uint32_t n) {
    std::string stored;
    for (uint32_t i = 0; i < n; ++i) {
      if (values.null(i)) continue;
      stored.clear();
      execution::PutValue(stored, ValueAt(values, i, aggregate_.argument.type));
      AddDistinct(groups[i], stored);
    }
  }

  const plan::Aggregate aggregate_;
  std::unique_ptr<VectorExpression> argument_;
  std::vector<int64_t> counts_;  // by group; of values that are not null, or of rows
  std::vector<__int128> sums_;
  std::vector<Value> best_;
  std::vector<absl::flat_hash_set<std::string>> distinct_;
  uint64_t distinct_bytes_ = 0;
};

class AggregateSink final : public Sink {
 public:
  AggregateSink(const optimizer::Plan& plan, const ColumnSpace& space, uint64_t bytes_max)
      : groups_(plan.group_by, space), group_of_(kBatchRows), bytes_max_(bytes_max) {
    for (const plan::Aggregate& aggregate : plan.aggregates) aggregators_.emplace_back(aggregate, space);
  }

  absl::Status Consume(const Batch& batch) override {
    NAM_RETURN_IF_ERROR(groups_.Assign(batch, group_of_.data()));
    uint64_t bytes = groups_.size() * uint64_t{32};
    for (Aggregator& aggregator : aggregators_) {
      NAM_RETURN_IF_ERROR(aggregator.Consume(batch, group_of_.data(), groups_.size()));
      bytes += aggregator.bytes();
    }
    return bytes > bytes_max_ ? execution::ResultTooLarge(bytes_max_) : absl::OkStatus();
  }

  absl::Status Merge(Sink& sink) override {
    auto& other = static_cast<AggregateSink&>(sink);
    const std::vector<uint32_t> group_of = groups_.Adopt(other.groups_);
    for (size_t a = 0; a < aggregators_.size(); ++a) {
      NAM_RETURN_IF_ERROR(aggregators_[a].Merge(other.aggregators_[a], group_of, groups_.size()));
    }
    return absl::OkStatus();
  }

  absl::Status Store(std::string& out) override {
    execution::PutU32(out, execution::kPartialMagic);
    execution::PutU32(out, static_cast<uint32_t>(execution::PartialKind::kGroups));
    execution::PutU64(out, groups_.size());
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      out += groups_.Stored(g);
      for (const Aggregator& aggregator : aggregators_) aggregator.Store(g, out);
    }
    return absl::OkStatus();
  }

 private:
  GroupTable groups_;
  std::vector<Aggregator> aggregators_;
  std::vector<uint32_t> group_of_;
  const uint64_t bytes_max_;
};

/// Rows as they are: all of them, any `limit` of them, or the first `limit` in an order.
class RowSink final : public Sink {
 public:
  RowSink(const optimizer::Plan& plan, const ColumnSpace& space, uint64_t bytes_max)
      : order_(plan.order), limit_(plan.row_limit), bytes_max_(bytes_max) {
    for (const plan::Expr& expr : plan.output) {
      outputs_.push_back(Compile(expr, space));
      types_.push_back(expr.type);
    }
  }

  absl::Status Consume(const Batch& batch) override {
    std::vector<const Vector*> values;
    for (auto& output : outputs_) {
      NAM_ASSIGN_OR_RETURN(const Vector* vector, output->Evaluate(batch));
      values.push_back(vector);
    }
    for (uint32_t i = 0; i < batch.size && !Satisfied(); ++i) {
      std::vector<Value> row;
      for (size_t c = 0; c < values.size(); ++c) {
        row.push_back(ValueAt(*values[c], i, types_[c]));
        bytes_ += execution::BytesOf(row.back());
      }
      rows_.push_back(std::move(row));
    }
    return Prune();
  }

  absl::Status Merge(Sink& sink) override {
    auto& other = static_cast<RowSink&>(sink);
    for (std::vector<Value>& row : other.rows_) {
      if (Satisfied()) break;
      rows_.push_back(std::move(row));
    }
    bytes_ += other.bytes_;
    return Prune();
  }

  absl::Status Store(std::string& out) override {
    execution::PutU32(out, execution::kPartialMagic);
    execution::PutU32(out, static_cast<uint32_t>(execution::PartialKind::kRows));
    execution::PutU64(out, rows_.size());
    for (const auto& row : rows_) {
      for (const Value& value : row) execution::PutValue(out, value);
    }
    return absl::OkStatus();
  }

  bool Satisfied() const override {
    return order_.empty() && limit_ >= 0 && rows_.size() >= static_cast<uint64_t>(limit_);
  }

 private:
  absl::Status Prune() {
    execution::PruneRows(order_, limit_, rows_, bytes_);
    return bytes_ > bytes_max_ ? execution::ResultTooLarge(bytes_max_) : absl::OkStatus();
  }

  std::vector<std::unique_ptr<VectorExpression>> outputs_;
  std::vector<Type> types_;
  const std::vector<plan::OrderKey> order_;
  const int64_t limit_;
  const uint64_t bytes_max_;
  std::vector<std::vector<Value>> rows_;
  uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Sink> MakeSink(const optimizer::Plan& plan, const ColumnSpace& space, uint64_t bytes_max) {
  if (plan.aggregated) return std::make_unique<AggregateSink>(plan, space, bytes_max);
  return std::make_unique<RowSink>(plan, space, bytes_max);
}

}  // namespace nam::computeserver
