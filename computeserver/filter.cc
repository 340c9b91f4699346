#include "computeserver/filter.h"

#include <algorithm>

#include "base/status_macros.h"

namespace nam::computeserver {

using plan::Op;

Filter::Filter(const plan::Expr& condition, const ColumnSpace& space) {
  keep_.resize(kBatchRows);
  const std::vector<plan::ColumnRef> columns = plan::ColumnsOf(condition);
  if (columns.size() == 1) {
    column_ = columns[0];
    source_ = &space.at(column_);
    if (FromComparison(condition, space)) return;
    if (auto truth = TruthByCode(condition, space)) {
      FromTruth(*truth);
      return;
    }
  }
  general_ = Compile(condition, space);
}

void Filter::FromTruth(const std::vector<uint8_t>& truth) {
  const auto is_true = [](uint8_t t) { return t == Vector::kTrue; };
  const auto first = std::find_if(truth.begin(), truth.end(), is_true);
  const auto end = std::find_if_not(first, truth.end(), is_true);
  if (std::find_if(end, truth.end(), is_true) == truth.end()) {
    kind_ = Kind::kRange;
    if (first == truth.end()) return;  // nothing passes: the empty range
    low_ = static_cast<uint64_t>(first - truth.begin());
    high_ = static_cast<uint64_t>(end - truth.begin()) - 1;
    return;
  }
  kind_ = Kind::kSet;
  set_.resize(truth.size());
  std::transform(truth.begin(), truth.end(), set_.begin(), is_true);
}

/// column ⋄ literal over many codes, both numbers of one scale or dates.
bool Filter::FromComparison(const plan::Expr& e, const ColumnSpace& space) {
  if (e.children.size() != 2 || e.op == Op::kNotEqual) return false;
  const bool swapped = e.children[0].op == Op::kLiteral;
  const plan::Expr& column = e.children[swapped ? 1 : 0];
  const plan::Expr& literal = e.children[swapped ? 0 : 1];
  if (column.op != Op::kColumn || literal.op != Op::kLiteral || literal.literal.null) return false;
  const ColumnMeaning& meaning = space.at(column.column).meaning;
  if (meaning.type.kind == TypeKind::kString || meaning.type.kind == TypeKind::kBool) return false;
  if (column.type.scale < literal.literal.type.scale) return false;
  __int128 value;
  if (__builtin_mul_overflow(literal.literal.number,
                             PowerOfTen(column.type.scale - literal.literal.type.scale), &value)) {
    return false;
  }
  __int128 low = meaning.min, high = meaning.max;
  Op op = e.op;
  if (swapped) {
    op = op == Op::kLess           ? Op::kGreater
         : op == Op::kLessEqual    ? Op::kGreaterEqual
         : op == Op::kGreater      ? Op::kLess
         : op == Op::kGreaterEqual ? Op::kLessEqual
                                   : op;
  }
  switch (op) {
    case Op::kEqual:
      low = std::max(low, value), high = std::min(high, value);
      break;
    case Op::kLess:
      high = std::min(high, value - 1);
      break;
    case Op::kLessEqual:
      high = std::min(high, value);
      break;
    case Op::kGreater:
      low = std::max(low, value + 1);
      break;
    case Op::kGreaterEqual:
      low = std::max(low, value);
      break;
    default:
      return false;
  }
  kind_ = Kind::kRange;
  if (low <= high) {
    low_ = static_cast<uint64_t>(low - meaning.base);
    high_ = static_cast<uint64_t>(high - meaning.base);
  }
  return true;
}

bool Filter::MayPass(const storage::ColumnZone& zone) const {
  if (kind_ == Kind::kRange) return low_ <= high_ && zone.min <= high_ && low_ <= zone.max;
  for (uint64_t code = zone.min; code <= zone.max && code < set_.size(); ++code) {
    if (set_[code]) return true;
  }
  return false;
}

absl::Status Filter::Apply(Batch& batch) {
  uint32_t n = 0;
  uint32_t* keep = keep_.data();
  if (kind_ == Kind::kGeneral) {
    NAM_ASSIGN_OR_RETURN(const Vector* truth, general_->Evaluate(batch));
    for (uint32_t i = 0; i < batch.size; ++i) {
      keep[n] = i;
      n += truth->truth[i] == Vector::kTrue;
    }
  } else if (kind_ == Kind::kSet || low_ <= high_) {
    const uint32_t* rows = batch.of(column_.table);
    WithCodes(source_->source, [&](const auto* codes) {
      using Code = std::remove_cvref_t<decltype(*codes)>;
      const Code low = static_cast<Code>(low_);
      const Code spread = static_cast<Code>(high_ - low_);
      for (uint32_t i = 0; i < batch.size; ++i) {
        keep[n] = i;
        n += kind_ == Kind::kRange ? static_cast<Code>(codes[rows[i]] - low) <= spread
                                   : set_[codes[rows[i]]] != 0;
      }
    });
  }
  if (n < batch.size) batch.Keep(keep, n);
  return absl::OkStatus();
}

}  // namespace nam::computeserver
