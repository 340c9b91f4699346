#include "execution/partial_result.h"

#include <algorithm>

#include "base/status_macros.h"
#include "execution/row_order.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

template <typename T>
void PutRaw(std::string& out, T n) {
  out.append(reinterpret_cast<const char*>(&n), sizeof(n));
}

absl::Status Damaged() {
  return absl::DataLossError("a partial result is damaged");
}

/// Numbers that an engine can have put there; beyond them arithmetic and dates would overflow.
bool Plausible(const Type& type, __int128 number) {
  if (type.kind == TypeKind::kBool) return number == 0 || number == 1;
  const __int128 most =
      type.kind == TypeKind::kDate ? __int128{INT32_MAX} : PowerOfTen(kMaxDecimalDigits) - 1;
  return number >= -most && number <= most;
}

}  // namespace

void PutU32(std::string& out, uint32_t n) {
  PutRaw(out, n);
}
void PutU64(std::string& out, uint64_t n) {
  PutRaw(out, n);
}
void PutNumber(std::string& out, __int128 n) {
  PutRaw(out, n);
}

void PutText(std::string& out, bool null, std::string_view text) {
  out.push_back(null ? 1 : 0);
  if (null) return;
  PutU32(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

void PutNumberValue(std::string& out, bool null, __int128 number) {
  out.push_back(null ? 1 : 0);
  if (!null) PutNumber(out, number);
}

void PutValue(std::string& out, const Value& value) {
  if (value.type.kind == TypeKind::kString) {
    PutText(out, value.null, value.text);
  } else {
    PutNumberValue(out, value.null, value.number);
  }
}

/// Reads forward and never beyond the end.
class PartialMerger::Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  template <typename T>
  bool Get(T& out) {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    std::memcpy(&out, at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Get(const Type& type, Value& out) {
    uint8_t null;
    if (!Get(null) || null > 1) return false;
    out = Value::Null(type);
    out.null = null != 0;
    if (out.null) return true;
    if (type.kind != TypeKind::kString) return Get(out.number) && Plausible(type, out.number);
    uint32_t bytes;
    if (!Get(bytes) || static_cast<size_t>(end_ - at_) < bytes) return false;
    out.text.assign(reinterpret_cast<const char*>(at_), bytes);
    at_ += bytes;
    return true;
  }
  const char* position() const { return reinterpret_cast<const char*>(at_); }
  bool done() const { return at_ == end_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

absl::Status PartialMerger::ReadAggregate(Reader& reader, const plan::Aggregate& aggregate,
                                          Accumulated& into) {
  int64_t count;
  __int128 number;
  if (!reader.Get(count) || !reader.Get(number) || count < 0) return Damaged();
  if (__builtin_add_overflow(into.count, count, &into.count)) return Damaged();
  if (__builtin_add_overflow(into.sum, number, &into.sum)) return SumOutOfRange();
  const bool least = aggregate.function == AggregateFunction::kMin;
  if (least || aggregate.function == AggregateFunction::kMax) {
    Value value;
    if (!reader.Get(aggregate.type, value)) return Damaged();
    if (!value.null &&
        (into.best.null || (least ? Compare(value, into.best) < 0 : Compare(value, into.best) > 0))) {
      into.best = std::move(value);
    }
  } else if (aggregate.function == AggregateFunction::kCountDistinct) {
    uint64_t n;
    if (!reader.Get(n)) return Damaged();
    for (uint64_t i = 0; i < n; ++i) {
      const char* from = reader.position();
      Value value;
      if (!reader.Get(aggregate.argument.type, value)) return Damaged();
      const auto bytes = static_cast<size_t>(reader.position() - from);
      if (into.distinct.emplace(from, bytes).second) bytes_ += sizeof(std::string) + bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status PartialMerger::ReadGroup(Reader& reader) {
  std::vector<Value> keys(types_.size());
  const char* from = reader.position();
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!reader.Get(types_[i], keys[i])) return Damaged();
  }
  const std::string stored(from, static_cast<size_t>(reader.position() - from));
  auto [it, fresh] = group_of_.try_emplace(stored, groups_.size());
  if (fresh) {
    bytes_ += sizeof(MergedGroup) + 2 * stored.size() + keys.size() * sizeof(Value) +
              aggregates_.size() * sizeof(Accumulated);
    MergedGroup& group = groups_.emplace_back();
    group.keys = std::move(keys);
    group.aggregates.resize(aggregates_.size());
  }
  for (size_t i = 0; i < aggregates_.size(); ++i) {
    NAM_RETURN_IF_ERROR(ReadAggregate(reader, aggregates_[i], groups_[it->second].aggregates[i]));
  }
  return absl::OkStatus();
}

absl::Status PartialMerger::Add(std::span<const std::byte> bytes, const std::atomic<bool>* cancel) {
  Reader reader(bytes);
  uint32_t magic, kind;
  uint64_t count;
  if (!reader.Get(magic) || !reader.Get(kind) || !reader.Get(count)) return Damaged();
  if (magic != kPartialMagic || kind != static_cast<uint32_t>(kind_)) return Damaged();
  // An entry has a byte at least, unless there is nothing to it, and then there is one.
  if (count > bytes.size()) return Damaged();
  for (uint64_t i = 0; i < count; ++i) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      return absl::CancelledError("cancelled");
    if (kind_ == PartialKind::kGroups) {
      NAM_RETURN_IF_ERROR(ReadGroup(reader));
      continue;
    }
    std::vector<Value>& row = rows_.emplace_back(types_.size());
    for (size_t c = 0; c < types_.size(); ++c) {
      if (!reader.Get(types_[c], row[c])) return Damaged();
      bytes_ += BytesOf(row[c]);
    }
  }
  return reader.done() ? absl::OkStatus() : Damaged();
}

absl::Status PartialMerger::Bound(const std::vector<plan::OrderKey>& order, int64_t limit,
                                  uint64_t bytes_max) {
  PruneRows(order, limit, rows_, bytes_);
  return bytes_ > bytes_max ? ResultTooLarge(bytes_max) : absl::OkStatus();
}

absl::StatusOr<Value> PartialMerger::Finish(const plan::Aggregate& aggregate, const Accumulated& a) {
  const __int128 most = PowerOfTen(kMaxDecimalDigits) - 1;
  const auto bounded = [&](__int128 n) -> absl::StatusOr<Value> {
    if (n > most || n < -most) return SumOutOfRange();
    Value value;
    value.type = aggregate.type;
    value.null = false;
    value.number = n;
    return value;
  };
  switch (aggregate.function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
      return Value::Integer(a.count);
    case AggregateFunction::kCountDistinct:
      return Value::Integer(static_cast<int64_t>(a.distinct.size()));
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return a.best.null ? Value::Null(aggregate.type) : a.best;
    case AggregateFunction::kSum:
      if (a.count == 0) return Value::Null(aggregate.type);
      return bounded(a.sum);
    case AggregateFunction::kAverage: {
      if (a.count == 0) return Value::Null(aggregate.type);
      const int up = aggregate.type.scale - aggregate.argument.type.scale;
      // Whole part and remainder apart: sum · 10^up itself may need more than 128 bits.
      const __int128 count = a.count;
      __int128 sum = a.sum, whole, rest;
      if (sum < 0 && __builtin_sub_overflow(__int128{0}, a.sum, &sum)) return SumOutOfRange();
      if (up < 0 || __builtin_mul_overflow(sum / count, PowerOfTen(up), &whole) ||
          __builtin_mul_overflow(sum % count, PowerOfTen(up) * 2, &rest)) {
        return SumOutOfRange();
      }
      const __int128 rounded = whole + (rest + count) / (2 * count);  // half away from zero
      return bounded(a.sum < 0 ? -rounded : rounded);
    }
  }
  return absl::InternalError("unknown aggregate");
}

}  // namespace nam::execution
