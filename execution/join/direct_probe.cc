#include "execution/join/direct_probe.h"

#include <algorithm>

#include "base/prefetch.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Look-ups ahead whose heads are prefetched.
constexpr uint32_t kAhead = 16;

/// Appends the tuple at `position`, if its key is there.
inline void AppendOfKey(const DirectTable& table, int64_t key, uint32_t position, uint32_t& count,
                        Candidates& candidates) {
  const uint32_t head = table.Head(key);
  candidates.positions[count] = position;
  candidates.rows[count] = head - 1;
  count += head != 0;
}

/// body(index_of) gets a map from positions to indexes, in a loop of its own for flat columns.
template <typename Body>
void WithIndexes(const Column& column, Body&& body) {
  if (column.rows == nullptr) {
    body([](uint32_t position) { return position; });
  } else {
    body([rows = column.rows](uint32_t position) { return rows[position]; });
  }
}

}  // namespace

DirectProbe::DirectProbe(const BuildSide& build, const DirectTable& table, const TextKeys* texts,
                         const ProbeOptions& options, UnmatchedRows* unmatched)
    : ProbeTask(build, options, unmatched),
      table_(table),
      program_(*options.keys),
      text_(texts != nullptr),
      keys_(program_, 0, texts) {}

bool DirectProbe::Start(TaskContext& context, const Chunk& in, Candidates& candidates) {
  const Selection tuples = in.selection();
  const std::optional<uint32_t> slot = program_.slot_of(0);
  if (slot.has_value() && !text_ && null_keys() == nullptr && in.column(*slot).kind == Column::Kind::kCodes) {
    context.Charge(tuples.count, plan::work_cost::kProbeRowPs);
    StartFromCodes(in.column(*slot), tuples, candidates);
    return true;
  }
  context.Charge(tuples.count, plan::work_cost::kProbeKeyPs);
  const std::optional<uint32_t> keys = keys_.Evaluate(in, tuples, null_keys());
  if (!keys.has_value()) {
    context.Fail(keys_.error());
    return false;
  }
  StartFromNumbers(*keys, candidates);
  return true;
}

void DirectProbe::StartFromNumbers(uint32_t keys, Candidates& candidates) const {
  const int64_t* const numbers = keys_.numbers();
  const auto ask = [&](uint32_t i) {
    if (i < keys && table_.InDomain(numbers[i]))
      Prefetch<false>(table_.head_of(numbers[i]), sizeof(uint32_t));
  };
  // Tables of unique keys have only bits, which need no prefetch.
  const bool asks = !table_.unique();
  for (uint32_t i = 0; asks && i < kAhead; ++i) ask(i);
  uint32_t count = 0;
  for (uint32_t i = 0; i < keys; ++i) {
    if (asks) ask(i + kAhead);
    if (table_.InDomain(numbers[i])) AppendOfKey(table_, numbers[i], keys_.positions()[i], count, candidates);
  }
  candidates.count = count;
}

/// The common case: a column's codes, in the loop that its statistics allow.
void DirectProbe::StartFromCodes(const Column& column, Selection tuples, Candidates& candidates) const {
  const CodeMeaning& meaning = *column.meaning;
  const bool always_in_domain =
      !meaning.null_code && meaning.min >= table_.key_min() && meaning.max <= table_.key_max();
  uint32_t count = 0;
  WithCodes(column.base, column.width, [&](const auto* codes) {
    WithIndexes(column, [&](auto index_of) {
      if (always_in_domain) {
        ForEach(tuples, [&](uint32_t position) {
          const uint32_t index = index_of(position);
          if (index == kNullRow) return;
          AppendOfKey(table_, meaning.Number(codes[index]), position, count, candidates);
        });
      } else {
        ForEach(tuples, [&](uint32_t position) {
          const uint32_t index = index_of(position);
          if (index == kNullRow || meaning.IsNull(codes[index])) return;
          const int64_t key = meaning.Number(codes[index]);
          if (table_.InDomain(key)) AppendOfKey(table_, key, position, count, candidates);
        });
      }
    });
  });
  candidates.count = count;
}

uint32_t DirectProbe::Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) {
  std::copy_n(candidates.positions, candidates.count, positions);
  std::copy_n(candidates.rows, candidates.count, rows);
  return candidates.count;
}

void DirectProbe::Advance(Candidates& candidates) {
  if (!table_.chained()) {
    candidates.count = 0;
    return;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < candidates.count; ++i) {
    const uint32_t next = table_.Next(candidates.rows[i]);
    candidates.positions[count] = candidates.positions[i];
    candidates.rows[count] = next - 1;
    count += next != 0;
  }
  candidates.count = count;
}

}  // namespace nam::execution
