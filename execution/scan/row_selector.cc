#include "execution/scan/row_selector.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "execution/chunk.h"

namespace nam::execution {
namespace {

constexpr uint32_t kWindowsPerOrder = 64;
constexpr double kPriorRows = 512;       // weight of an estimate in seen rows
constexpr double kRowsRemembered = 1e5;  // beyond them the older half counts half

/// The cost of looking one key up, by the number of bits in use.
double LookupNs(uint64_t bits) {
  constexpr uint64_t kNear = 32 << 13, kMiddle = 1 << 23, kFar = 16 << 23;
  return bits <= kNear ? 0.5 : bits <= kMiddle ? 0.8 : bits <= kFar ? 2 : 5;
}

/// The codes of keys from `least` to `greatest`; empty (low > high) if there is none.
RowSelector::CodeRange CodeRangeOf(const CodeMeaning& meaning, int64_t least, int64_t greatest) {
  const __int128 base = meaning.base;
  if (greatest < least || greatest < base) return {1, 0};
  return {least <= base ? 0 : static_cast<uint64_t>(least - base), static_cast<uint64_t>(greatest - base)};
}

}  // namespace

void ConditionCounts::Add(const ConditionCounts& more) {
  dropped += more.dropped;
  if (lookups.size() < more.lookups.size()) lookups.resize(more.lookups.size());
  for (size_t i = 0; i < more.lookups.size(); ++i) {
    lookups[i].rows += more.lookups[i].rows;
    lookups[i].found += more.lookups[i].found;
  }
}

double RowSelector::Step::rank() const {
  return cost_ns / std::max(1e-6, 1 - passed / seen);
}

RowSelector::RowSelector(std::span<const ScanColumn> columns, std::span<const SlotCondition> conditions,
                         std::span<const KeyLookup> lookups, int sort_column)
    : sort_column_(sort_column) {
  for (const SlotCondition& condition : conditions) {
    const ScanColumn& column = columns[condition.slot];
    conditions_.push_back({column.number, &condition.codes});
    const auto codes = static_cast<double>(std::max<uint64_t>(column.meaning->codes, 1));
    const double passing = static_cast<double>(condition.codes.Passing()) / codes;
    const bool range = condition.codes.range();
    Step& step =
        Add(range ? Step::Kind::kRange : Step::Kind::kSet, column.number, passing, range ? 0.25 : 0.5);
    step.low = condition.codes.low;
    step.high = condition.codes.high;
    if (!range) step.test.bits = condition.codes.bits.data();
  }
  for (size_t i = 0; i < lookups.size(); ++i)
    AddLookup(lookups[i], static_cast<int>(i), columns[lookups[i].slot]);
  counts_.lookups.resize(lookups.size());
  for (Step& step : steps_) {
    step.test.low = step.low;
    step.test.spread = step.high - step.low;
  }
  Order();
}

RowSelector::Step& RowSelector::Add(Step::Kind kind, uint32_t number, double passing, double cost_ns) {
  Step& step = steps_.emplace_back(Step{.kind = kind, .number = number});
  step.seen = kPriorRows;
  step.passed = kPriorRows * std::clamp(passing, 0.0, 1.0);
  step.cost_ns = cost_ns;
  return step;
}

void RowSelector::AddLookup(const KeyLookup& lookup, int number, const ScanColumn& column) {
  const CodeMeaning& meaning = *column.meaning;
  if (meaning.null_code) {  // whose number could equal a key
    Step& step = Add(Step::Kind::kRange, column.number, 1, 0.25);
    step.lookup_number = number;
    step.low = 1;
    step.high = std::numeric_limits<uint64_t>::max() >> (64 - 8 * meaning.width);
  }
  const DirectTable& table = *lookup.table;
  const auto possible = static_cast<double>(std::max<uint64_t>(table.rows(), 1));
  Step& step = Add(Step::Kind::kLookup, column.number, static_cast<double>(table.inserted_rows()) / possible,
                   LookupNs(table.part_size()));
  const CodeRange codes = CodeRangeOf(meaning, table.least_key(), table.greatest_key());
  step.low = codes.low;
  step.high = codes.high;
  step.lookup = lookup;
  step.lookup_number = number;
  if (lookup.parts != uint32_t{1} << table.part_shift()) step.lookup.parts = 0;
  NAM_CHECK(step.lookup.parts != 0 || table.all_here(), "a table that has some parts is looked up by part");
  step.test.bits = table.present();
  step.test.delta = static_cast<uint64_t>(meaning.base) - static_cast<uint64_t>(table.origin());
  step.test.shift = table.part_shift();
  step.test.part_size =
      step.lookup.parts == 0 && table.part_shift() != 0 ? static_cast<uint32_t>(table.part_size()) : 0;
}

RowSelector::CodeRange RowSelector::SortCodes() const {
  CodeRange all;
  for (const Step& step : steps_) {
    if (static_cast<int>(step.number) != sort_column_ || step.kind == Step::Kind::kSet) continue;
    all.low = std::max(all.low, step.low);
    all.high = std::min(all.high, step.high);
  }
  return all;
}

void RowSelector::Order() {
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.rank() < b.rank(); });
  for (Step& step : steps_) {
    if (step.seen <= kRowsRemembered) continue;
    step.seen /= 2;
    step.passed /= 2;
  }
  windows_until_order_ = kWindowsPerOrder;
}

bool RowSelector::MayPass(const Step& step, const storage::ColumnZone& zone) const {
  return step.low <= step.high && zone.min <= step.high && step.low <= zone.max;
}

void RowSelector::CountDropped(const Step& step, uint64_t rows) {
  (step.lookup_number < 0 ? counts_.dropped
                          : counts_.lookups[static_cast<size_t>(step.lookup_number)].rows) += rows;
}

/// Narrows the rows to those whose code is within the step's. False if none is left.
bool RowSelector::CutBySorting(const Step& step) {
  const uint32_t before = end_ - next_;
  WithCodes(step.page.codes, step.page.width, [&](const auto* codes) {
    const auto *from = codes + next_, *to = codes + end_;
    from = std::partition_point(from, to, [&](auto code) { return code < step.low; });
    to = std::partition_point(from, to, [&](auto code) { return code <= step.high; });
    next_ = static_cast<uint32_t>(from - codes);
    end_ = static_cast<uint32_t>(to - codes);
  });
  CountDropped(step, before - (end_ - next_));
  return next_ < end_;
}

bool RowSelector::Start(const storage::BlockView& block) {
  next_ = end_ = 0;
  for (const Zoned& condition : conditions_) {
    const storage::ColumnZone& zone = block.zone(condition.number);
    if (condition.codes->MayPass(zone.min, zone.max)) continue;
    counts_.dropped += block.rows();
    return false;
  }
  for (Step& step : steps_) {
    step.in_this_block = true;
    step.page = {block.page(step.number), block.width(step.number)};
    if (step.kind == Step::Kind::kSet) continue;
    const storage::ColumnZone& zone = block.zone(step.number);
    if (!MayPass(step, zone)) {
      CountDropped(step, block.rows());
      return false;
    }
    // Every row passes a range that its zone lies in.
    step.in_this_block = step.kind == Step::Kind::kLookup || zone.min < step.low || step.high < zone.max;
    if (step.lookup.parts != 0) {
      const uint32_t part = block.partition() / step.lookup.divisor % step.lookup.parts;
      step.test.bits = step.lookup.table->present_of(part);
    }
  }
  end_ = block.rows();
  for (Step& step : steps_) {
    if (static_cast<int>(step.number) != sort_column_ || step.kind == Step::Kind::kSet || !step.in_this_block)
      continue;
    const storage::ColumnZone& zone = block.zone(step.number);
    if (step.low <= zone.min && zone.max <= step.high) continue;
    if (!CutBySorting(step)) return false;
    step.in_this_block = step.kind == Step::Kind::kLookup;
  }
  return true;
}

uint32_t RowSelector::Next(uint32_t* rows) {
  const uint32_t first = next_, all = std::min(kChunkRows, end_ - next_);
  next_ += all;
  if (--windows_until_order_ == 0) Order();
  bool none_yet = true;
  uint32_t count = all;
  for (Step& step : steps_) {
    if (!step.in_this_block) continue;
    if (count == 0) break;
    const uint32_t left = none_yet ? SelectCodes(step.test, step.page, first, count, rows)
                                   : SelectRows(step.test, step.page, count, rows);
    (none_yet ? work_.first_rows : work_.later_rows) += count;
    none_yet = false;
    step.seen += count;
    step.passed += left;
    if (step.kind == Step::Kind::kLookup) {
      ConditionCounts::Lookup& lookup = counts_.lookups[static_cast<size_t>(step.lookup_number)];
      lookup.rows += count;
      lookup.found += left;
    } else {
      CountDropped(step, count - left);
    }
    count = left;
  }
  if (none_yet) std::iota(rows, rows + count, first);
  return count;
}

RowSelector::Work RowSelector::TakeWork() {
  return std::exchange(work_, Work());
}

}  // namespace nam::execution
