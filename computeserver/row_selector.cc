#include "computeserver/row_selector.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace nam::computeserver {
namespace {

constexpr uint32_t kWindowsPerOrder = 64;
constexpr double kPriorRows = 512;       // what an estimate is worth against rows seen
constexpr double kRowsRemembered = 1e5;  // beyond them the older half counts half

/// What looking one key up costs, by how many bits are looked at.
double LookupNs(uint64_t bits) {
  constexpr uint64_t kNear = 32 << 13, kMiddle = 1 << 23, kFar = 16 << 23;
  return bits <= kNear ? 0.5 : bits <= kMiddle ? 0.8 : bits <= kFar ? 2 : 5;
}

/// The codes that keys from `least` to `greatest` have; empty (low > high) if none.
RowSelector::CodeRange CodesOf(const ColumnMeaning& meaning, int64_t least, int64_t greatest) {
  const __int128 base = meaning.base;
  if (greatest < least || greatest < base) return {1, 0};
  return {least <= base ? 0 : static_cast<uint64_t>(least - base), static_cast<uint64_t>(greatest - base)};
}

std::vector<uint32_t> BitsOf(const std::vector<uint8_t>& set) {
  std::vector<uint32_t> bits(set.size() / 32 + 1);
  for (size_t i = 0; i < set.size(); ++i) bits[i / 32] |= uint32_t{set[i] != 0} << i % 32;
  return bits;
}

}  // namespace

double RowSelector::Step::rank() const {
  return cost_ns / std::max(1e-6, 1 - passed / seen);
}

RowSelector::RowSelector(const ColumnSpace& space, const std::vector<std::unique_ptr<Filter>>& filters,
                         const std::vector<KeyLookup>& lookups, int sort_column)
    : sort_column_(sort_column) {
  const auto add = [&](Step::Kind kind, plan::ColumnRef column, double passing, double cost_ns) -> Step& {
    Step& step =
        steps_.emplace_back(Step{.kind = kind, .column = &space.at(column), .number = column.column});
    step.seen = kPriorRows;
    step.passed = kPriorRows * std::clamp(passing, 0.0, 1.0);
    step.cost_ns = cost_ns;
    return step;
  };
  for (const auto& filter : filters) {
    if (!filter->on_codes()) continue;
    filters_.push_back(filter.get());
    const auto codes = static_cast<double>(std::max<uint64_t>(space.at(filter->column()).meaning.codes, 1));
    if (filter->is_range()) {
      const double wide =
          filter->low() > filter->high() ? 0 : static_cast<double>(filter->high() - filter->low()) + 1;
      Step& step = add(Step::Kind::kRange, filter->column(), wide / codes, 0.25);
      step.low = filter->low();
      step.high = filter->high();
    } else {
      const auto wanted = std::accumulate(filter->set().begin(), filter->set().end(), 0.0);
      Step& step = add(Step::Kind::kSet, filter->column(), wanted / codes, 0.5);
      step.high = filter->set().size() - 1;
      step.set = BitsOf(filter->set());
    }
  }
  for (const KeyLookup& lookup : lookups) {
    const ColumnMeaning& meaning = space.at(lookup.column).meaning;
    if (meaning.nullable) {  // code 0 is NULL, whose number could be somebody's key
      Step& step = add(Step::Kind::kRange, lookup.column, 1, 0.25);
      step.low = 1;
      step.high = std::numeric_limits<uint64_t>::max() >> (64 - 8 * meaning.width);
    }
    const JoinTable& table = *lookup.table;
    const auto possible = static_cast<double>(std::max<uint64_t>(table.rows(), 1));
    Step& step = add(Step::Kind::kLookup, lookup.column,
                     static_cast<double>(table.inserted_rows()) / possible, LookupNs(table.part_size()));
    const CodeRange codes = CodesOf(meaning, table.least_key(), table.greatest_key());
    step.low = codes.low;
    step.high = codes.high;
    step.lookup = lookup;
    if (lookup.parts != uint32_t{1} << table.part_shift()) step.lookup.parts = 0;
    step.test.bits = table.present();
    step.test.delta = static_cast<uint64_t>(meaning.base) - static_cast<uint64_t>(table.origin());
    step.test.shift = table.part_shift();
    step.test.part_size =
        step.lookup.parts == 0 && table.part_shift() != 0 ? static_cast<uint32_t>(table.part_size()) : 0;
  }
  for (Step& step : steps_) {
    step.test.low = step.low;
    step.test.spread = step.high - step.low;
    if (step.kind == Step::Kind::kSet) step.test.bits = step.set.data();
  }
  Order();
}

RowSelector::CodeRange RowSelector::SortCodes() const {
  CodeRange all;
  for (const Step& step : steps_) {
    if (step.number != sort_column_ || step.kind == Step::Kind::kSet) continue;
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

/// Narrows the rows to be looked at to those whose code is within the step's. False if none is left.
bool RowSelector::CutBySorting(const Step& step) {
  WithCodes(step.column->source, [&](const auto* codes) {
    const auto *from = codes + next_, *to = codes + end_;
    from = std::partition_point(from, to, [&](auto code) { return code < step.low; });
    to = std::partition_point(from, to, [&](auto code) { return code <= step.high; });
    next_ = static_cast<uint32_t>(from - codes);
    end_ = static_cast<uint32_t>(to - codes);
  });
  return next_ < end_;
}

bool RowSelector::Start(const storage::BlockView& block) {
  next_ = end_ = 0;
  for (const Filter* filter : filters_) {
    if (!filter->MayPass(block.zone(static_cast<uint32_t>(filter->column().column)))) return false;
  }
  for (Step& step : steps_) {
    step.in_this_block = true;
    if (step.kind == Step::Kind::kSet) continue;
    const storage::ColumnZone& zone = block.zone(static_cast<uint32_t>(step.number));
    if (!MayPass(step, zone)) return false;
    // Every row passes a range that its zone lies in.
    step.in_this_block = step.kind == Step::Kind::kLookup || zone.min < step.low || step.high < zone.max;
    if (step.lookup.parts != 0) {
      const uint32_t part = block.partition() / step.lookup.divisor % step.lookup.parts;
      step.test.bits = step.lookup.table->present() + part * step.lookup.table->part_size() / 32;
    }
  }
  end_ = block.rows();
  for (Step& step : steps_) {
    if (step.number != sort_column_ || step.kind == Step::Kind::kSet || !step.in_this_block) continue;
    const storage::ColumnZone& zone = block.zone(static_cast<uint32_t>(step.number));
    if (step.low <= zone.min && zone.max <= step.high) continue;
    if (!CutBySorting(step)) return false;
    step.in_this_block = step.kind == Step::Kind::kLookup;
  }
  return true;
}

uint32_t RowSelector::Next(uint32_t* rows) {
  const uint32_t first = next_, all = std::min(kBatchRows, end_ - next_);
  next_ += all;
  if (--windows_until_order_ == 0) Order();
  bool none_yet = true;
  uint32_t count = all;
  for (Step& step : steps_) {
    if (!step.in_this_block) continue;
    if (count == 0) break;
    const uint32_t left = none_yet ? SelectCodes(step.test, step.column->source, first, count, rows)
                                   : SelectRows(step.test, step.column->source, count, rows);
    (none_yet ? work_.first_rows : work_.later_rows) += count;
    none_yet = false;
    step.seen += count;
    step.passed += left;
    count = left;
  }
  if (none_yet) std::iota(rows, rows + count, first);
  return count;
}

RowSelector::Work RowSelector::TakeWork() {
  return std::exchange(work_, Work());
}

}  // namespace nam::computeserver
