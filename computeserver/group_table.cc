#include "computeserver/group_table.h"

#include <algorithm>

#include "base/status_macros.h"
#include "execution/partial_result.h"

namespace nam::computeserver {
namespace {

/// Up to so many different numbers the array is small enough to be cleared for every query and thread.
constexpr uint64_t kDirectNumbers = 1 << 17;

}  // namespace

GroupTable::GroupTable(const std::vector<plan::Expr>& keys, const ColumnSpace& space) : space_(space) {
  unsigned __int128 numbers = 1;
  packed_ = true;
  for (const plan::Expr& expr : keys) {
    Key& key = keys_.emplace_back();
    key.type = expr.type;
    key.column = expr.op == plan::Op::kColumn;
    if (key.column) {
      key.ref = expr.column;
      key.radix = space.at(expr.column).meaning.codes;
    } else {
      key.expression = Compile(expr, space);
      const Bounds& bounds = key.expression->bounds();
      const bool truth = key.expression->kind() == Vector::Kind::kTruth;
      key.low = truth ? 0 : bounds.low;
      if (truth) {
        key.radix = 3;
      } else if (bounds.narrow() && bounds.high - bounds.low < INT64_MAX) {
        key.radix = static_cast<uint64_t>(bounds.high - bounds.low) + 2;
      }
    }
    numbers *= key.radix;
    if (key.radix == 0 || numbers > UINT64_MAX) packed_ = false;
    if (!packed_) numbers = 1;
  }
  if (packed_) {
    numbers_.resize(kBatchRows);
    if (numbers <= kDirectNumbers) direct_.resize(static_cast<size_t>(numbers));
  }
}

/// Adds a key's digits, times its weight, to the tuples' numbers.
absl::Status GroupTable::Digits(const Batch& batch, const Key& key, uint64_t weight, bool first) {
  uint64_t* out = numbers_.data();
  if (first) std::fill_n(out, batch.size, 0);
  if (key.column) {
    const uint32_t* rows = batch.of(key.ref.table);
    WithCodes(space_.at(key.ref).source, [&](const auto* codes) {
      for (uint32_t i = 0; i < batch.size; ++i) out[i] += weight * codes[rows[i]];
    });
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(const Vector* values, key.expression->Evaluate(batch));
  for (uint32_t i = 0; i < batch.size; ++i) {
    if (!values->null(i)) out[i] += weight * static_cast<uint64_t>(values->number(i) - key.low + 1);
  }
  return absl::OkStatus();
}

absl::Status GroupTable::Assign(const Batch& batch, uint32_t* groups) {
  if (!packed_) return AssignStored(batch, groups);
  if (keys_.empty()) std::fill_n(numbers_.data(), batch.size, 0);
  uint64_t weight = 1;
  for (const Key& key : keys_) {
    NAM_RETURN_IF_ERROR(Digits(batch, key, weight, &key == &keys_.front()));
    weight *= key.radix;
  }
  for (uint32_t i = 0; i < batch.size; ++i) groups[i] = GroupOf(numbers_[i]);
  return absl::OkStatus();
}

absl::Status GroupTable::AssignStored(const Batch& batch, uint32_t* groups) {
  std::vector<const Vector*> values(keys_.size());
  for (size_t k = 0; k < keys_.size(); ++k) {
    if (keys_[k].column) continue;
    NAM_ASSIGN_OR_RETURN(values[k], keys_[k].expression->Evaluate(batch));
  }
  std::string stored;
  for (uint32_t i = 0; i < batch.size; ++i) {
    stored.clear();
    for (size_t k = 0; k < keys_.size(); ++k) {
      const Key& key = keys_[k];
      if (key.column) {
        const ColumnSpace::Column& column = space_.at(key.ref);
        execution::PutValue(stored, column.meaning.Decode(column.source.at(batch.of(key.ref.table)[i])));
      } else {
        execution::PutValue(stored, ValueAt(*values[k], i, key.type));
      }
    }
    groups[i] = GroupOf(stored);
  }
  return absl::OkStatus();
}

uint32_t GroupTable::GroupOf(uint64_t number) {
  if (!direct_.empty()) {
    uint32_t& group = direct_[number];
    if (group == 0) {
      group = ++size_;
      number_of_.push_back(number);
    }
    return group - 1;
  }
  auto [it, fresh] = hashed_.try_emplace(number, size_);
  if (fresh) {
    ++size_;
    number_of_.push_back(number);
  }
  return it->second;
}

uint32_t GroupTable::GroupOf(const std::string& stored) {
  auto [it, fresh] = by_bytes_.try_emplace(stored, size_);
  if (fresh) {
    ++size_;
    bytes_of_.push_back(stored);
  }
  return it->second;
}

std::vector<uint32_t> GroupTable::Adopt(const GroupTable& other) {
  std::vector<uint32_t> mine(other.size());
  for (uint32_t g = 0; g < other.size(); ++g) {
    mine[g] = packed_ ? GroupOf(other.number_of_[g]) : GroupOf(other.bytes_of_[g]);
  }
  return mine;
}

std::string GroupTable::Stored(uint32_t group) const {
  if (!packed_) return bytes_of_[group];
  std::string out;
  uint64_t number = number_of_[group];
  for (const Key& key : keys_) {
    const uint64_t digit = number % key.radix;
    number /= key.radix;
    if (key.column) {
      execution::PutValue(out, space_.at(key.ref).meaning.Decode(digit));
    } else {
      execution::PutNumberValue(out, digit == 0, key.low + static_cast<__int128>(digit) - 1);
    }
  }
  return out;
}

}  // namespace nam::computeserver
