#include "execution/aggregate/real_moments.h"

#include <cmath>

#include "base/check.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

absl::Status Overflow() {
  return UserError(sqlstate::kNumberOutOfRange, "value out of range: overflow", -1);
}

/// Whether finite numbers gave an infinity.
bool Overflows(double of, double a, double b) {
  return std::isinf(of) && !std::isinf(a) && !std::isinf(b);
}

double NanUnlessFinite(double x) {
  return std::isinf(x) ? std::nan("") : x;
}

}  // namespace

absl::Status RealMoments::Add(double a, double b) {
  ++count_;
  const auto n = static_cast<double>(count_);
  const RealMoments before = *this;
  a_ += a;
  b_ += b;
  if (count_ == 1) {
    if (!std::isfinite(a)) aa_ = ab_ = std::nan("");
    if (!std::isfinite(b)) bb_ = ab_ = std::nan("");
    return absl::OkStatus();
  }
  const double from_a = a * n - a_, from_b = b * n - b_, scale = 1 / (n * (n - 1));
  aa_ += from_a * from_a * scale;
  bb_ += from_b * from_b * scale;
  ab_ += from_a * from_b * scale;
  const bool finite_a = !std::isinf(before.a_) && !std::isinf(a);
  const bool finite_b = !std::isinf(before.b_) && !std::isinf(b);
  if ((finite_a && (std::isinf(a_) || std::isinf(aa_))) ||
      (finite_b && (std::isinf(b_) || std::isinf(bb_))) || (finite_a && finite_b && std::isinf(ab_))) {
    return Overflow();
  }
  aa_ = NanUnlessFinite(aa_);
  bb_ = NanUnlessFinite(bb_);
  ab_ = NanUnlessFinite(ab_);
  return absl::OkStatus();
}

absl::Status RealMoments::Merge(const RealMoments& other) {
  if (other.count_ == 0) return absl::OkStatus();
  if (count_ == 0) {
    *this = other;
    return absl::OkStatus();
  }
  const auto mine = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double weight = mine * theirs / (mine + theirs);
  const double between_a = a_ / mine - other.a_ / theirs, between_b = b_ / mine - other.b_ / theirs;
  const RealMoments before = *this;
  count_ += other.count_;
  a_ += other.a_;
  b_ += other.b_;
  aa_ += other.aa_ + weight * between_a * between_a;
  bb_ += other.bb_ + weight * between_b * between_b;
  ab_ += other.ab_ + weight * between_a * between_b;
  if (Overflows(a_, before.a_, other.a_) || Overflows(b_, before.b_, other.b_) ||
      Overflows(aa_, before.aa_, other.aa_) || Overflows(bb_, before.bb_, other.bb_) ||
      Overflows(ab_, before.ab_, other.ab_)) {
    return Overflow();
  }
  return absl::OkStatus();
}

std::optional<double> RealMoments::Result(AggregateFunction function) const {
  const bool sample = function == AggregateFunction::kVarSamp || function == AggregateFunction::kStddevSamp ||
                      function == AggregateFunction::kCovarSamp;
  if (count_ < (sample ? 2 : 1)) return std::nullopt;
  const auto n = static_cast<double>(count_);
  switch (function) {
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
      return aa_ / (n - sample);
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      return std::sqrt(aa_ / (n - sample));
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
      return ab_ / (n - sample);
    case AggregateFunction::kRegrAvgX:
      return b_ / n;
    case AggregateFunction::kRegrAvgY:
      return a_ / n;
    case AggregateFunction::kRegrSxx:
      return bb_;
    case AggregateFunction::kRegrSyy:
      return aa_;
    case AggregateFunction::kRegrSxy:
      return ab_;
    case AggregateFunction::kCorr:
      if (aa_ == 0 || bb_ == 0) return std::nullopt;
      return ab_ / std::sqrt(aa_ * bb_);
    default:
      break;
  }
  if (bb_ == 0) return std::nullopt;
  if (function == AggregateFunction::kRegrSlope) return ab_ / bb_;
  if (function == AggregateFunction::kRegrIntercept) return (a_ - b_ * ab_ / bb_) / n;
  NAM_CHECK(function == AggregateFunction::kRegrR2);
  return aa_ == 0 ? 1.0 : ab_ * ab_ / (aa_ * bb_);
}

void RealMoments::Write(std::span<int64_t> words) const {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  words[0] = count_;
  words[1] = OrderedBits(a_);
  words[2] = OrderedBits(aa_);
  if (words.size() == kWordsOfOne) return;
  words[3] = OrderedBits(b_);
  words[4] = OrderedBits(bb_);
  words[5] = OrderedBits(ab_);
}

RealMoments RealMoments::Read(std::span<const int64_t> words) {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  RealMoments out;
  out.count_ = words[0];
  out.a_ = FromOrderedBits(words[1]);
  out.aa_ = FromOrderedBits(words[2]);
  if (words.size() == kWordsOfOne) return out;
  out.b_ = FromOrderedBits(words[3]);
  out.bb_ = FromOrderedBits(words[4]);
  out.ab_ = FromOrderedBits(words[5]);
  return out;
}

}  // namespace nam::execution
