#include "execution/aggregate/aggregate_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/status_macros.h"
#include "execution/positions.h"
#include "execution/row_field.h"
#include "plan/aggregate_slots.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

absl::Status Damaged() {
  return absl::DataLossError("groups of another server are damaged");
}

/// Whether `a` replaces `b` as the best.
template <typename T>
bool Better(bool least, const T& a, const T& b) {
  return least ? a < b : b < a;
}

__int128 Joined(int64_t upper, int64_t lower) {
  return static_cast<__int128>(static_cast<unsigned __int128>(static_cast<uint64_t>(upper)) << 64 |
                               static_cast<uint64_t>(lower));
}

}  // namespace

absl::Status KeptTexts::Keep(std::string_view text, Text& in) {
  if (text.size() > UINT32_MAX) return OverBudget(budget_);
  if (text.size() > in.capacity) {
    const uint64_t capacity = std::bit_ceil(std::max<uint64_t>(text.size(), 16));
    if (blocks_.empty() || blocks_.back().capacity() - used_ < capacity) {
      BudgetArray<char> block(budget_);
      NAM_RETURN_IF_ERROR(block.Resize(std::max(capacity, kBlockBytes)));
      bytes_ += block.capacity();
      blocks_.push_back(std::move(block));
      used_ = 0;
    }
    in.text = blocks_.back().data() + used_;
    in.capacity = static_cast<uint32_t>(std::min<uint64_t>(capacity, UINT32_MAX));
    used_ += capacity;
  }
  if (!text.empty()) std::memcpy(in.text, text.data(), text.size());
  in.bytes = static_cast<uint32_t>(text.size());
  return absl::OkStatus();
}

absl::Status RealOutOfRange() {
  return UserError(sqlstate::kNumberOutOfRange, "value out of range: overflow", -1);
}

/// Neumaier's sum.
absl::Status RealSum::Add(double x) {
  const double next = sum + x;
  if (!std::isfinite(next)) {
    if (std::isfinite(sum) && std::isfinite(x)) return RealOutOfRange();
    lost = 0;
  } else {
    lost += std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
  }
  sum = next;
  return absl::OkStatus();
}

__int128 RealSum::Packed() const {
  return Joined(OrderedBits(sum), OrderedBits(lost));
}

RealSum RealSum::Unpacked(__int128 packed) {
  return {FromOrderedBits(static_cast<int64_t>(packed >> 64)), FromOrderedBits(static_cast<int64_t>(packed))};
}

namespace {

template <typename T>
void Zero(BudgetArray<T>& array, uint32_t count) {
  const uint64_t bytes = std::min<uint64_t>(count, array.capacity()) * sizeof(T);
  if (bytes > 0) std::memset(static_cast<void*>(array.data()), 0, bytes);
}

}  // namespace

void AggregateState::Reset(uint32_t groups) {
  Zero(counts_, groups);
  sums_.Reset(groups);
  Zero(real_sums_, groups);
  Zero(seen_, groups);
  Zero(narrow_, groups);
  Zero(wide_, groups);
  Zero(moments_, groups);
  Zero(real_moments_, groups);
  Zero(texts_, groups);
  kept_.Clear();
}

AggregateState::AggregateState(const AggregatePlan::Aggregate& aggregate, MemoryBudget& budget)
    : aggregate_(aggregate),
      counts_(budget),
      sums_(budget),
      real_sums_(budget),
      seen_(budget),
      narrow_(budget),
      wide_(budget),
      moments_(budget),
      real_moments_(budget),
      texts_(budget),
      kept_(budget) {}

bool AggregateState::counts() const {
  return aggregate_.function == AggregateFunction::kCountRows ||
         aggregate_.function == AggregateFunction::kCount ||
         aggregate_.function == AggregateFunction::kAverage;
}
bool AggregateState::sums() const {
  return aggregate_.function == AggregateFunction::kSum || aggregate_.function == AggregateFunction::kAverage;
}
bool AggregateState::best() const {
  return least() || aggregate_.function == AggregateFunction::kMax ||
         aggregate_.function == AggregateFunction::kBoolOr;
}
bool AggregateState::least() const {
  return aggregate_.function == AggregateFunction::kMin || aggregate_.function == AggregateFunction::kBoolAnd;
}
bool AggregateState::bits() const {
  return aggregate_.function == AggregateFunction::kBitAnd ||
         aggregate_.function == AggregateFunction::kBitOr ||
         aggregate_.function == AggregateFunction::kBitXor;
}
bool AggregateState::moments() const {
  return plan::HasMoments(aggregate_.function);
}

absl::Status AggregateState::Grow(uint32_t groups) {
  if (idle()) return absl::OkStatus();
  if (moments()) return real() ? real_moments_.Grow(groups) : moments_.Grow(groups);
  if (counts()) NAM_RETURN_IF_ERROR(counts_.Grow(groups));
  if (sums()) NAM_RETURN_IF_ERROR(real() ? real_sums_.Grow(groups) : sums_.Grow(groups));
  if (aggregate_.function == AggregateFunction::kSum || best() || bits())
    NAM_RETURN_IF_ERROR(seen_.Grow(groups));
  if (bits()) return narrow_.Grow(groups);
  if (!best()) return absl::OkStatus();
  switch (aggregate_.physical) {
    case Physical::kTruth:
    case Physical::kInt64:
      return narrow_.Grow(groups);
    case Physical::kText:
      return texts_.Grow(groups);
    default:
      return wide_.Grow(groups);
  }
}

absl::Status AggregateState::Consume(const AggregatePlan::Aggregate& of, const Program& program, Frame& frame,
                                     const Chunk& chunk, const uint32_t* groups, bool single) {
  const Selection rows = chunk.selection();
  const bool counts_rows = of.function == AggregateFunction::kCountRows ||
                           (of.function == AggregateFunction::kCount && of.slot && !of.argument_nullable);
  if (counts_rows) {
    if (single) {
      counts_[0] += rows.count;
    } else {
      for (uint32_t j = 0; j < rows.count; ++j) ++counts_[groups[j]];
    }
    return absl::OkStatus();
  }
  if (sums() && of.slot && !real()) {
    const Column& column = chunk.column(*of.slot);
    NAM_ASSIGN_OR_RETURN(const bool done, SumColumn(column, of.argument_nullable, rows, groups, single));
    if (done) return absl::OkStatus();
  }
  const Vector* const values = program.Evaluate(of.argument, frame, chunk, rows);
  if (values == nullptr) return frame.error();
  switch (of.function) {
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
      if (single && !real()) return SumSingle(*values, rows);
      return Sum(*values, rows, groups);
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
      return Best(*values, rows, groups);
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      Bits(*values, rows, groups);
      return absl::OkStatus();
    default:
      if (moments()) return AccumulateMoments(*values, of, program, frame, chunk, groups);
      Count(*values, rows, groups);
      return absl::OkStatus();
  }
}

absl::Status AggregateState::AccumulateMoments(const Vector& values, const AggregatePlan::Aggregate& of,
                                               const Program& program, Frame& frame, const Chunk& chunk,
                                               const uint32_t* groups) {
  const Selection rows = chunk.selection();
  const Vector* second = nullptr;
  if (plan::ArgumentsOf(aggregate_.function) > 1) {
    second = program.Evaluate(of.second, frame, chunk, rows);
    if (second == nullptr) return frame.error();
  }
  const uint32_t* const positions = PositionsOf(rows);
  for (uint32_t j = 0; j < rows.count; ++j) {
    const uint32_t at = positions[j];
    if (values.null(at) || (second != nullptr && second->null(at))) continue;
    if (real()) {
      NAM_RETURN_IF_ERROR(real_moments_[groups[j]].Add(
          FromOrderedBits(values.narrow[at]), second == nullptr ? 0 : FromOrderedBits(second->narrow[at])));
    } else {
      moments_[groups[j]].Add(values.number(at), second == nullptr ? 0 : second->number(at));
    }
  }
  return absl::OkStatus();
}

/// Takes in moments of other groups.
absl::Status AggregateState::AccumulateWords(const Program& program, Frame& frame, const Chunk& chunk,
                                             const uint32_t* groups) {
  const Selection rows = chunk.selection();
  const Vector* words[Moments::kWordsOfTwo] = {};
  for (size_t w = 0; w < aggregate_.partial_slots; ++w) {
    words[w] = program.Evaluate(aggregate_.argument + w, frame, chunk, rows);
    if (words[w] == nullptr) return frame.error();
  }
  const uint32_t* const positions = PositionsOf(rows);
  int64_t of_row[Moments::kWordsOfTwo];
  for (uint32_t j = 0; j < rows.count; ++j) {
    for (size_t w = 0; w < aggregate_.partial_slots; ++w) of_row[w] = words[w]->narrow[positions[j]];
    const std::span<const int64_t> state(of_row, aggregate_.partial_slots);
    const int64_t here = real() ? real_moments_[groups[j]].count() : moments_[groups[j]].count();
    if (state[0] < 0 || state[0] > INT64_MAX - here) return Damaged();
    if (real()) {
      NAM_RETURN_IF_ERROR(real_moments_[groups[j]].Merge(RealMoments::Read(state)));
    } else {
      moments_[groups[j]].Merge(Moments::Read(state));
    }
  }
  return absl::OkStatus();
}

void AggregateState::AddBits(uint32_t group, int64_t bits) {
  int64_t& kept = narrow_[group];
  if (seen_[group] == 0) {
    kept = bits;
    seen_[group] = 1;
  } else if (aggregate_.function == AggregateFunction::kBitAnd) {
    kept &= bits;
  } else if (aggregate_.function == AggregateFunction::kBitOr) {
    kept |= bits;
  } else {
    kept ^= bits;
  }
}

void AggregateState::Bits(const Vector& values, Selection rows, const uint32_t* groups) {
  const uint32_t* const positions = PositionsOf(rows);
  for (uint32_t j = 0; j < rows.count; ++j) {
    const uint32_t at = positions[j];
    if (!values.null(at)) AddBits(groups[j], static_cast<int64_t>(values.number(at)));
  }
}

void AggregateState::Count(const Vector& values, Selection rows, const uint32_t* groups) {
  const uint32_t* const positions = PositionsOf(rows);
  for (uint32_t j = 0; j < rows.count; ++j) counts_[groups[j]] += !values.null(positions[j]);
}

absl::Status AggregateState::Best(const Vector& values, Selection rows, const uint32_t* groups) {
  switch (values.physical) {
    case Physical::kTruth:
      BestNumber(values.truth, values, rows, groups, narrow_.data());
      return absl::OkStatus();
    case Physical::kInt64:
      BestNumber(values.narrow, values, rows, groups, narrow_.data());
      return absl::OkStatus();
    case Physical::kText:
      return BestText(values, rows, groups);
    default:
      BestNumber(values.wide, values, rows, groups, wide_.data());
      return absl::OkStatus();
  }
}

template <typename T, typename Kept>
void AggregateState::BestNumber(const T* values, const Vector& vector, Selection rows, const uint32_t* groups,
                                Kept* best) {
  const bool least = this->least();
  const uint32_t* const positions = PositionsOf(rows);
  for (uint32_t j = 0; j < rows.count; ++j) {
    const uint32_t at = positions[j];
    if (vector.null(at)) continue;
    const uint32_t group = groups[j];
    const Kept value = values[at];
    if (seen_[group] == 0 || Better(least, value, best[group])) best[group] = value;
    seen_[group] = 1;
  }
}

absl::Status AggregateState::BestText(const Vector& values, Selection rows, const uint32_t* groups) {
  const uint32_t* const positions = PositionsOf(rows);
  for (uint32_t j = 0; j < rows.count; ++j) {
    const uint32_t at = positions[j];
    if (values.null(at)) continue;
    NAM_RETURN_IF_ERROR(KeepText(groups[j], values.text[at]));
  }
  return absl::OkStatus();
}

absl::Status AggregateState::KeepText(uint32_t group, std::string_view text) {
  KeptTexts::Text& best = texts_[group];
  const bool least = this->least();
  if (seen_[group] != 0 && !Better(least, text, std::string_view(best.text, best.bytes))) {
    return absl::OkStatus();
  }
  seen_[group] = 1;
  return kept_.Keep(text, best);
}

absl::Status AggregateState::AddCount(uint32_t group, int64_t count) {
  if (count < 0 || __builtin_add_overflow(counts_[group], count, &counts_[group])) return Damaged();
  return absl::OkStatus();
}

absl::Status AggregateState::ConsumeGroups(const Program& program, Frame& frame, const Chunk& chunk,
                                           const uint32_t* groups) {
  const Selection rows = chunk.selection();
  if (idle()) return absl::OkStatus();
  if (moments()) return AccumulateWords(program, frame, chunk, groups);
  const Vector* vectors[3] = {};
  for (size_t i = 0; i < aggregate_.partial_slots; ++i) {
    vectors[i] = program.Evaluate(aggregate_.argument + i, frame, chunk, rows);
    if (vectors[i] == nullptr) return frame.error();
  }
  if (best()) return Best(*vectors[0], rows, groups);
  if (bits()) {
    Bits(*vectors[0], rows, groups);
    return absl::OkStatus();
  }
  const uint32_t* const positions = PositionsOf(rows);
  if (counts()) {
    const Vector& numbers = *vectors[aggregate_.partial_slots - 1];
    for (uint32_t j = 0; j < rows.count; ++j) {
      NAM_RETURN_IF_ERROR(AddCount(groups[j], numbers.narrow[positions[j]]));
    }
  }
  if (!sums()) return absl::OkStatus();
  const Vector &upper = *vectors[0], &lower = *vectors[1];
  for (uint32_t j = 0; j < rows.count; ++j) {
    const uint32_t at = positions[j];
    if (upper.null(at)) continue;
    NAM_RETURN_IF_ERROR(AddSum(groups[j], Joined(upper.narrow[at], lower.narrow[at])));
    if (!counts()) seen_[groups[j]] = 1;
  }
  return absl::OkStatus();
}

absl::Status AggregateState::Merge(const AggregateState& other, std::span<const uint32_t> theirs,
                                   const uint32_t* mine) {
  const bool least = this->least();
  if (idle()) return absl::OkStatus();
  for (size_t j = 0; j < theirs.size(); ++j) {
    const uint32_t from = theirs[j], to = mine[j];
    if (moments()) {
      if (real()) {
        NAM_RETURN_IF_ERROR(real_moments_[to].Merge(other.real_moments_[from]));
      } else {
        moments_[to].Merge(other.moments_[from]);
      }
      continue;
    }
    if (counts()) NAM_RETURN_IF_ERROR(AddCount(to, other.counts_[from]));
    if (sums()) NAM_RETURN_IF_ERROR(AddSum(to, other.SumOf(from)));
    if (seen_.capacity() == 0 || other.seen_[from] == 0) continue;
    if (bits()) {
      AddBits(to, other.narrow_[from]);
      continue;
    }
    if (best()) {
      const auto improve = [&](auto& kept, const auto& value) {
        if (seen_[to] == 0 || Better(least, value, kept)) kept = value;
      };
      if (aggregate_.physical == Physical::kText) {
        const KeptTexts::Text& text = other.texts_[from];
        NAM_RETURN_IF_ERROR(KeepText(to, {text.text, text.bytes}));
      } else if (wide_.capacity() > 0) {
        improve(wide_[to], other.wide_[from]);
      } else {
        improve(narrow_[to], other.narrow_[from]);
      }
    }
    seen_[to] = 1;
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
